#include <assert.h>
#include "node/interface_node.h"

static_assert(FSDB_PORTS_MAX == TOPO_PORTS_PER_SWITCH, "a switch's block of system ports");
static_assert(FSDB_PORT == NODE_STREAM_FSDB, "drivers listen there");

/* All interface nodes of our plane and building, by rising id. */
static int find_peers(struct node_interface *n, const struct node_config *config)
{
	const struct topo *t = n->topo;
	uint32_t count = topo_fsdb_peers(t, n->self);

	n->fsdb_peers_count = count;
	if (count == 0)
		return 0;
	n->fsdb_peers = dsf_memory_new(n->memory, count * sizeof(*n->fsdb_peers));
	if (n->fsdb_peers == NULL)
		return -DSF_E_NOMEM;
	count = 0;
	for (uint32_t i = 0; i < t->switches_count; i++) {
		const struct topo_node *other = &t->nodes[t->switch_node[i]];

		if (!topo_are_fsdb_peers(n->self, other))
			continue;
		n->fsdb_peers[count++] = (struct fsdb_peer){ i, other->loopback };
		for (uint32_t p = 0; p < other->ports_count; p++) {
			const struct topo_port *port = topo_node_port(t, other, p);

			n->remote_expected +=
				topo_port_has_address(port) && node_edge_answered(config, port);
		}
	}
	return 0;
}

static int publish(struct node_interface *n, uint32_t system_port, uint64_t rate_bps, bool up)
{
	struct fsdb_record port = { .kind = FSDB_KIND_PORT,
		.system_port = system_port,
		.scope = FSDB_SCOPE_GLOBAL,
		.state = up,
		.rate_bps = rate_bps };

	return fsdb_mesh_publish(n->fsdb, &port);
}

static int publish_port(struct node_interface *n, uint32_t number)
{
	const struct topo_port *port = topo_node_port(n->topo, n->self, number);
	const struct topo_link *link = &n->topo->links[port->link];
	struct fsdb_record interface = { .kind = FSDB_KIND_INTERFACE,
		.system_port = port->system_port,
		.scope = FSDB_SCOPE_GLOBAL,
		.address = port->address,
		.prefix_length = port->prefix_length,
		.mac = port->mac,
		.mtu = (uint16_t)link->mtu };
	int err = publish(n, port->system_port, node_ethernet_rate(&n->edge.ethernet, number),
		node_ethernet_is_up(&n->edge.ethernet, number));

	return err < 0 ? err : fsdb_mesh_publish(n->fsdb, &interface);
}

/* The host port, with our loopback. */
static int publish_inband(struct node_interface *n)
{
	struct fsdb_record interface = { .kind = FSDB_KIND_INTERFACE,
		.system_port = n->first_system_port + NODE_SYSTEM_PORT_INBAND,
		.scope = FSDB_SCOPE_GLOBAL,
		.address = n->self->loopback,
		.prefix_length = 128,
		.mtu = NODE_INBAND_MTU };
	int err = publish(n, interface.system_port, NODE_INBAND_RATE_BPS, true);

	return err < 0 ? err : fsdb_mesh_publish(n->fsdb, &interface);
}

int node_sessions_init(struct node_interface *n, const struct node_config *config)
{
	struct fsdb_config fsdb = { .memory = n->memory,
		.trace = n->trace,
		.node = n->index,
		.id = n->self->switch_index,
		.timers = fsdb_mesh_timers(config->control_dilation) };
	int err = 0;

	if (config->streams && !config->promised)
		err = find_peers(n, config);
	if (err < 0 || n->fsdb_peers_count == 0)
		return err;
	fsdb.peers = n->fsdb_peers;
	fsdb.peers_count = n->fsdb_peers_count;
	n->fsdb = fsdb_mesh_new(&fsdb);
	if (n->fsdb == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < n->self->ports_count && err == 0; i++)
		if (topo_port_has_address(topo_node_port(n->topo, n->self, i)))
			err = publish_port(n, i);
	return err < 0 ? err : publish_inband(n);
}

void node_sessions_close(struct node_interface *n)
{
	fsdb_mesh_free(n->fsdb);
	dsf_memory_delete(n->memory, n->fsdb_peers, n->fsdb_peers_count * sizeof(*n->fsdb_peers));
}

void node_sessions_port(struct node_interface *n, uint32_t number)
{
	/* It takes the place of what was said before, which needs no memory but the log's. */
	if (n->fsdb != NULL)
		(void)publish_port(n, number);
}

