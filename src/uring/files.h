/*
 * files.h - closing many packet sockets
 *
 * The kernel waits for a grace period of RCU, some 15 ms, for every packet socket that is closed.
 * Those of a process that dies with requests under way are closed by one kernel thread for the
 * whole machine, one after the other: a lab of 400 nodes then keeps its namespaces for a minute
 * after its processes are gone, and slows down whatever is made meanwhile. So a process ends its
 * requests and closes its sockets itself, side by side, which share the grace periods.
 */
#ifndef DSF_URING_FILES_H
#define DSF_URING_FILES_H
#include <stdint.h>

/* Closes all that are >= 0, and returns when they are closed. */
void uring_files_close(const int *fds, uint32_t count);

#endif
