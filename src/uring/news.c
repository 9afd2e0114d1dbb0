#include "uring/news.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bitset.h"
#include "base/cursor.h"
#include "topo/bgp.h"
#include "uring/process.h"

#define TOKENS_BURST      200u
#define TOKENS_PER_SECOND 100u

int uring_news_open(struct uring_process *p)
{
	struct uring_news *n = &p->news;

	n->words = p->topo->switch_words;
	n->reached = calloc(3 * (size_t)n->words + 1, sizeof(uint64_t));
	if (n->reached == NULL)
		return -ENOMEM;
	n->told = n->reached + n->words;
	n->changed = n->told + n->words;
	return 0;
}

void uring_news_close(struct uring_process *p)
{
	free(p->news.reached);
	memset(&p->news, 0, sizeof(p->news));
}

/* CLOCK_REALTIME now. */
static uint64_t wall_us(const struct uring_process *p)
{
	return (uring_clock_wall_ns() + (uint64_t)p->clock.realtime_ahead_ns) / NS_PER_US;
}

static void begin_line(struct uring_process *p, const char *event, dsf_instant at, uint64_t wall)
{
	uring_text_print(&p->control.next, "{\"event\":\"%s\",\"at_ns\":%llu,\"wall_us\":%llu",
		event, (unsigned long long)at.ns, (unsigned long long)wall);
}

static void end_line(struct uring_process *p, size_t start)
{
	uring_text_print(&p->control.next, "}");
	uring_text_end_line(&p->control.next, start);
}

void uring_news_started(struct uring_process *p)
{
	size_t start = p->control.next.size;

	begin_line(p, "started", p->clock.last, wall_us(p));
	end_line(p, start);
}

static void tell_ready(struct uring_process *p)
{
	size_t start = p->control.next.size;
	bool ready = node_ready(p->node);

	if (ready == p->news.ready)
		return;
	p->news.ready = ready;
	begin_line(p, "ready", p->now, wall_us(p));
	uring_text_print(&p->control.next, ",\"ready\":%s", ready ? "true" : "false");
	end_line(p, start);
}

static void tell_workload(struct uring_process *p)
{
	size_t start = p->control.next.size;

	if (!p->news.workload_done)
		return;
	p->news.workload_done = false;
	begin_line(p, "workload_done", p->now, wall_us(p));
	end_line(p, start);
}

static bool take_token(struct uring_process *p)
{
	struct uring_news *n = &p->news;
	uint64_t seconds = (p->clock.last_wall_ns - n->filled_at) / NS_PER_S;

	if (seconds > 0) {
		uint64_t filled = n->tokens_left + seconds * TOKENS_PER_SECOND;

		n->tokens_left = filled > TOKENS_BURST ? TOKENS_BURST : (uint32_t)filled;
		n->filled_at = p->clock.last_wall_ns;
	}
	if (n->tokens_left == 0)
		return false;
	n->tokens_left--;
	return true;
}

static void tell_reach(struct uring_process *p)
{
	struct uring_news *n = &p->news;
	size_t start = p->control.next.size;
	uint32_t lost = 0, gained = 0;

	if (!n->reach_changed || !take_token(p))
		return;
	n->reach_changed = false;
	for (uint32_t w = 0; w < n->words; w++) {
		lost += (uint32_t)__builtin_popcountll(n->told[w] & ~n->reached[w]);
		gained += (uint32_t)__builtin_popcountll(n->reached[w] & ~n->told[w]);
	}
	begin_line(p, "reachability", n->reach_at, n->reach_wall_us);
	uring_text_print(&p->control.next,
		",\"changed\":%u,\"lost\":%u,\"gained\":%u,\"reached\":%u",
		dsf_bitset_count(n->changed, n->words), lost, gained,
		dsf_bitset_count(n->reached, n->words));
	end_line(p, start);
	memcpy(n->told, n->reached, n->words * sizeof(uint64_t));
	memset(n->changed, 0, n->words * sizeof(uint64_t));
}

static void tell_missed(struct uring_process *p)
{
	struct uring_news *n = &p->news;
	size_t start = p->control.next.size;

	if (n->missed == 0 || !take_token(p))
		return;
	begin_line(p, "missed", p->now, wall_us(p));
	uring_text_print(&p->control.next, ",\"lines\":%llu", (unsigned long long)n->missed);
	end_line(p, start);
	n->missed = 0;
}

void uring_news_tell(struct uring_process *p)
{
	if (p->control.fd < 0 || uring_control_backlogged(&p->control))
		return; /* told when there is room again */
	tell_reach(p);
	tell_ready(p);
	tell_workload(p);
	tell_missed(p);
}

static void note_reach(struct uring_process *p, const struct dsf_event *event)
{
	struct uring_news *n = &p->news;
	uint32_t destination = (uint32_t)event->a;

	if (event->b > 0)
		dsf_bitset_add(n->reached, destination);
	else
		dsf_bitset_remove(n->reached, destination);
	dsf_bitset_add(n->changed, destination);
	n->reach_changed = true;
	n->reach_at = event->at;
	n->reach_wall_us = wall_us(p);
}

