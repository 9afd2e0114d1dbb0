#include "node/node.h"
#include <assert.h>
#include "base/err.h"
#include "node/fabric_node.h"
#include "node/host.h"
#include "node/interface_node.h"
#include "node/router.h"
#include "node/row.h"

enum node_kind { KIND_INTERFACE, KIND_FABRIC, KIND_ROUTER, KIND_HOST };

struct node {
	const struct dsf_memory *memory;
	enum node_kind kind;
	uint32_t ports_count;
	union {
		struct node_interface *interface;
		struct node_fabric *fabric;
		struct node_router *router;
		struct node_host *host;
	};
};

/* An external node is somebody else's. */
static bool kind_of(const struct topo *t, enum topo_role role, enum node_kind *kind)
{
	bool cells = t->fabric.mode == TOPO_FABRIC_DSF;

	switch (role) {
	case TOPO_ROLE_RDSW:
	case TOPO_ROLE_EDSW: *kind = cells ? KIND_INTERFACE : KIND_ROUTER; return true;
	case TOPO_ROLE_FDSW:
	case TOPO_ROLE_SDSW: *kind = cells ? KIND_FABRIC : KIND_ROUTER; return true;
	case TOPO_ROLE_SSW: *kind = KIND_ROUTER; return true;
	case TOPO_ROLE_HOST: *kind = KIND_HOST; return true;
	case TOPO_ROLE_EXTERNAL: break;
	}
	return false;
}

struct node *node_new(const struct node_config *config, dsf_instant now)
{
	struct node *n = dsf_memory_new(config->memory, sizeof(*n));
	bool made = false;

	if (n == NULL)
		return NULL;
	n->memory = config->memory;
	n->ports_count = config->topo->nodes[config->index].ports_count;
	if (kind_of(config->topo, config->topo->nodes[config->index].role, &n->kind)) {
		switch (n->kind) {
		case KIND_INTERFACE:
			n->interface = node_interface_new(config, now);
			made = n->interface != NULL;
			break;
		case KIND_FABRIC:
			n->fabric = node_fabric_new(config, now);
			made = n->fabric != NULL;
			break;
		case KIND_ROUTER:
			n->router = node_router_new(config, now);
			made = n->router != NULL;
			break;
		case KIND_HOST:
			n->host = node_host_new(config, now);
			made = n->host != NULL;
			break;
		}
	}
	if (made)
		return n;
	dsf_memory_delete(config->memory, n, sizeof(*n));
	return NULL;
}

void node_free(struct node *n)
{
	if (n == NULL)
		return;
	switch (n->kind) {
	case KIND_INTERFACE: node_interface_free(n->interface); break;
	case KIND_FABRIC: node_fabric_free(n->fabric); break;
	case KIND_ROUTER: node_router_free(n->router); break;
	case KIND_HOST: node_host_free(n->host); break;
	}
	dsf_memory_delete(n->memory, n, sizeof(*n));
}

int node_frame_input(struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	assert(port < n->ports_count || port == NODE_PORT_INBAND);
	switch (n->kind) {
	case KIND_INTERFACE: return node_interface_frame_input(n->interface, port, frame, now);
	case KIND_FABRIC: return node_fabric_frame_input(n->fabric, port, frame, now);
	case KIND_ROUTER: return node_router_frame_input(n->router, port, frame, now);
	case KIND_HOST: return node_host_frame_input(n->host, port, frame, now);
	}
	return -DSF_E_UNSUPPORTED;
}

void node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now)
{
	assert(port < n->ports_count);
	switch (n->kind) {
	case KIND_INTERFACE: node_interface_carrier(n->interface, port, up, now); break;
	case KIND_FABRIC: node_fabric_carrier(n->fabric, port, up, now); break;
	case KIND_ROUTER: node_router_carrier(n->router, port, up, now); break;
	case KIND_HOST: node_host_carrier(n->host, port, up, now); break;
	}
}

dsf_instant node_deadline(const struct node *n)
{
	switch (n->kind) {
	case KIND_INTERFACE: return node_interface_deadline(n->interface);
	case KIND_FABRIC: return node_fabric_deadline(n->fabric);
	case KIND_ROUTER: return node_router_deadline(n->router);
	case KIND_HOST: return node_host_deadline(n->host);
	}
	return DSF_NEVER;
}

void node_expire(struct node *n, dsf_instant now)
{
	switch (n->kind) {
	case KIND_INTERFACE: node_interface_expire(n->interface, now); break;
	case KIND_FABRIC: node_fabric_expire(n->fabric, now); break;
	case KIND_ROUTER: node_router_expire(n->router, now); break;
	case KIND_HOST: node_host_expire(n->host, now); break;
	}
}

bool node_ready(const struct node *n)
{
	switch (n->kind) {
	case KIND_INTERFACE: return node_interface_ready(n->interface);
	case KIND_FABRIC: return node_fabric_ready(n->fabric);
	case KIND_ROUTER: return node_router_ready(n->router);
	case KIND_HOST: return node_host_ready(n->host);
	}
	return false;
}

