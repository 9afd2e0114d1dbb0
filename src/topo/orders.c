/*
 * orders.c - the forced orders of Input Balanced Mode
 *
 * "orders" of "fabric" names nodes and, for each, ports in the order in which the node withholds
 * their links. Links that aren't named come behind, as drawn.
 */
#include "topo/draft.h"
#include <string.h>
#include "base/err.h"

static int place_port(const struct topo_draft *d, const struct topo_path *path,
	const struct topo_node *n, struct topo_port *ports, uint32_t place)
{
	struct topo_quote quote;

	if (!cJSON_IsString(path->item))
		return topo_fail(
			d->reader, path, NULL, "must be the name of a port of %s", n->name);
	for (uint32_t i = 0; i < n->ports_count; i++) {
		struct topo_port *p = &ports[n->first_port + i];

		if (strcmp(p->name, path->item->valuestring) != 0 || p->ethernet)
			continue;
		if (p->withhold != TOPO_NONE)
			return topo_fail(d->reader, path, NULL, "%s:%s has its place already",
				n->name, p->name);
		p->withhold = place;
		return 0;
	}
	return topo_fail(d->reader, path, NULL, "%s has no cell port %s", n->name,
		topo_quote(&quote, path->item->valuestring, strlen(path->item->valuestring)));
}

static int read_order(const struct topo_draft *d, const struct topo_path *path,
	const struct topo *t, struct topo_port *ports)
{
	struct topo_slot s[TOPO_ORDER_COUNT];
	struct topo_path list = { .up = path };
	int err = topo_read(d->reader, path, &topo_keys_order, s);
	uint32_t node, place = 0;
	struct topo_quote quote;
	const char *name;

	if (err < 0)
		return err;
	name = s[TOPO_ORDER_NODE].item->valuestring;
	node = topo_find_node(t, name);
	if (node == TOPO_NONE || !topo_is_fabric_node(t->nodes[node].role))
		return topo_fail(d->reader, path, &s[TOPO_ORDER_NODE],
			"%s: only an FDSW or SDSW of the lab withholds links",
			topo_quote(&quote, name, strlen(name)));
	list.item = s[TOPO_ORDER_PORTS].item;
	list.child = s[TOPO_ORDER_PORTS].child;
	for (const cJSON *c = list.item->child; c != NULL && err == 0; c = c->next, place++) {
		struct topo_path at = { .up = &list, .item = c, .child = place };

		err = place_port(d, &at, &t->nodes[node], ports, place);
	}
	return err;
}

int topo_draft_orders(const struct topo_draft *d, const struct topo *t, struct topo_port *ports,
	const struct topo_slot *top)
{
	struct topo_path fabric = { .up = &d->top };
	struct topo_slot s[TOPO_FABRIC_COUNT];
	struct topo_path list = { .up = &fabric };
	uint32_t child = 0;
	int err;

	if (!top[TOPO_TOP_FABRIC].given)
		return 0;
	fabric.item = top[TOPO_TOP_FABRIC].item;
	fabric.child = top[TOPO_TOP_FABRIC].child;
	err = topo_read(d->reader, &fabric, &topo_keys_fabric, s);
	if (err < 0 || !s[TOPO_FABRIC_ORDERS].given)
		return err;
	if (d->fabric.draw != TOPO_DRAW_FORCED)
		return topo_fail(d->reader, &fabric, &s[TOPO_FABRIC_ORDERS],
			"orders are for \"draw\": \"forced\"");
	list.item = s[TOPO_FABRIC_ORDERS].item;
	list.child = s[TOPO_FABRIC_ORDERS].child;
	for (const cJSON *c = list.item->child; c != NULL && err == 0; c = c->next, child++) {
		struct topo_path at = { .up = &list, .item = c, .child = child };

		err = read_order(d, &at, t, ports);
	}
	return err;
}
