#include "node/report.h"
#include "base/err.h"
#include "fabric/packet.h"
#include "ip/packet.h"
#include "metaroce/wire.h"

#define PPM   1000000u
#define LARGE ((unsigned __int128)PPM << 64)

/* Headers of a WRITE packet behind UDP, with its RETH of 16; no ICRC. */
#define WRITE_HEADER_BYTES (METAROCE_MCH_SIZE + METAROCE_MSGH_SIZE + METAROCE_BTH_SIZE + 16u)

int node_report_init(struct node_report *r, const struct topo *topo,
	const struct workload_spec *spec, const struct dsf_memory *memory)
{
	memset(r, 0, sizeof(*r));
	r->topo = topo;
	r->spec = spec;
	r->memory = memory;
	r->flows = dsf_memory_new(memory, spec->flows_count * sizeof(*r->flows));
	return r->flows == NULL ? -DSF_E_NOMEM : 0;
}

void node_report_clear(struct node_report *r)
{
	struct node_report empty = {
		.topo = r->topo, .spec = r->spec, .memory = r->memory, .flows = r->flows
	};

	memset(r->flows, 0, r->spec->flows_count * sizeof(*r->flows));
	*r = empty;
}

void node_report_close(struct node_report *r)
{
	dsf_memory_delete(r->memory, r->flows, r->spec->flows_count * sizeof(*r->flows));
	r->flows = NULL;
}

