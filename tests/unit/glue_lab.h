/*
 * glue_lab.h - the simulator around one real device
 *
 * The program is linked with --wrap for the functions of node.h, so that this file stands between
 * the drivers and the nodes, neither of which knows. While a list is recorded all devices are real
 * and what is sent to the device under test is noted. When it is played, only the device under test
 * is real; the others send what the list says.
 */
#ifndef DSF_TESTS_GLUE_LAB_H
#define DSF_TESTS_GLUE_LAB_H
#include <assert.h>
#include "base/err.h"
#include "base/rng.h"
#include "node/node.h"
#include "sim/sim.h"
#include "tests/unit/glue_list.h"

#define GLUE_AHEAD_MAX_NS 400u /* how long before its departure a frame is put out, at most */

struct glue_lab {
	const struct topo *topo;
	uint32_t self; /* node under test */
	bool record;
	struct glue_list *inputs;
	struct glue_list *told; /* what the device was told, refused frames left out */
	struct glue_list *sent; /* what reached the far end, or the host port */
	struct dsf_rng rng;
};

static struct glue_lab glue;

struct cue {
	dsf_instant at;
	const struct glue_item *item;
};

/* What drivers hold as a node. */
struct player {
	struct node *real; /* NULL: plays the list */
	uint32_t index;
	struct cue *cues;
	uint32_t count, ready, next;
};

/* A host's frame with all its payload. */
struct whole_frame {
	void *buffer;
	uint8_t bytes[];
};

struct node *__real_node_new(const struct node_config *config, dsf_instant now);
void __real_node_free(struct node *n);
int __real_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now);
void __real_node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now);
dsf_instant __real_node_deadline(const struct node *n);
void __real_node_expire(struct node *n, dsf_instant now);
bool __real_node_output(struct node *n, struct node_output *out, dsf_instant now);
void __real_node_frame_done(struct node *n, void *buffer);
int __real_node_command(struct node *n, const struct node_command *command, dsf_instant now);
bool __real_node_ready(const struct node *n);
struct node *__wrap_node_new(const struct node_config *config, dsf_instant now);
void __wrap_node_free(struct node *n);
int __wrap_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now);
void __wrap_node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now);
dsf_instant __wrap_node_deadline(const struct node *n);
void __wrap_node_expire(struct node *n, dsf_instant now);
bool __wrap_node_output(struct node *n, struct node_output *out, dsf_instant now);
void __wrap_node_frame_done(struct node *n, void *buffer);
int __wrap_node_command(struct node *n, const struct node_command *command, dsf_instant now);
bool __wrap_node_ready(const struct node *n);

static struct player *player_of(const struct node *n)
{
	return (struct player *)(uintptr_t)n;
}

/* The port at the other end of a port. */
static const struct topo_port *far_port(uint32_t node, uint32_t number)
{
	return &glue.topo->ports[topo_node_port(glue.topo, &glue.topo->nodes[node], number)->peer];
}

