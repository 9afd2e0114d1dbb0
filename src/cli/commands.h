/*
 * commands.h - every command of the program; each is defined in src/cli/cmd_<name>.c
 */
#ifndef DSF_CLI_COMMANDS_H
#define DSF_CLI_COMMANDS_H
#include "cli/options.h"

extern const struct cli_command cmd_capture;
extern const struct cli_command cmd_chaos;
extern const struct cli_command cmd_compare;
extern const struct cli_command cmd_doctor;
extern const struct cli_command cmd_down;
extern const struct cli_command cmd_events;
extern const struct cli_command cmd_exec;
extern const struct cli_command cmd_expand;
extern const struct cli_command cmd_graph;
extern const struct cli_command cmd_help;
extern const struct cli_command cmd_link;
extern const struct cli_command cmd_list;
extern const struct cli_command cmd_node;
extern const struct cli_command cmd_plan;
extern const struct cli_command cmd_shell;
extern const struct cli_command cmd_show;
extern const struct cli_command cmd_explain;
extern const struct cli_command cmd_run;
extern const struct cli_command cmd_sim;
extern const struct cli_command cmd_status;
extern const struct cli_command cmd_up;
extern const struct cli_command cmd_validate;

/* All of them in the order of help, ended by NULL (main.c). */
extern const struct cli_command *const cli_commands[];

#endif
