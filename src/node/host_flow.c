#include <assert.h>
#include "node/host_state.h"

/* Streams of a run get numbers from a base drawn by the run, two a flow, so that what is left in
 * the network of an older run means nobody. Zero isn't a stream. */
static uint32_t stream_number(
	const struct node_host *h, const struct node_host_flow *flow, bool sender)
{
	uint32_t room = METAROCE_QPN_MAX - 2 * NODE_HOST_FLOWS_MAX;

	return 1 + h->run % room + 2 * flow->index + (sender ? 0 : 1);
}

/* No queue on the way makes a flow with packets in it wait so long for its turn. */
static uint64_t grace_ns(const struct node_host *h)
{
	return h->topo->fabric.reassembly_timeout_ns + 16 * h->topo->base_rtt_ns;
}

static struct metaroce_peer peer_of(const struct topo *t, uint32_t rank)
{
	struct metaroce_peer peer = { .planes = t->planes };

	for (uint32_t plane = 0; plane < t->planes && plane < METAROCE_PLANES_MAX; plane++) {
		const struct topo_port *port = topo_endpoint_port(t, rank, plane);

		if (port != NULL)
			peer.address[plane] = port->address;
	}
	return peer;
}

static int open_stream(struct node_host *h, struct node_host_flow *flow, dsf_instant now)
{
	struct metaroce *m = flow->nic->transport;
	uint32_t here = stream_number(h, flow, flow->sender);
	uint32_t there = stream_number(h, flow, !flow->sender);
	uint64_t size =
		h->spec.iterations > 0 ? h->spec.iterations * h->spec.size_bytes : UINT64_MAX;
	int err = 0;

	flow->qp = metaroce_qp_new(m, here, there, &flow->peer, (uint64_t)(uintptr_t)flow, &err);
	if (flow->qp == NULL)
		return err;
	if (!flow->sender)
		return metaroce_region_add(m, here, 0, size, flow->memory);
	/* As verbs programs connect before they send, so that no message waits for it. */
	metaroce_qp_connect(flow->qp, now);
	flow->fct = dsf_memory_new(h->memory, sizeof(*flow->fct));
	return flow->fct == NULL ? -DSF_E_NOMEM : 0;
}

static int open_flow(struct node_host *h, struct node_host_flow *flow, uint32_t index,
	const struct workload_flow *wanted, bool sender, dsf_instant now)
{
	uint32_t rank = sender ? wanted->source : wanted->target;

	flow->host = h;
	flow->index = index;
	flow->flow = *wanted;
	flow->sender = sender;
	flow->nic = &h->nics[rank - h->nics[0].rank];
	flow->memory = metaroce_memory_pattern(
		dsf_mix(h->spec.seed ^ dsf_mix(((uint64_t)h->run << 32) + index + 1)));
	flow->peer = peer_of(h->topo, sender ? wanted->target : wanted->source);
	flow->first_at = flow->last_at = DSF_NEVER;
	return h->spec.kind == WORKLOAD_UDP ? node_host_udp_open(h, flow)
					    : open_stream(h, flow, now);
}

static void close_flow(struct node_host *h, struct node_host_flow *flow)
{
	dsf_heap_remove(&h->timers, &flow->start);
	if (flow->udp != NULL)
		node_host_udp_close(h, flow);
	if (flow->qp != NULL) {
		if (!flow->sender)
			metaroce_region_remove(flow->nic->transport, stream_number(h, flow, false));
		metaroce_qp_free(flow->nic->transport, flow->qp);
	}
	dsf_memory_delete(h->memory, flow->fct, sizeof(*flow->fct));
}

void node_host_flow_close(struct node_host *h)
{
	for (uint32_t i = 0; i < h->flows_count; i++)
		close_flow(h, &h->flows[i]);
	dsf_memory_delete(h->memory, h->flows, h->flows_count * sizeof(*h->flows));
	h->flows = NULL;
	h->flows_count = h->unfinished = 0;
}

static bool is_ours(const struct node_host *h, uint32_t rank)
{
	return rank - h->nics[0].rank < h->nics_count;
}

