#include "topo/model.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct topo_endpoint topo_endpoint(const struct topo *t, uint32_t rank)
{
	assert(rank < t->endpoints_count);
	return t->endpoints[rank];
}

const struct topo_port *topo_endpoint_port(const struct topo *t, uint32_t rank, uint32_t plane)
{
	struct topo_endpoint e = topo_endpoint(t, rank);
	const struct topo_node *n = &t->nodes[e.host];
	uint32_t low = 0, high = n->ports_count;

	while (low < high) { /* ports of a host: by rail, then plane */
		uint32_t middle = low + (high - low) / 2;
		const struct topo_port *p = topo_node_port(t, n, middle);

		if (p->rail < e.rail || (p->rail == e.rail && p->plane < plane))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < n->ports_count) {
		const struct topo_port *p = topo_node_port(t, n, low);

		if (p->rail == e.rail && p->plane == plane)
			return p;
	}
	return NULL;
}

/* Compares a name that ends with a zero with size bytes that don't. */
static int compare_name(const char *name, const char *bytes, size_t size)
{
	int order = strncmp(name, bytes, size);

	return order != 0 ? order : name[size] != '\0';
}

static uint32_t find_node(const struct topo *t, const char *bytes, size_t size)
{
	uint32_t low = 0, high = t->nodes_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = compare_name(t->nodes[t->nodes_by_name[middle]].name, bytes, size);

		if (order == 0)
			return t->nodes_by_name[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return TOPO_NONE;
}

uint32_t topo_find_node(const struct topo *t, const char *name)
{
	return find_node(t, name, strlen(name));
}

uint32_t topo_find_port(const struct topo *t, const char *name)
{
	const char *colon = strchr(name, ':');
	const struct topo_node *n;
	uint32_t node;

	if (colon == NULL)
		return TOPO_NONE;
	node = find_node(t, name, (size_t)(colon - name));
	if (node == TOPO_NONE)
		return TOPO_NONE;
	n = &t->nodes[node];
	for (uint32_t i = 0; i < n->ports_count; i++) { /* at most TOPO_PORTS_MAX */
		if (strcmp(topo_node_port(t, n, i)->name, colon + 1) == 0)
			return n->first_port + i;
	}
	return TOPO_NONE;
}

const char *topo_role_name(enum topo_role role)
{
	switch (role) {
	case TOPO_ROLE_RDSW: return "rdsw";
	case TOPO_ROLE_EDSW: return "edsw";
	case TOPO_ROLE_FDSW: return "fdsw";
	case TOPO_ROLE_SDSW: return "sdsw";
	case TOPO_ROLE_SSW: return "ssw";
	case TOPO_ROLE_HOST: return "host";
	case TOPO_ROLE_EXTERNAL: return "external";
	}
	return "?";
}

const char *topo_link_kind_name(enum topo_link_kind kind)
{
	switch (kind) {
	case TOPO_LINK_GPU: return "gpu";
	case TOPO_LINK_FABRIC: return "fabric";
	case TOPO_LINK_SPINE: return "spine";
	case TOPO_LINK_EDGE: return "edge";
	}
	return "?";
}

void topo_free(struct topo *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; t->nodes != NULL && i < t->nodes_count; i++)
		free((void *)t->nodes[i].external);
	free((void *)t->bgp_origins);
	free((void *)t->bgp_rules);
	free((void *)t->bgp_neighbors);
	free((void *)t->bgp);
	free((void *)t->endpoints);
	free((void *)t->system_port_port);
	free((void *)t->below);
	free((void *)t->switch_cluster);
	free((void *)t->switch_node);
	free((void *)t->nodes_by_name);
	free((void *)t->names);
	free((void *)t->links);
	free((void *)t->ports);
	free((void *)t->nodes);
	free(t);
}

uint64_t topo_fsdb_sessions(const struct topo *t)
{
	uint64_t ends = 0;

	for (uint32_t i = 0; i < t->switches_count; i++)
		ends += topo_fsdb_peers(t, &t->nodes[t->switch_node[i]]);
	return ends / 2;
}