static struct node_report_flow *find_flow(
	const struct node_report *r, uint32_t source, uint32_t target)
{
	uint32_t low = 0, high = r->spec->flows_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct workload_flow *f = &r->spec->flows[middle];

		if (f->source == source && f->target == target)
			return &r->flows[middle];
		if (f->source < source || (f->source == source && f->target < target))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static const struct topo_node *switch_of(const struct topo *t, uint32_t rank)
{
	for (uint32_t plane = 0; plane < t->planes; plane++) {
		const struct topo_port *port = topo_endpoint_port(t, rank, plane);

		if (port != NULL)
			return &t->nodes[t->ports[port->peer].node];
	}
	return NULL;
}

static void add_bytes(struct node_report *r, const struct node_row_flow *row)
{
	const struct topo_node *a = switch_of(r->topo, row->source);
	const struct topo_node *b = switch_of(r->topo, row->target);

	r->bytes += row->bytes;
	if (a == NULL || b == NULL)
		return;
	if (a == b)
		r->bytes_local += row->bytes;
	else if (a->building != b->building)
		r->bytes_l3 += row->bytes;
	else if (a->cluster != b->cluster)
		r->bytes_spine += row->bytes;
	else
		r->bytes_zone += row->bytes;
}

int node_report_add(struct node_report *r, const struct node_row_flow *row)
{
	struct node_report_flow *f = find_flow(r, row->source, row->target);

	if (f == NULL)
		return -DSF_E_UNKNOWN;
	r->ecn_marks += row->ecn_marks; /* a half counts what came marked to it */
	if (row->fct != NULL)
		dsf_histogram_merge(&r->fct, row->fct);
	if (row->sender) {
		f->sender_seen = true;
		f->sender_done = row->done;
		f->sent_messages = row->messages;
		f->failed = row->lost;
		f->first_at = row->first_at;
		f->completed_at = row->last_at;
		r->retransmits += row->retransmits;
		return 0;
	}
	f->receiver_seen = true;
	f->receiver_done = row->done;
	f->messages = row->messages;
	f->bytes = row->bytes;
	f->last_at = row->last_at;
	add_bytes(r, row);
	r->bytes_wrong += row->bytes_wrong;
	r->messages += row->messages;
	f->missed = row->lost;
	r->duplicated += row->duplicated;
	r->reordered += row->reordered;
	return 0;
}

bool node_report_done(const struct node_report *r)
{
	for (uint32_t i = 0; i < r->spec->flows_count; i++) {
		const struct node_report_flow *f = &r->flows[i];
		bool no_more =
			!f->sender_seen ||
			(f->sender_done && (f->failed > 0 || f->messages >= f->sent_messages));

		if (f->sender_seen && !f->sender_done)
			return false;
		if (f->receiver_seen && !f->receiver_done && !no_more)
			return false;
	}
	return true;
}

bool node_report_sent(const struct node_report *r)
{
	for (uint32_t i = 0; i < r->spec->flows_count; i++)
		if (r->flows[i].sender_seen && !r->flows[i].sender_done)
			return false;
	return true;
}

/* Only the two ends together know what never came. */
static uint64_t lost_of(const struct node_report *r, const struct node_report_flow *f)
{
	uint64_t due = f->sent_messages + f->failed;
	bool cut_short = !f->sender_seen || !f->receiver_seen || f->failed > 0;

	if (cut_short && r->spec->iterations > due)
		due = r->spec->iterations;
	if (due < f->messages + f->missed)
		return f->missed;
	return due - f->messages;
}

/* Payload and wire bytes of one message. */
static void message_bytes(const struct node_report *r, uint64_t *payload, uint64_t *wire)
{
	uint64_t overhead =
		FABRIC_ETHERNET_OVERHEAD + IP_ETHERNET_SIZE + IP_HEADER_SIZE + IP_UDP_SIZE;
	uint64_t packets = 1, size = r->spec->size_bytes;

	if (r->spec->kind != WORKLOAD_UDP) {
		uint32_t most = r->topo->transport.payload_bytes;

		overhead += WRITE_HEADER_BYTES;
		packets = (size + most - 1) / most;
	}
	*payload = size;
	*wire = size + packets * overhead;
}

static uint64_t port_rate(const struct node_report *r, uint32_t rank)
{
	uint64_t sum = 0;

	for (uint32_t plane = 0; plane < r->topo->planes; plane++) {
		const struct topo_port *port = topo_endpoint_port(r->topo, rank, plane);

		if (port != NULL &&
			(r->spec->kind != WORKLOAD_UDP || r->spec->plane == UINT32_MAX ||
				r->spec->plane == plane))
			sum += r->topo->links[port->link].rate_bps;
	}
	return sum;
}

/* Sum of the port rates of the distinct ranks at one end; 0 when one of them is unlimited. */
static uint64_t end_rates(const struct node_report *r, bool sources, uint64_t *seen)
{
	uint64_t sum = 0;

	memset(seen, 0, (r->topo->endpoints_count + 63) / 64 * sizeof(*seen));
	for (uint32_t i = 0; i < r->spec->flows_count; i++) {
		const struct workload_flow *f = &r->spec->flows[i];
		uint32_t rank = sources ? f->source : f->target;
		uint64_t rate = port_rate(r, rank);

		if (seen[rank / 64] >> (rank % 64) & 1u)
			continue;
		seen[rank / 64] |= 1ull << (rank % 64);
		if (rate == 0)
			return 0;
		if (sources && r->spec->kind == WORKLOAD_UDP && r->spec->rate_bps > 0 &&
			r->spec->rate_bps < rate)
			rate = r->spec->rate_bps;
		sum += rate;
	}
	return sum;
}

static uint64_t ideal_bps(const struct node_report *r)
{
	size_t size = (r->topo->endpoints_count + 63) / 64 * sizeof(uint64_t);
	uint64_t *seen = dsf_memory_new(r->memory, size);
	uint64_t sources, targets, payload, wire;

	if (seen == NULL)
		return 0;
	sources = end_rates(r, true, seen);
	targets = end_rates(r, false, seen);
	dsf_memory_delete(r->memory, seen, size);
	message_bytes(r, &payload, &wire);
	if (targets == 0 || (sources > 0 && sources < targets))
		targets = sources;
	return wire == 0 ? 0 : (uint64_t)((unsigned __int128)targets * payload / wire);
}

static uint64_t rate_of(uint64_t bytes, uint64_t ns)
{
	return ns == 0 ? 0 : (uint64_t)((unsigned __int128)bytes * 8u * NS_PER_S / ns);
}

static uint64_t jain_ppm(const struct node_report *r)
{
	unsigned __int128 squares = 0, sum = 0;

	for (uint32_t i = 0; i < r->spec->flows_count; i++) {
		const struct node_report_flow *f = &r->flows[i];
		uint64_t rate = rate_of(f->bytes, dsf_time_since(f->first_at, f->last_at));

		sum += rate;
		squares += (unsigned __int128)rate * rate;
	}
	if (squares == 0)
		return 0;
	squares *= r->spec->flows_count;
	/* (sum)^2 is never more. Large ones have no room for millionths above them. */
	return (uint64_t)(squares > LARGE ? sum * sum / (squares / PPM)
					  : sum * sum * PPM / squares);
}

/* Of a flow that nothing came of there is no last instant. */
static dsf_instant known(dsf_instant at)
{
	return dsf_time_is_never(at) ? DSF_EPOCH : at;
}

void node_report_finish(struct node_report *r)
{
	dsf_instant first = DSF_NEVER, last = DSF_EPOCH;
	bool complete = r->spec->flows_count > 0;

	for (uint32_t i = 0; i < r->spec->flows_count; i++) {
		const struct node_report_flow *f = &r->flows[i];

		r->lost += lost_of(r, f);
		complete = complete && f->sender_seen && f->receiver_seen && f->messages > 0;
		if (!f->sender_seen || !f->receiver_seen)
			continue;
		first = dsf_time_min(first, f->first_at);
		last = dsf_time_max(last, dsf_time_max(known(f->last_at), known(f->completed_at)));
	}
	/* Datagrams promise nothing: what came must be right, and lost says what didn't. */
	r->verified = complete && r->bytes_wrong == 0 && r->duplicated == 0 &&
		      (r->lost == 0 || r->spec->kind == WORKLOAD_UDP);
	r->duration_ns = dsf_time_since(first, last);
	r->goodput_bps = rate_of(r->bytes - r->bytes_wrong, r->duration_ns);
	r->goodput_ideal_bps = ideal_bps(r);
	r->jain_ppm = jain_ppm(r);
}