struct node_sessions node_sessions(const struct node *n)
{
	struct node_sessions sessions = { .bgp_expected = 0 };

	switch (n->kind) {
	case KIND_INTERFACE:
		if (n->interface->fsdb != NULL) {
			sessions.fsdb_established = fsdb_mesh_established(n->interface->fsdb);
			sessions.fsdb_expected = n->interface->fsdb_peers_count;
		}
		node_routing_sessions(n->interface->routing, &sessions);
		break;
	case KIND_ROUTER: node_routing_sessions(n->router->routing, &sessions); break;
	case KIND_FABRIC:
	case KIND_HOST: break;
	}
	return sessions;
}

bool node_output(struct node *n, struct node_output *out, dsf_instant now)
{
	switch (n->kind) {
	case KIND_INTERFACE: return node_interface_output(n->interface, out, now);
	case KIND_FABRIC: return node_fabric_output(n->fabric, out, now);
	case KIND_ROUTER: return node_router_output(n->router, out, now);
	case KIND_HOST: return node_host_output(n->host, out, now);
	}
	return false;
}

void node_frame_done(struct node *n, void *buffer)
{
	switch (n->kind) {
	case KIND_INTERFACE: node_interface_frame_done(n->interface, buffer); break;
	case KIND_FABRIC: node_fabric_frame_done(n->fabric, buffer); break;
	case KIND_ROUTER: node_router_frame_done(n->router, buffer); break;
	case KIND_HOST: node_host_frame_done(n->host, buffer); break;
	}
}

/* All streams of a router are BGP's. */

int node_stream_accept(struct node *n, const struct node_stream_ends *ends, dsf_instant now)
{
	if (n->kind == KIND_ROUTER)
		return node_routing_accept(n->router->routing, ends, now);
	return n->kind == KIND_INTERFACE ? node_interface_stream_accept(n->interface, ends, now)
					 : -DSF_E_UNSUPPORTED;
}

void node_stream_connected(struct node *n, uint32_t stream, dsf_instant now)
{
	if (n->kind == KIND_INTERFACE)
		node_interface_stream_connected(n->interface, stream, now);
	else if (n->kind == KIND_ROUTER)
		node_routing_connected(n->router->routing, stream, now);
}

void node_stream_input(
	struct node *n, uint32_t stream, const uint8_t *bytes, uint32_t size, dsf_instant now)
{
	if (n->kind == KIND_INTERFACE)
		node_interface_stream_input(n->interface, stream, bytes, size, now);
	else if (n->kind == KIND_ROUTER)
		node_routing_input(n->router->routing, stream, bytes, size, now);
}

void node_stream_writable(struct node *n, uint32_t stream, uint32_t room, dsf_instant now)
{
	if (n->kind == KIND_INTERFACE)
		node_interface_stream_writable(n->interface, stream, room, now);
	else if (n->kind == KIND_ROUTER)
		node_routing_writable(n->router->routing, stream, room, now);
}

void node_stream_closed(struct node *n, uint32_t stream, bool reset, dsf_instant now)
{
	if (n->kind == KIND_INTERFACE)
		node_interface_stream_closed(n->interface, stream, reset, now);
	else if (n->kind == KIND_ROUTER)
		node_routing_closed(n->router->routing, stream, now);
}

void node_memory_done(struct node *n, uint64_t request, int status, dsf_instant now)
{
	if (n->kind == KIND_HOST)
		node_host_memory_done(n->host, request, status, now);
}

int node_command(struct node *n, const struct node_command *command, dsf_instant now)
{
	if ((command->kind == NODE_COMMAND_IMPAIR || command->kind == NODE_COMMAND_DRAIN_PORT) &&
		command->port >= n->ports_count)
		return -DSF_E_UNKNOWN;
	switch (n->kind) {
	case KIND_INTERFACE: return node_interface_command(n->interface, command, now);
	case KIND_FABRIC: return node_fabric_command(n->fabric, command, now);
	case KIND_ROUTER: return node_router_command(n->router, command, now);
	case KIND_HOST: return node_host_command(n->host, command, now);
	}
	return -DSF_E_UNSUPPORTED;
}

void node_view(const struct node *n, enum node_query query, uint32_t filter, node_row_fn row_fn,
	void *user, dsf_instant now)
{
	switch (n->kind) {
	case KIND_INTERFACE:
		node_interface_view(n->interface, query, filter, row_fn, user, now);
		break;
	case KIND_FABRIC: node_fabric_view(n->fabric, query, filter, row_fn, user); break;
	case KIND_ROUTER: node_router_view(n->router, query, row_fn, user, now); break;
	case KIND_HOST: node_host_view(n->host, query, filter, row_fn, user, now); break;
	}
}
