#include "metaroce/conn.h"

static bool has_room(const struct metaroce_path *p, uint32_t size)
{
	return p->inflight == 0 || p->inflight + size <= p->window.bytes;
}

/* Round robin over the plane's good paths that have room; a path that was just marked is passed
 * over once, so that the next packets go where nothing was marked. */
enum metaroce_spray_result metaroce_spray_pick(
	struct metaroce_conn_plane *cp, uint32_t size, struct metaroce_path **path)
{
	struct metaroce_conn *c = cp->conn;
	struct metaroce_path *skipped = NULL;
	bool good = false;

	if (cp->inflight > 0 && cp->inflight + size > cp->window.bytes) {
		cp->window.limited = true;
		return METAROCE_SPRAY_WINDOW;
	}
	if (c->inflight > 0 && c->inflight + size > c->inflight_max)
		return METAROCE_SPRAY_WINDOW;
	for (uint32_t i = 0; i < c->paths_count; i++) {
		struct metaroce_path *p = &c->paths[cp->cursor];

		cp->cursor = cp->cursor + 1 == c->paths_count ? 0 : cp->cursor + 1;
		if (p->plane != cp->plane || p->state != METAROCE_PATH_GOOD)
			continue;
		good = true;
		if (metaroce_path_span_full(p))
			continue;
		if (!has_room(p, size)) {
			p->window.limited = true;
			continue;
		}
		if (p->skip) {
			p->skip = false;
			if (skipped == NULL)
				skipped = p;
			continue;
		}
		*path = p;
		return METAROCE_SPRAY_PATH;
	}
	if (skipped != NULL) {
		*path = skipped;
		return METAROCE_SPRAY_PATH;
	}
	return good ? METAROCE_SPRAY_WINDOW : METAROCE_SPRAY_NONE;
}