static int check_spec(const struct node_host *h, const struct workload_spec *spec, uint32_t *count)
{
	*count = 0;
	if (spec->kind > WORKLOAD_INCAST || spec->flows_count == 0 || spec->flows == NULL ||
		spec->size_bytes == 0)
		return -DSF_E_BADFIELD;
	if (spec->kind == WORKLOAD_UDP ? spec->size_bytes < NODE_HOST_UDP_HEAD ||
						 spec->size_bytes > UINT16_MAX - IP_UDP_SIZE
				       : spec->size_bytes > METAROCE_MESSAGE_BYTES_MAX)
		return -DSF_E_BADFIELD;
	if (spec->iterations == 0 && dsf_time_is_never(spec->stop_at))
		return -DSF_E_BADFIELD; /* would never end */
	if (spec->flows_count > NODE_HOST_FLOWS_MAX)
		return -DSF_E_TOOBIG;
	for (uint32_t i = 0; i < spec->flows_count; i++) {
		const struct workload_flow *f = &spec->flows[i];

		if (f->source >= h->topo->endpoints_count ||
			f->target >= h->topo->endpoints_count || f->source == f->target)
			return -DSF_E_BADFIELD;
		*count += is_ours(h, f->source);
		*count += is_ours(h, f->target);
	}
	return 0;
}

int node_host_flow_start(struct node_host *h, const struct workload_spec *spec, dsf_instant now)
{
	uint32_t count, made = 0;
	int err = check_spec(h, spec, &count);

	if (err < 0)
		return err;
	/* Stop it first. What a stopped one still has under way is given up: its receivers may have
	 * gone already, and then it would never end. */
	if (h->unfinished > 0 && !dsf_time_due(h->spec.stop_at, now))
		return -DSF_E_STATE;
	node_host_flow_close(h);
	h->spec = *spec;
	h->spec.flows = NULL;
	h->run = (uint32_t)dsf_mix(spec->seed ^ dsf_mix(spec->start_at.ns + 1));
	if (count == 0)
		return 0;
	h->flows = dsf_memory_new(h->memory, count * sizeof(*h->flows));
	if (h->flows == NULL || dsf_heap_reserve(&h->timers, 2 * count) < 0) {
		dsf_memory_delete(h->memory, h->flows, count * sizeof(*h->flows));
		h->flows = NULL;
		return -DSF_E_NOMEM;
	}
	h->flows_count = count;
	for (uint32_t i = 0; i < spec->flows_count && err == 0; i++) {
		if (is_ours(h, spec->flows[i].target))
			err = open_flow(h, &h->flows[made++], i, &spec->flows[i], false, now);
		if (err == 0 && is_ours(h, spec->flows[i].source))
			err = open_flow(h, &h->flows[made++], i, &spec->flows[i], true, now);
	}
	if (err < 0) {
		node_host_flow_close(h);
		return err;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!h->flows[i].sender)
			continue;
		h->unfinished++;
		(void)dsf_heap_set(
			&h->timers, &h->flows[i].start, dsf_time_max(spec->start_at, now));
	}
	dsf_trace_emit(h->trace, now, DSF_EVENT_WORKLOAD_STARTED, h->index, h->unfinished, 0);
	return 0;
}

void node_host_flow_ended(struct node_host *h, struct node_host_flow *flow, dsf_instant now)
{
	if (flow->told)
		return;
	flow->told = true;
	flow->stopped = true;
	assert(h->unfinished > 0);
	if (--h->unfinished == 0)
		dsf_trace_emit(
			h->trace, now, DSF_EVENT_WORKLOAD_DONE, h->index, flow->completed, 0);
}

/* Posts what may be under way; ends the flow when nothing is and nothing will be. */
static void post(struct node_host *h, struct node_host_flow *flow, dsf_instant now)
{
	const struct workload_spec *spec = &h->spec;

	if (dsf_time_due(spec->stop_at, now))
		flow->stopped = true;
	while (!flow->stopped && (spec->iterations == 0 || flow->posted < spec->iterations) &&
		flow->posted - flow->sent < NODE_HOST_MESSAGES_UNSENT &&
		flow->posted - flow->completed - flow->failed < NODE_HOST_MESSAGES_OPEN) {
		struct metaroce_write w = { .memory = flow->memory,
			.offset = flow->posted * spec->size_bytes,
			.size = (uint32_t)spec->size_bytes,
			.address = flow->posted * spec->size_bytes,
			.key = stream_number(h, flow, false),
			.user = flow->posted };

		if (metaroce_post_write(flow->nic->transport, flow->qp, &w, now) < 0) {
			flow->failed++; /* counted as lost: the message never went */
			flow->stopped = true;
		}
		flow->posted++;
		if (dsf_time_is_never(flow->first_at))
			flow->first_at = now;
	}
	if (flow->posted == flow->completed + flow->failed)
		node_host_flow_ended(h, flow, now);
}

