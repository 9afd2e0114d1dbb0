#include "node/host.h"
#include "node/host_state.h"

#define FRAMES_SLAB 64u

static uint32_t first_rank(const struct topo *t, uint32_t host)
{
	uint32_t low = 0, high = t->endpoints_count;

	/* Ranks are ordered by host. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (topo_endpoint(t, middle).host < host)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int open_nic(
	struct node_host *h, const struct node_config *config, uint32_t rail, dsf_instant now)
{
	struct node_host_nic *nic = &h->nics[rail];
	struct metaroce_config c = { .memory = h->memory,
		.trace = h->trace,
		.node = h->index,
		/* With the instant in it a restarted host's connections are new ones. */
		.seed = dsf_mix(config->seed ^ dsf_mix((uint64_t)h->index << 16 | rail)) ^ now.ns,
		.planes = h->topo->planes,
		.paths = h->topo->transport.paths,
		.payload_bytes = h->topo->transport.payload_bytes,
		.base_rtt_ns = h->topo->base_rtt_ns,
		.probe_min_ns = config->probe_min_ns };

	nic->rank += rail;
	for (uint32_t i = 0; i < METAROCE_PLANES_MAX; i++)
		nic->port[i] = TOPO_NONE;
	for (uint32_t i = 0; i < h->ports_count; i++) {
		const struct node_host_port *p = &h->ports[i];

		if (p->rail != rail || p->plane >= c.planes)
			continue;
		nic->port[p->plane] = i;
		c.address[p->plane] = p->port->address;
		c.rate_bps[p->plane] = p->link->rate_bps;
	}
	nic->transport = metaroce_new(&c);
	return nic->transport == NULL ? -DSF_E_NOMEM : 0;
}

struct node_host *node_host_new(const struct node_config *config, dsf_instant now)
{
	const struct topo_node *self = &config->topo->nodes[config->index];
	struct node_host *h = dsf_memory_new(config->memory, sizeof(*h));
	int err = 0;

	if (h == NULL)
		return NULL;
	h->topo = config->topo;
	h->self = self;
	h->memory = config->memory;
	h->trace = config->trace;
	h->index = config->index;
	h->seed = config->seed;
	h->simulated = config->simulated;
	h->nics_count = self->rails;
	dsf_pool_init(&h->frames, h->memory, sizeof(struct node_host_frame), FRAMES_SLAB,
		NODE_HOST_FRAMES_MAX);
	dsf_heap_init(&h->timers, h->memory);
	h->ports = dsf_memory_new(h->memory, self->ports_count * sizeof(*h->ports));
	h->nics = dsf_memory_new(h->memory, h->nics_count * sizeof(*h->nics));
	if (h->ports == NULL || h->nics == NULL || h->nics_count == 0)
		err = -DSF_E_NOMEM;
	for (uint32_t i = 0; err == 0 && i < self->ports_count; i++) {
		err = node_host_port_init(h, &h->ports[i], i);
		h->ports_count++;
	}
	for (uint32_t i = 0; err == 0 && i < h->nics_count; i++) {
		h->nics[i].rank = first_rank(h->topo, h->index);
		err = open_nic(h, config, i, now);
	}
	if (err == 0)
		return h;
	node_host_free(h);
	return NULL;
}

void node_host_free(struct node_host *h)
{
	if (h == NULL)
		return;
	node_host_flow_close(h);
	for (uint32_t i = 0; h->nics != NULL && i < h->nics_count; i++)
		metaroce_free(h->nics[i].transport);
	for (uint32_t i = 0; i < h->ports_count; i++)
		node_host_port_close(h, &h->ports[i]);
	dsf_memory_delete(h->memory, h->nics, h->nics_count * sizeof(*h->nics));
	dsf_memory_delete(h->memory, h->ports, h->self->ports_count * sizeof(*h->ports));
	dsf_heap_close(&h->timers);
	dsf_pool_close(&h->frames);
	dsf_memory_delete(h->memory, h, sizeof(*h));
}

void node_host_carrier(struct node_host *h, uint32_t port, bool up, dsf_instant now)
{
	if (port < h->ports_count)
		node_host_port_carrier(h, &h->ports[port], up, now);
}

dsf_instant node_host_deadline(const struct node_host *h)
{
	dsf_instant at = dsf_heap_at(&h->timers);

	for (uint32_t i = 0; i < h->nics_count; i++)
		at = dsf_time_min(at, metaroce_deadline(h->nics[i].transport));
	if (h->frames.used == NODE_HOST_FRAMES_MAX)
		return at; /* the driver gives frames back before anything more can leave */
	for (uint32_t i = 0; i < h->ports_count; i++) {
		if (node_host_port_wants(h, &h->ports[i]))
			at = dsf_time_min(at, h->ports[i].free_at);
	}
	return at;
}

void node_host_expire(struct node_host *h, dsf_instant now)
{
	for (uint32_t i = 0; i < h->nics_count; i++) {
		metaroce_expire(h->nics[i].transport, now);
		node_host_flow_completions(h, &h->nics[i], now);
	}
	node_host_flow_expire(h, now);
}

bool node_host_output(struct node_host *h, struct node_output *out, dsf_instant now)
{
	for (uint32_t i = 0; i < h->ports_count; i++) {
		uint32_t port = h->next_port;

		if (node_host_port_output(h, &h->ports[port], out, now))
			return true;
		h->next_port = port + 1 == h->ports_count ? 0 : port + 1;
	}
	return false;
}

void node_host_frame_done(struct node_host *h, void *buffer)
{
	node_host_frame_give(h, buffer);
}

/* All memory of the built-in workloads is pattern memory, which is placed as it comes. */
void node_host_memory_done(struct node_host *h, uint64_t request, int status, dsf_instant now)
{
	(void)request;
	(void)status;
	(void)now;
	(void)node_host_drop(h, -DSF_E_STATE);
}

int node_host_command(struct node_host *h, const struct node_command *command, dsf_instant now)
{
	switch (command->kind) {
	case NODE_COMMAND_IMPAIR:
		if (command->port >= h->ports_count)
			return -DSF_E_UNKNOWN;
		node_host_port_impair(&h->ports[command->port], &command->impairment);
		return 0;
	case NODE_COMMAND_WORKLOAD_START: return node_host_flow_start(h, command->workload, now);
	case NODE_COMMAND_WORKLOAD_STOP: node_host_flow_stop(h, now); return 0;
	case NODE_COMMAND_DRAIN_PORT:
	case NODE_COMMAND_DRAIN_NODE:
	case NODE_COMMAND_STARTED: break; /* of switches */
	}
	return -DSF_E_UNSUPPORTED;
}

bool node_host_ready(const struct node_host *h)
{
	return h->ports_up == h->ports_count;
}