static int compare_cues(const void *left, const void *right)
{
	const struct cue *a = left, *b = right;

	if (a->at.ns != b->at.ns)
		return a->at.ns < b->at.ns ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

/* When each frame is put out: some time before it departs, so that frames of different ports that
 * are due at one instant are put out in any order; those of one port in theirs. */
static void write_cues(struct player *p)
{
	dsf_instant last[TOPO_PORTS_PER_SWITCH] = { { 0 } };

	p->cues = calloc(glue.inputs->count, sizeof(*p->cues));
	for (uint32_t i = 0; i < glue.inputs->count; i++) {
		const struct glue_item *item = &glue.inputs->items[i];
		uint64_t ahead_ns = dsf_rng_below(&glue.rng, GLUE_AHEAD_MAX_NS);
		dsf_instant at = { item->at.ns > ahead_ns ? item->at.ns - ahead_ns : 0 };

		if (item->kind != GLUE_FRAME)
			continue;
		at = dsf_time_max(at,
			dsf_time_after(
				glue_list_carrier_before(glue.inputs, item->port, item->at), 1));
		at = dsf_time_min(dsf_time_max(at, last[item->port]), item->at);
		last[item->port] = dsf_time_max(last[item->port], at);
		if (far_port(glue.self, item->port)->node == p->index)
			p->cues[p->count++] = (struct cue){ at, item };
	}
	qsort(p->cues, p->count, sizeof(*p->cues), compare_cues);
}

struct node *__wrap_node_new(const struct node_config *config, dsf_instant now)
{
	struct player *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->index = config->index;
	if (glue.record || p->index == glue.self)
		p->real = __real_node_new(config, now);
	else
		write_cues(p);
	return (struct node *)(void *)p;
}

void __wrap_node_free(struct node *n)
{
	if (player_of(n)->real != NULL)
		__real_node_free(player_of(n)->real);
	free(player_of(n)->cues);
	free(player_of(n));
}

int __wrap_node_frame_input(
	struct node *n, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	struct player *p = player_of(n);
	int err;

	if (p->real == NULL) {
		glue_list_add(glue.sent, GLUE_FRAME, far_port(p->index, port)->number, now,
			frame->bytes, frame->stored);
		return 0;
	}
	err = __real_node_frame_input(p->real, port, frame, now);
	if (p->index == glue.self && err != -DSF_E_STATE)
		glue_list_add(glue.told, GLUE_FRAME, port, now, NULL, frame->size);
	return err;
}

void __wrap_node_carrier(struct node *n, uint32_t port, bool up, dsf_instant now)
{
	struct player *p = player_of(n);

	if (p->index == glue.self) {
		glue_list_add(glue.told, up ? GLUE_UP : GLUE_DOWN, port, now, NULL, 0);
		if (glue.record)
			glue_list_add(glue.inputs, up ? GLUE_UP : GLUE_DOWN, port, now, NULL, 0);
	}
	if (p->real != NULL)
		__real_node_carrier(p->real, port, up, now);
}

dsf_instant __wrap_node_deadline(const struct node *n)
{
	const struct player *p = player_of(n);

	if (p->real != NULL)
		return __real_node_deadline(p->real);
	return p->ready == p->count ? DSF_NEVER : p->cues[p->ready].at;
}

void __wrap_node_expire(struct node *n, dsf_instant now)
{
	struct player *p = player_of(n);

	if (p->index == glue.self)
		glue_list_add(glue.told, GLUE_EXPIRE, 0, now, NULL, 0);
	if (p->real != NULL) {
		__real_node_expire(p->real, now);
		return;
	}
	while (p->ready < p->count && dsf_time_due(p->cues[p->ready].at, now))
		p->ready++;
}

/* The payload that a simulated host only names. */
static void make_whole(struct node_output *out)
{
	struct whole_frame *whole = malloc(sizeof(*whole) + out->size);

	if (whole == NULL)
		abort();
	whole->buffer = out->buffer;
	memcpy(whole->bytes, out->head, out->head_size);
	for (uint32_t i = out->head_size; i < out->size; i++)
		whole->bytes[i] = (uint8_t)dsf_rng_next(&glue.rng);
	out->head = whole->bytes;
	out->head_size = out->size;
	out->buffer = whole;
}

static bool is_host(const struct player *p)
{
	return glue.topo->nodes[p->index].role == TOPO_ROLE_HOST;
}

static bool output_of_real(struct player *p, struct node_output *out, dsf_instant now)
{
	const struct topo_port *far;

	if (!__real_node_output(p->real, out, now))
		return false;
	if (is_host(p))
		make_whole(out);
	if (p->index == glue.self && out->port == NODE_PORT_INBAND)
		glue_list_add(
			glue.sent, GLUE_FRAME, out->port, out->depart, out->head, out->head_size);
	if (!glue.record || out->port == NODE_PORT_INBAND)
		return true;
	far = far_port(p->index, out->port);
	if (far->node == glue.self)
		glue_list_add(glue.inputs, GLUE_FRAME, far->number, out->depart, out->head,
			out->head_size);
	return true;
}

bool __wrap_node_output(struct node *n, struct node_output *out, dsf_instant now)
{
	struct player *p = player_of(n);
	const struct glue_item *item;

	if (p->real != NULL)
		return output_of_real(p, out, now);
	if (p->next == p->ready)
		return false;
	item = p->cues[p->next++].item;
	*out = (struct node_output){ .kind = NODE_OUTPUT_FRAME,
		.port = far_port(glue.self, item->port)->number,
		.depart = item->at,
		.head = item->bytes,
		.head_size = item->size,
		.size = item->size,
		.checksum_start = NODE_CHECKSUM_NONE,
		.checksum_offset = NODE_CHECKSUM_NONE };
	return true;
}

void __wrap_node_frame_done(struct node *n, void *buffer)
{
	struct player *p = player_of(n);
	struct whole_frame *whole = buffer;

	if (p->real == NULL)
		return;
	if (!is_host(p)) {
		__real_node_frame_done(p->real, buffer);
		return;
	}
	__real_node_frame_done(p->real, whole->buffer);
	free(whole);
}

int __wrap_node_command(struct node *n, const struct node_command *command, dsf_instant now)
{
	return __real_node_command(player_of(n)->real, command, now);
}

bool __wrap_node_ready(const struct node *n)
{
	return __real_node_ready(player_of(n)->real);
}

#endif
