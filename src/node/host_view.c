#include "node/host_state.h"

struct reader {
	node_row_fn row_fn;
	void *user;
	struct node_row row;
};

static void begin(struct reader *r, const struct node_host *h, enum node_query query)
{
	memset(&r->row, 0, sizeof(r->row));
	r->row.query = query;
	r->row.node = h->index;
}

static void view_ports(const struct node_host *h, uint32_t filter, struct reader *r)
{
	for (uint32_t i = 0; i < h->ports_count; i++) {
		const struct node_host_port *p = &h->ports[i];

		if (filter != TOPO_NONE && filter != i)
			continue;
		begin(r, h, NODE_QUERY_PORT);
		r->row.port = p->view;
		r->row.port.impairment = p->impairment;
		r->row.port.carrier = r->row.port.live = r->row.port.active = p->carrier;
		r->row_fn(r->user, &r->row);
	}
}

static void view_counters(const struct node_host *h, struct reader *r)
{
	struct node_row_counters *c = &r->row.counters;

	begin(r, h, NODE_QUERY_COUNTERS);
	c->packets_rx = h->packets_rx;
	c->packets_tx = h->packets_tx;
	c->errors = h->errors;
	for (uint32_t i = 0; i < h->ports_count; i++) {
		c->impaired_drops += h->ports[i].impaired;
		c->corrupt_drops += h->ports[i].corrupted;
	}
	for (uint32_t i = 0; i < h->nics_count; i++) {
		const struct metaroce_counters *m = metaroce_counters(h->nics[i].transport);

		c->retransmits += m->retransmits;
		c->duplicates += m->duplicates;
		c->ecn_marks += m->marked_rx;
	}
	r->row_fn(r->user, &r->row);
}

static void view_nics(const struct node_host *h, struct reader *r)
{
	for (uint32_t i = 0; i < h->nics_count; i++) {
		const struct metaroce_counters *m = metaroce_counters(h->nics[i].transport);
		struct node_row_nic *n = &r->row.nic;

		begin(r, h, NODE_QUERY_NIC);
		n->rail = i;
		n->connections = metaroce_connections(h->nics[i].transport);
		n->packets_tx = m->packets_tx;
		n->packets_rx = m->packets_rx;
		n->bytes_tx = m->bytes_tx;
		n->bytes_rx = m->bytes_rx;
		n->retransmits = m->retransmits;
		n->duplicates = m->duplicates;
		for (uint32_t j = 0; j < h->ports_count; j++) {
			n->ports += h->ports[j].rail == i;
			n->ports_up += h->ports[j].rail == i && h->ports[j].carrier;
		}
		r->row_fn(r->user, &r->row);
	}
}

static void view_paths(const struct node_host *h, struct reader *r)
{
	for (uint32_t i = 0; i < h->nics_count; i++) {
		struct metaroce_path_view view;
		uint64_t cursor = 0;

		while (metaroce_path_look(h->nics[i].transport, &cursor, &view)) {
			struct node_row_path *p = &r->row.path;

			begin(r, h, NODE_QUERY_PATHS);
			p->rail = i;
			p->connection = view.connection;
			p->path = view.path;
			p->plane = view.plane;
			p->udp_source_port = view.source_port;
			p->state = view.state == METAROCE_PATH_GOOD      ? NODE_PATH_GOOD
				   : view.state == METAROCE_PATH_SUSPECT ? NODE_PATH_SUSPECT
									 : NODE_PATH_DEAD;
			p->rtt_ns = view.rtt_ns;
			p->cwnd_bytes = view.window_bytes;
			p->ecn_ppm = view.marked_ppm;
			p->bytes = view.bytes;
			p->retransmits = view.retransmits;
			r->row_fn(r->user, &r->row);
		}
	}
}

static void view_streams(const struct node_host *h, struct reader *r)
{
	for (uint32_t i = 0; i < h->flows_count; i++) {
		const struct node_host_flow *flow = &h->flows[i];
		struct node_row_qp *q = &r->row.qp;
		struct metaroce_qp_view view;

		if (flow->qp == NULL)
			continue;
		metaroce_qp_look(flow->qp, &view);
		begin(r, h, NODE_QUERY_QP);
		q->rail = (uint32_t)(flow->nic - h->nics);
		q->connection = view.connection;
		q->qp = view.number;
		q->messages_sent = view.messages_posted;
		q->messages_done = flow->sender ? view.messages_done : view.messages_received;
		q->bytes_sent = view.bytes_posted;
		q->bytes_received = view.bytes_received;
		r->row_fn(r->user, &r->row);
	}
}

static void view_flows(const struct node_host *h, struct reader *r, dsf_instant now)
{
	for (uint32_t i = 0; i < h->flows_count; i++) {
		begin(r, h, NODE_QUERY_WORKLOAD);
		node_host_flow_row(&h->flows[i], &r->row.flow, now);
		r->row_fn(r->user, &r->row);
	}
}

static void view_missing(const struct node_host *h, struct reader *r)
{
	for (uint32_t i = 0; i < h->ports_count; i++) {
		if (h->ports[i].carrier)
			continue;
		begin(r, h, NODE_QUERY_READY);
		r->row.missing =
			(struct node_row_missing){ .what = "port", .port = i, .other = TOPO_NONE };
		r->row_fn(r->user, &r->row);
	}
}

void node_host_view(const struct node_host *h, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user, dsf_instant now)
{
	struct reader r = { .row_fn = row_fn, .user = user };

	switch (query) {
	case NODE_QUERY_PORT: view_ports(h, filter, &r); break;
	case NODE_QUERY_COUNTERS: view_counters(h, &r); break;
	case NODE_QUERY_NIC: view_nics(h, &r); break;
	case NODE_QUERY_PATHS: view_paths(h, &r); break;
	case NODE_QUERY_QP: view_streams(h, &r); break;
	case NODE_QUERY_WORKLOAD: view_flows(h, &r, now); break;
	case NODE_QUERY_READY: view_missing(h, &r); break;
	case NODE_QUERY_REACHABILITY:
	case NODE_QUERY_BALANCE:
	case NODE_QUERY_VOQ:
	case NODE_QUERY_SYSTEM_PORT:
	case NODE_QUERY_NDP:
	case NODE_QUERY_FSDB_SESSION:
	case NODE_QUERY_FSDB:
	case NODE_QUERY_BGP_PEER:
	case NODE_QUERY_BGP_TABLE:
	case NODE_QUERY_ROUTE: break;
	}
}
