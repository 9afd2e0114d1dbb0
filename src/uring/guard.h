/*
 * guard.h - keeps a host's kernel from answering for dsf-host
 *
 * dsf-host takes its datagrams from AF_PACKET sockets, but the kernel sees them too and would
 * answer "port unreachable". A bound UDP socket whose filter drops everything keeps it silent.
 */
#ifndef DSF_URING_GUARD_H
#define DSF_URING_GUARD_H
#include <stdint.h>

/* A descriptor to be held as long as the port is spoken; or -errno. */
int uring_guard_open(uint16_t udp_port);

#endif
