/*
 * explain.h - why a destination isn't told over a link, back to the failures that caused it
 *
 * Over each link at most one end tells the other of a destination: the one that is nearer to it. If
 * it doesn't, the link is down, or the teller itself doesn't reach the destination, or Input
 * Balanced Mode has it withhold this link, since it has lost links towards the destination. For
 * each of those the same question is asked again, one tier nearer; it ends at links that are down.
 * What the devices say of themselves is asked of the same source as for `show`.
 */
#ifndef DSF_VIEW_EXPLAIN_H
#define DSF_VIEW_EXPLAIN_H
#include "view/show.h"

/* Takes NODE:IF and DST. 0, or -DSF_E_UNKNOWN with one line without full stop in why. */
int view_explain_parse(const struct topo *t, const char *link, const char *name, uint32_t *port,
	uint32_t *destination, char why[VIEW_SHOW_WHY_MAX]);

/* port: index in the topology, either end of a cell link; destination: an interface node of its
 * fabric. {"link","teller","destination","state","group","input","output","allowed","causes":[the
 * same …],"failures":[links]}; the caller's. NULL: memory is short or the source failed. */
cJSON *view_explain(const struct topo *t, uint32_t port, uint32_t destination,
	const struct view_show_source *source);

/* For people; malloc'd, NULL when memory is short. */
char *view_explain_text(const cJSON *result);

#endif
