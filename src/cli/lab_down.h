/*
 * lab_down.h - the end of a lab
 */
#ifndef DSF_CLI_LAB_DOWN_H
#define DSF_CLI_LAB_DOWN_H
#include <stdbool.h>

/*
 * Ends a lab, whatever state it is in: asks its supervisor, or removes what a dead one left. Names
 * strangers' processes that stay on stderr; with kill they are ended too. A lab that isn't there is
 * no failure. Returns when nothing is left. CLI_OK, or CLI_FAILED with the reason told.
 */
int lab_down(const char *lab, bool kill);

#endif