/* What an operator calls it; NULL: no news, or told in another way. */
static const char *name_of(enum dsf_event_kind kind)
{
	switch (kind) {
	case DSF_EVENT_PORT_UP: return "port_up";
	case DSF_EVENT_PORT_DOWN: return "port_down";
	case DSF_EVENT_LINK_LIVE: return "link_up";
	case DSF_EVENT_LINK_SILENT: return "link_down";
	case DSF_EVENT_LINK_ISOLATED: return "link_isolated";
	case DSF_EVENT_LINK_RECOVERED: return "link_healed";
	case DSF_EVENT_LINK_DRAINED: return "link_drained";
	case DSF_EVENT_LINK_UNDRAINED: return "link_undrained";
	case DSF_EVENT_LINK_PEER_DRAINED: return "peer_drained";
	case DSF_EVENT_LINK_PEER_UNDRAINED: return "peer_undrained";
	case DSF_EVENT_SWITCH_DRAINED: return "switch_drained";
	case DSF_EVENT_SWITCH_UNDRAINED: return "switch_undrained";
	case DSF_EVENT_LOOP_DETECTED: return "loop_detected";
	case DSF_EVENT_BALANCE_CUT: return "balance_cut";
	case DSF_EVENT_BALANCE_BACK: return "balance_back";
	case DSF_EVENT_NEIGHBOR_UP: return "neighbor_up";
	case DSF_EVENT_NEIGHBOR_DOWN: return "neighbor_down";
	case DSF_EVENT_FSDB_UP: return "fsdb_up";
	case DSF_EVENT_FSDB_DOWN: return "fsdb_down";
	case DSF_EVENT_FSDB_REJECTED: return "fsdb_rejected";
	case DSF_EVENT_FSDB_STALE: return "fsdb_stale";
	case DSF_EVENT_BGP_UP: return "bgp_up";
	case DSF_EVENT_BGP_DOWN: return "bgp_down";
	case DSF_EVENT_ROUTE_CHANGED: return "route_changed";
	case DSF_EVENT_WATCHDOG_DROPPED: return "watchdog_dropped";
	case DSF_EVENT_PATH_SUSPECT: return "path_suspect";
	case DSF_EVENT_PATH_DEAD: return "path_dead";
	case DSF_EVENT_PATH_GOOD: return "path_good";
	case DSF_EVENT_WORKLOAD_STARTED: return "workload_started";
	case DSF_EVENT_REACH_CHANGED:
	case DSF_EVENT_WORKLOAD_DONE:
	case DSF_EVENT_PACKET_LOST:
	case DSF_EVENT_VOQ_DROPPED:
	case DSF_EVENT_PACKET_DELIVERED:
	case DSF_EVENT_MESSAGE_DONE:
	case DSF_EVENT_RETRANSMIT:
	case DSF_EVENT_COUNT: break;
	}
	return NULL;
}

/* A neighbour of BGP by its number. */
static void print_neighbor(struct uring_process *p, uint64_t number)
{
	char address[DSF_IP6_TEXT_MAX];
	struct topo_bgp_walk walk = { 0 };
	struct topo_bgp_peer peer;

	for (uint64_t i = 0; i <= number; i++)
		if (!topo_bgp_next(p->topo, p->config.index, &walk, &peer))
			return;
	uring_text_print(&p->control.next, ",\"peer\":\"%s\",\"peer_node\":\"%s\"",
		dsf_ip6_text(&peer.address, address), p->topo->nodes[peer.node].name);
}

/* The upper half of an address, where prefixes differ. */
static void print_route(struct uring_process *p, const struct dsf_event *event)
{
	struct dsf_ip6 prefix = { { 0 } };
	char text[DSF_IP6_TEXT_MAX];

	dsf_store_be64(prefix.bytes, event->a);
	uring_text_print(&p->control.next, ",\"prefix\":\"%s/%u\",\"next_hops\":%u",
		dsf_ip6_text(&prefix, text), (uint32_t)(event->b >> 32), (uint32_t)event->b);
}

/* The event's numbers; ports, destinations and the like by name. */
static void print_number(struct uring_process *p, const char *name, uint64_t value)
{
	struct uring_text *t = &p->control.next;

	if (name[0] == '\0')
		return;
	if (strcmp(name, "port") == 0 && value < p->self->ports_count)
		uring_text_print(t, ",\"port\":\"%s\"",
			topo_node_port(p->topo, p->self, (uint32_t)value)->name);
	else if (strcmp(name, "destination") == 0 && value < p->topo->switches_count)
		uring_text_print(t, ",\"destination\":\"%s\"",
			p->topo->nodes[p->topo->switch_node[value]].name);
	else if (strcmp(name, "neighbor") == 0)
		print_neighbor(p, value);
	else
		uring_text_print(t, ",\"%s\":%llu", name, (unsigned long long)value);
}

static void tell_event(struct uring_process *p, const char *name, const struct dsf_event *event)
{
	struct uring_news *n = &p->news;
	size_t start = p->control.next.size;

	if (p->control.fd < 0)
		return;
	if (uring_control_backlogged(&p->control) || !take_token(p)) {
		n->missed++;
		return;
	}
	begin_line(p, name, event->at, wall_us(p));
	if (event->kind == DSF_EVENT_ROUTE_CHANGED) {
		print_route(p, event);
	} else {
		print_number(p, dsf_event_number_name(event->kind, 0), event->a);
		print_number(p, dsf_event_number_name(event->kind, 1), event->b);
	}
	end_line(p, start);
}

void uring_news_trace(struct uring_process *p, const struct dsf_event *event)
{
	const char *name = name_of(event->kind);

	if (event->kind == DSF_EVENT_REACH_CHANGED)
		note_reach(p, event);
	else if (event->kind == DSF_EVENT_WORKLOAD_DONE)
		p->news.workload_done = true;
	else if (name != NULL)
		tell_event(p, name, event);
}
