/*
 * skew.h - how evenly links were used, as JSON
 */
#ifndef DSF_VIEW_SKEW_H
#define DSF_VIEW_SKEW_H
#include <cjson/cJSON.h>
#include <stdbool.h>
#include "node/skew.h"

/* Adds "links", a row a tier and direction, and a key for each tier with the worse one of its
 * directions; null where the lab has no such links. False: no memory. */
bool view_skew_add(
	cJSON *o, const struct node_skew_meter *before, const struct node_skew_meter *after);

#endif