/* Does the lab file have that address behind that port? */
static bool is_promised(
	const struct node_interface *n, uint32_t system_port, const struct dsf_ip6 *address)
{
	uint32_t port = n->topo->system_port_port[system_port];

	return port != TOPO_NONE &&
	       dsf_ip6_equal(&n->topo->ports[n->topo->ports[port].peer].address, address);
}

void node_sessions_neighbor(
	struct node_interface *n, const struct ip_ndp_change *change, dsf_instant now)
{
	struct fsdb_record record = { .kind = FSDB_KIND_NEIGHBOR,
		.system_port = topo_node_port(n->topo, n->self, change->port)->system_port,
		.state = change->reachable ? FSDB_REACHABLE : FSDB_INCOMPLETE,
		.address = change->address,
		.mac = change->mac,
		.since_ns = now.ns };
	int err = 0;

	/* Nobody else could use a link-local one. */
	if (n->fsdb == NULL || dsf_ip6_is_link_local(&change->address))
		return;
	if (change->reachable || is_promised(n, record.system_port, &change->address))
		err = fsdb_mesh_publish(n->fsdb, &record);
	else
		fsdb_mesh_withdraw(n->fsdb, &record);
	if (err < 0)
		node_count_error(n->edge.errors, err);
}

void node_sessions_reachable(struct node_interface *n, uint32_t destination, dsf_instant now)
{
	if (n->fsdb != NULL)
		fsdb_mesh_reachable(
			n->fsdb, destination, dsf_bitset_has(n->cells.reach.any, destination), now);
}

/* What came over FSDB, never what is static or behind a port of ours. NULL: nothing. */
static const struct ip_neighbor *find_imported(
	const struct node_interface *n, const struct dsf_ip6 *address)
{
	const struct ip_neighbor *e = ip_neighbor_lookup(&n->neighbors, address);

	return e != NULL && !e->local && e->state == IP_NEIGHBOR_REACHABLE ? e : NULL;
}

static void forget_neighbor(struct node_interface *n, const struct dsf_ip6 *address)
{
	const struct ip_neighbor *e = find_imported(n, address);

	if (e == NULL)
		return;
	n->remote_count -= is_promised(n, e->system_port, address);
	(void)ip_neighbor_remove(&n->neighbors, address);
}

static void import_neighbor(struct node_interface *n, const struct fsdb_change *change)
{
	uint32_t owner = n->topo->switch_node[change->system_port / TOPO_PORTS_PER_SWITCH];
	struct ip_neighbor neighbor = { .address = change->address,
		.mac = change->mac,
		.system_port = change->system_port,
		.owner = owner,
		.state = IP_NEIGHBOR_REACHABLE };

	/* A port that the lab doesn't have leads nowhere. */
	if (n->topo->system_port_port[change->system_port] == TOPO_NONE ||
		ip_neighbor_lookup(&n->neighbors, &change->address) != NULL)
		return;
	if (ip_neighbor_set(&n->neighbors, &neighbor) == 0)
		n->remote_count += is_promised(n, change->system_port, &change->address);
	else
		node_count_error(n->edge.errors, -DSF_E_FULL);
}

void node_sessions_settle(struct node_interface *n, dsf_instant now)
{
	struct fsdb_change change;

	while (n->fsdb != NULL && fsdb_mesh_changed(n->fsdb, &change)) {
		forget_neighbor(n, &change.address);
		if (change.present)
			import_neighbor(n, &change);
		node_routing_look(n->routing, &change.address, now);
	}
}

bool node_sessions_output(struct node_interface *n, struct node_output *out, dsf_instant now)
{
	struct fsdb_output fsdb;

	if (n->fsdb == NULL || !fsdb_mesh_output(n->fsdb, &fsdb, now))
		return false;
	*out = (struct node_output){ .port = NODE_PORT_INBAND,
		.depart = now,
		.head = fsdb.bytes,
		.head_size = fsdb.size,
		.size = fsdb.size,
		.stream = fsdb.stream,
		.reset = fsdb.reset };
	switch (fsdb.kind) {
	case FSDB_OUTPUT_OPEN:
		out->kind = NODE_OUTPUT_OPEN;
		out->ends =
			(struct node_stream_ends){ n->self->loopback, *fsdb.address, 0, FSDB_PORT };
		break;
	case FSDB_OUTPUT_WRITE: out->kind = NODE_OUTPUT_WRITE; break;
	case FSDB_OUTPUT_CLOSE: out->kind = NODE_OUTPUT_CLOSE; break;
	}
	return true;
}