void node_host_flow_sent(struct node_host *h, struct node_host_flow *flow, dsf_instant now)
{
	flow->sent++;
	post(h, flow, now);
}

void node_host_flow_completions(struct node_host *h, struct node_host_nic *nic, dsf_instant now)
{
	struct metaroce_completion c;

	while (metaroce_complete(nic->transport, &c)) {
		struct node_host_flow *flow = (struct node_host_flow *)(uintptr_t)c.qp_user;

		if (c.status < 0) {
			flow->failed++;
			flow->stopped = true; /* a stream that has failed takes no more */
		} else {
			flow->completed++;
			flow->bytes += c.size;
			dsf_histogram_add(flow->fct, dsf_time_since(c.posted_at, now));
		}
		flow->last_at = now;
		post(h, flow, now);
	}
}

void node_host_flow_stop(struct node_host *h, dsf_instant now)
{
	h->spec.stop_at = dsf_time_min(h->spec.stop_at, now);
	for (uint32_t i = 0; i < h->flows_count; i++) {
		struct node_host_flow *flow = &h->flows[i];

		if (!flow->sender)
			continue;
		dsf_heap_remove(&h->timers, &flow->start);
		flow->stopped = true;
		if (flow->udp != NULL)
			node_host_udp_due(h, flow, now);
		else
			post(h, flow, now);
	}
}

void node_host_flow_expire(struct node_host *h, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&h->timers), now)) {
		struct node_host_flow *flow =
			DSF_CONTAINER(dsf_heap_first(&h->timers), struct node_host_flow, start);

		dsf_heap_remove(&h->timers, &flow->start);
		if (flow->udp != NULL)
			node_host_udp_due(h, flow, now);
		else
			post(h, flow, now);
	}
}

/* Nothing more will come: all that was promised came, or nobody sends any more. */
static bool receiver_done(const struct node_host_flow *flow, const struct node_row_flow *row,
	bool failed, dsf_instant now)
{
	const struct node_host *h = flow->host;
	dsf_instant quiet = h->spec.stop_at;

	if (h->spec.iterations > 0 && row->messages >= h->spec.iterations)
		return true;
	if (failed)
		return true; /* the sender has lost its state, or was given up */
	if (flow->udp != NULL)
		quiet = dsf_time_min(quiet, node_host_udp_end(h, flow));
	if (dsf_time_is_never(quiet))
		return false;
	if (!dsf_time_is_never(row->last_at))
		quiet = dsf_time_max(quiet, row->last_at);
	return dsf_time_due(dsf_time_after(quiet, grace_ns(h)), now);
}

void node_host_flow_row(
	const struct node_host_flow *flow, struct node_row_flow *row, dsf_instant now)
{
	struct metaroce_qp_view view = { .status = 0 };

	row->source = flow->flow.source;
	row->target = flow->flow.target;
	row->sender = flow->sender;
	row->messages = flow->completed;
	row->bytes = flow->bytes;
	row->bytes_wrong = flow->bytes_wrong;
	row->duplicated = flow->duplicated;
	row->reordered = flow->reordered;
	row->lost = flow->failed;
	row->first_at = flow->first_at;
	row->last_at = flow->last_at;
	row->fct = flow->fct;
	if (flow->qp != NULL) {
		metaroce_qp_look(flow->qp, &view);
		row->retransmits = view.retransmits;
		row->ecn_marks = view.marked;
		if (!flow->sender) {
			row->messages = view.messages_received;
			row->bytes = view.bytes_received;
			row->bytes_wrong = view.bytes_wrong;
			row->first_at = view.first_rx_at;
			row->last_at = view.last_rx_at;
		}
	}
	if (flow->udp != NULL && !flow->sender) {
		row->ecn_marks = flow->marked;
		row->lost = flow->udp->highest - flow->udp->unique;
	}
	row->done = flow->sender ? flow->told : receiver_done(flow, row, view.status < 0, now);
}
