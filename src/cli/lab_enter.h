/*
 * lab_enter.h - the calling process becomes one inside a node's namespace
 */
#ifndef DSF_CLI_LAB_ENTER_H
#define DSF_CLI_LAB_ENTER_H

#define LAB_ENTER_FAILED   125 /* we failed, the command was never started */
#define LAB_ENTER_UNUSABLE 126 /* the command can't be executed */
#define LAB_ENTER_MISSING  127 /* there is no such command */

struct cli_options;

/* Replaces this process by the command in the node's namespace: its descriptors, terminal and
 * signals are ours, DSFEMU_LAB and DSFEMU_NODE are in its environment, /sys shows its namespace.
 * Returns only on failure: an exit code of those above, with the reason told. */
int lab_enter(const struct cli_options *o, const char *node, char *const *command);

/* The calling process gets a view of its own of /sys, that of its namespace. Where the kernel or a
 * container doesn't allow it nothing changes. */
void lab_enter_sys(void);

#endif