bool node_sessions_port_up(const struct node_interface *n, uint32_t system_port, bool *stale)
{
	struct fsdb_record key = { .kind = FSDB_KIND_PORT, .system_port = system_port };
	uint32_t owner = system_port / TOPO_PORTS_PER_SWITCH;
	bool reached = dsf_bitset_has(n->cells.reach.any, owner);
	const struct fsdb_session *s;
	const struct fsdb_record *port;

	*stale = false;
	if (n->fsdb == NULL)
		return reached;
	s = fsdb_mesh_find(n->fsdb, owner);
	port = s == NULL ? NULL : fsdb_table_find(&s->table, &key);
	*stale = s != NULL && s->stale;
	return reached && port != NULL && port->state == 1;
}

bool node_sessions_ready(const struct node_interface *n)
{
	return n->fsdb == NULL || (fsdb_mesh_established(n->fsdb) == n->fsdb_peers_count &&
					  n->remote_count >= n->remote_expected);
}

static uint32_t node_of(const struct node_interface *n, uint32_t peer)
{
	return n->topo->switch_node[n->fsdb_peers[peer].id];
}

static void view_session(
	const struct node_interface *n, uint32_t peer, node_row_fn row_fn, void *user)
{
	const struct fsdb_session *s = fsdb_mesh_session(n->fsdb, peer);
	struct node_row row = { .query = NODE_QUERY_FSDB_SESSION, .node = n->index };

	row.fsdb_session = (struct node_row_fsdb_session){ .peer = node_of(n, peer),
		.state = fsdb_session_state(s),
		.stale = s->stale,
		.established_at = s->established_at,
		.disconnected_at = s->disconnected_at,
		.flaps = s->flaps,
		.rejected = s->rejected,
		.expired = s->expired,
		.records = s->table.count };
	row_fn(user, &row);
}

static void view_records(const struct node_interface *n, uint32_t publisher, bool stale,
	const struct fsdb_table *table, node_row_fn row_fn, void *user)
{
	struct node_row row = { .query = NODE_QUERY_FSDB, .node = n->index };

	for (uint32_t i = 0; i < table->count; i++) {
		row.fsdb = (struct node_row_fsdb){ publisher, stale, &table->records[i] };
		row_fn(user, &row);
	}
}

/* Of a peer: its session, or the neighbors that its switch should have told of. */
static void view_missing(
	const struct node_interface *n, uint32_t peer, node_row_fn row_fn, void *user)
{
	const struct topo_node *other = &n->topo->nodes[node_of(n, peer)];
	const struct fsdb_session *s = fsdb_mesh_session(n->fsdb, peer);
	struct node_row row = { .query = NODE_QUERY_READY, .node = n->index };

	row.missing = (struct node_row_missing){ "session", TOPO_NONE, node_of(n, peer) };
	if (fsdb_session_state(s) != FSDB_ESTABLISHED) {
		row_fn(user, &row);
		return;
	}
	for (uint32_t i = 0; i < other->ports_count; i++) {
		const struct topo_port *port = topo_node_port(n->topo, other, i);
		const struct topo_port *behind = &n->topo->ports[port->peer];

		if (!topo_port_has_address(port) || find_imported(n, &behind->address) != NULL)
			continue;
		row.missing = (struct node_row_missing){ "neighbor", TOPO_NONE, behind->node };
		row_fn(user, &row);
	}
}

void node_sessions_view(
	const struct node_interface *n, enum node_query query, node_row_fn row_fn, void *user)
{
	if (n->fsdb == NULL)
		return;
	if (query == NODE_QUERY_FSDB)
		view_records(
			n, n->index, false, &fsdb_mesh_publisher(n->fsdb)->table, row_fn, user);
	for (uint32_t i = 0; i < n->fsdb_peers_count; i++) {
		const struct fsdb_session *s = fsdb_mesh_session(n->fsdb, i);

		if (query == NODE_QUERY_FSDB)
			view_records(n, node_of(n, i), s->stale, &s->table, row_fn, user);
		else if (query == NODE_QUERY_FSDB_SESSION)
			view_session(n, i, row_fn, user);
		else if (query == NODE_QUERY_READY)
			view_missing(n, i, row_fn, user);
	}
}
