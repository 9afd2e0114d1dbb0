/*
 * show.h - the `show` commands
 *
 * A command asks a source for rows and makes its result of them, an array. The live source asks the
 * processes of a lab, the simulated one its devices; the results are the same.
 */
#ifndef DSF_VIEW_SHOW_H
#define DSF_VIEW_SHOW_H
#include <stddef.h>
#include <cjson/cJSON.h>
#include "node/node.h"

enum view_show_what {
	VIEW_SHOW_FABRIC,
	VIEW_SHOW_REACHABILITY,
	VIEW_SHOW_BALANCE,
	VIEW_SHOW_TOPOLOGY,
	VIEW_SHOW_SYSTEM_PORT,
	VIEW_SHOW_VOQ,
	VIEW_SHOW_NDP,
	VIEW_SHOW_SUBSCRIPTION,
	VIEW_SHOW_FSDB,
	VIEW_SHOW_BGP_SUMMARY,
	VIEW_SHOW_BGP_NEIGHBORS,
	VIEW_SHOW_BGP_TABLE,
	VIEW_SHOW_ROUTE,
	VIEW_SHOW_PORT,
	VIEW_SHOW_COUNTERS,
	VIEW_SHOW_NIC,
	VIEW_SHOW_PATHS,
	VIEW_SHOW_QP,
};

struct view_show {
	enum view_show_what what;
	uint32_t node;        /* TOPO_NONE: the whole lab */
	uint32_t destination; /* reachability, inputbalance: of this node alone; TOPO_NONE: all */
};

struct view_show_source {
	/* An array of rows (view/rows.h) in node order, the caller's; NULL: it failed, and the
	 * source has said or will say why. node TOPO_NONE: of every node. */
	cJSON *(*rows)(void *user, enum node_query query, uint32_t node);
	void *user;
};

#define VIEW_SHOW_WHY_MAX 256

/* Reads the words behind `show`, "--node NODE" among them. 0, or -DSF_E_UNKNOWN with one line
 * without full stop in why. */
int view_show_parse(const struct topo *t, const char *const *words, size_t count,
	struct view_show *show, char why[VIEW_SHOW_WHY_MAX]);

/* The command as words, for lists of results and help; static storage. */
const char *view_show_name(enum view_show_what what);

/* The result, which the caller owns; NULL when the source failed or memory is short. */
cJSON *view_show_run(
	const struct view_show *show, const struct topo *t, const struct view_show_source *source);

/* A result as a table; malloc'd, NULL when memory is short. */
char *view_show_text(const struct view_show *show, const cJSON *result);

#endif
