/*
 * alone.h - one node as a program of its own
 *
 *   dsf-switch LAB.json NODE [--time-dilation D] [--epoch NS] [--control FD]
 *   dsf-host   LAB.json NODE ...
 *
 * runs NODE in the namespace it is started in, whose links must be there: to have one node under
 * gdb or valgrind, or a lab without supervisor. Nodes of one lab need the same epoch; the default,
 * 0, is the host's boot, which all share.
 */
#ifndef DSF_URING_ALONE_H
#define DSF_URING_ALONE_H
#include <stdbool.h>

/* host: only hosts are accepted, else only switches. Returns the exit code: 2 for wrong use or a
 * bad file. */
int uring_alone_main(int argc, char **argv, bool host);

#endif
