/*
 * drill.h - what a drill came to, as the object of `chaos` and `sim --drill`
 */
#ifndef DSF_VIEW_DRILL_H
#define DSF_VIEW_DRILL_H
#include <cjson/cJSON.h>
#include "node/drill.h"
#include "view/report.h"

/* The object of a drill that is done; NULL when memory is short. */
cJSON *view_drill_json(const struct topo *t, const struct topo_drill *drill,
	const struct node_drill *d, const struct view_fidelity *fidelity);

/* The object as a page for people; malloc'd, NULL when memory is short. */
char *view_drill_text(const cJSON *result);

/* A breach as one line; text has room for VIEW_DRILL_BREACH_MAX. */
#define VIEW_DRILL_BREACH_MAX 512
char *view_drill_breach(const struct topo *t, const struct node_drill_breach *breach, char *text);

const char *view_drill_verdict_name(enum node_drill_verdict verdict);

#endif
