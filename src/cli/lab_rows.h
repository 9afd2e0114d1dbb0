/*
 * lab_rows.h - rows of a live lab's nodes, as a source for src/view
 */
#ifndef DSF_CLI_LAB_ROWS_H
#define DSF_CLI_LAB_ROWS_H
#include "cli/lab.h"
#include "view/show.h"

struct lab_rows {
	struct lab_client client;
	const struct topo *topo;
	const char *lab, *command; /* for messages */
	bool told;                 /* the reason of a failure */
};

/* Connects. CLI_OK; closed by lab_rows_close. */
int lab_rows_open(
	struct lab_rows *r, const char *lab, const struct topo *topo, const char *command);
void lab_rows_close(struct lab_rows *r);

/* The source; valid while r is open. */
struct view_show_source lab_rows_source(struct lab_rows *r);

#endif
