#include "fabric/reasm.h"
#include "base/err.h"

#define WINDOW_FIRST 64u

void fabric_reasm_init(struct fabric_reasm *r, const struct dsf_memory *memory,
	struct fabric_packets *packets, uint32_t cell_bytes, uint64_t timeout_ns, uint64_t idle_ns)
{
	memset(r, 0, sizeof(*r));
	r->memory = memory;
	r->packets = packets;
	r->payload_max = cell_bytes - FABRIC_CELL_HEADER;
	r->timeout_ns = timeout_ns;
	r->idle_ns = idle_ns;
	r->sweep_at = DSF_NEVER;
	dsf_hash_init(&r->contexts, memory, sizeof(struct fabric_reasm_key),
		sizeof(struct fabric_reasm_context), FABRIC_REASM_CONTEXTS_MAX);
	dsf_heap_init(&r->timers, memory);
}

static struct fabric_reasm_slot *slot_of(const struct fabric_reasm_context *c, uint32_t sequence)
{
	return &c->slots[sequence & (c->window - 1)];
}

static void free_slot(struct fabric_reasm *r, struct fabric_reasm_slot *slot)
{
	if (slot->packet != NULL)
		fabric_packet_free(r->packets, slot->packet);
	slot->packet = NULL;
}

static void close_context(struct fabric_reasm *r, struct fabric_reasm_context *c)
{
	for (uint32_t i = 0; i < c->window; i++)
		free_slot(r, &c->slots[i]);
	dsf_memory_delete(r->memory, c->slots, c->window * sizeof(*c->slots));
	r->slots -= c->window;
}

void fabric_reasm_close(struct fabric_reasm *r)
{
	struct fabric_packet *packet;

	for (struct fabric_reasm_context *c = dsf_hash_next(&r->contexts, NULL); c != NULL;
		c = dsf_hash_next(&r->contexts, c))
		close_context(r, c);
	while ((packet = fabric_packet_queue_pop(&r->done)) != NULL ||
		(packet = fabric_packet_queue_pop(&r->lost)) != NULL)
		fabric_packet_free(r->packets, packet);
	dsf_hash_close(&r->contexts);
	dsf_heap_close(&r->timers);
}

static struct fabric_reasm_context *find_context(
	struct fabric_reasm *r, const struct fabric_cell *cell, dsf_instant now)
{
	struct fabric_reasm_key key = { cell->system_port, cell->source, cell->class };

	if (r->recent != NULL && memcmp(&r->recent->key, &key, sizeof(key)) == 0)
		return r->recent;
	/* Its timer must never lack a place: what lacks a cell would wait for ever. */
	r->recent = dsf_heap_reserve(&r->timers, r->contexts.count + 1) < 0
			    ? NULL
			    : dsf_hash_put(&r->contexts, &key);
	if (r->recent != NULL && dsf_time_is_never(r->sweep_at))
		r->sweep_at = dsf_time_after(now, r->idle_ns);
	return r->recent;
}

/* Room for sequence in the window: doubles it while it may. */
static int widen(struct fabric_reasm *r, struct fabric_reasm_context *c, uint32_t needed)
{
	uint32_t window = c->window == 0 ? WINDOW_FIRST : c->window;
	struct fabric_reasm_slot *slots;

	while (window < needed)
		window *= 2;
	if (window == c->window)
		return 0;
	if (r->slots + (window - c->window) > FABRIC_REASM_SLOTS_MAX) {
		r->slots_full++;
		return -DSF_E_FULL;
	}
	slots = dsf_memory_new(r->memory, window * sizeof(*slots));
	if (slots == NULL)
		return -DSF_E_NOMEM;
	for (uint32_t i = 0; i < c->window; i++)
		slots[(c->next + i) & (window - 1)] = *slot_of(c, c->next + i);
	dsf_memory_delete(r->memory, c->slots, c->window * sizeof(*c->slots));
	r->slots += window - c->window;
	c->slots = slots;
	c->window = window;
	return 0;
}

static void hand_on(struct fabric_reasm *r, struct fabric_reasm_context *c)
{
	while (c->next != c->end) {
		struct fabric_reasm_slot *slot = slot_of(c, c->next);

		if (slot->packet == NULL || slot->cells_left > 0)
			return;
		c->packet_size = slot->packet->size;
		fabric_packet_queue_push(&r->done, slot->packet);
		slot->packet = NULL;
		c->next++;
		c->synced = true;
		r->packets_done++;
	}
}

/* In place of a packet of which nothing has come: taken to be as long as the last one. */
static void stand_in(struct fabric_reasm *r, const struct fabric_reasm_context *c)
{
	struct fabric_packet *packet = fabric_packet_new(r->packets, 0);

	if (packet == NULL)
		return;
	packet->size = c->packet_size;
	packet->class = (uint8_t)c->key.class;
	packet->source = c->key.source;
	packet->system_port = c->key.system_port;
	fabric_packet_queue_push(&r->lost, packet);
}

/* Gives up what is not whole before sequence limit. A new context that joined late has missed
 * nothing that was sent to it. */
static void give_up(struct fabric_reasm *r, struct fabric_reasm_context *c, uint32_t limit)
{
	for (; c->next != limit; c->next++) {
		struct fabric_reasm_slot *slot = slot_of(c, c->next);

		if (slot->packet != NULL)
			fabric_packet_queue_push(&r->lost, slot->packet);
		else if (c->synced)
			stand_in(r, c);
		r->packets_lost += c->synced || slot->packet != NULL;
		slot->packet = NULL;
	}
}

static void restart(struct fabric_reasm *r, struct fabric_reasm_context *c, uint32_t epoch)
{
	if (c->window > 0)
		give_up(r, c, c->end);
	c->epoch = epoch;
	c->next = c->end = 0;
	c->synced = false;
}

/* Sets next to what is expected when the window can't hold sequence any more. */
static void slide(struct fabric_reasm *r, struct fabric_reasm_context *c, uint32_t sequence)
{
	uint32_t first = sequence - (FABRIC_REASM_WINDOW_MAX - 1);

	if (!c->synced && c->next == c->end) {
		c->next = c->end = first;
		return;
	}
	while ((int32_t)(first - c->next) > 0 && c->next != c->end) {
		give_up(r, c, c->next + 1);
		hand_on(r, c);
	}
	if ((int32_t)(first - c->next) > 0) {
		if (c->synced)
			r->packets_lost += first - c->next;
		c->next = c->end = first;
	}
}

static int check_cell(const struct fabric_reasm *r, const struct fabric_cell *cell)
{
	uint32_t count = (cell->packet_size + r->payload_max - 1u) / r->payload_max;
	uint32_t offset = cell->index * r->payload_max;
	uint32_t present = offset < cell->packet_stored ? cell->packet_stored - offset : 0;

	if (cell->packet_size == 0 || cell->packet_size > FABRIC_PACKET_MAX ||
		cell->packet_stored > cell->packet_size || count > FABRIC_PACKET_CELLS_MAX ||
		cell->index >= count)
		return -DSF_E_BADFIELD;
	if (cell->size != (cell->index + 1u == count ? cell->packet_size - offset : r->payload_max))
		return -DSF_E_BADFIELD;
	/* All that is present of the packet, or its buffer's old bytes would show. */
	return cell->stored != (present < cell->size ? present : cell->size) ? -DSF_E_BADFIELD
									     : (int)count;
}

static struct fabric_packet *start_packet(struct fabric_reasm *r, struct fabric_reasm_slot *slot,
	const struct fabric_cell *cell, int count, dsf_instant now)
{
	struct fabric_packet *packet = fabric_packet_new(r->packets, cell->packet_stored);

	if (packet == NULL)
		return NULL;
	packet->size = cell->packet_size;
	packet->class = cell->class;
	packet->source = cell->source;
	packet->system_port = cell->system_port;
	slot->packet = packet;
	slot->cells_got = 0;
	slot->cells_left = (uint8_t)count;
	slot->started_at = now;
	return packet;
}

static int add_cell(struct fabric_reasm *r, struct fabric_reasm_slot *slot,
	const struct fabric_cell *cell, const uint8_t *payload, int count, dsf_instant now)
{
	struct fabric_packet *packet = slot->packet;
	uint32_t offset = cell->index * r->payload_max;

	if (packet == NULL)
		packet = start_packet(r, slot, cell, count, now);
	if (packet == NULL)
		return -DSF_E_NOMEM;
	if (packet->size != cell->packet_size || packet->stored != cell->packet_stored)
		return -DSF_E_BADFIELD;
	if (slot->cells_got >> cell->index & 1u) {
		r->cells_duplicate++;
		return -DSF_E_DUPLICATE;
	}
	slot->cells_got |= 1ull << cell->index;
	slot->cells_left--;
	if (cell->stored > 0)
		memcpy(packet->bytes + offset, payload, cell->stored);
	return 0;
}

/* The context's first slot that holds something; end when there is none. */
static uint32_t first_pending(const struct fabric_reasm_context *c)
{
	uint32_t at = c->next;

	while (at != c->end && slot_of(c, at)->packet == NULL)
		at++;
	return at;
}

static void set_timer(struct fabric_reasm *r, struct fabric_reasm_context *c)
{
	uint32_t at = first_pending(c);

	if (at != c->end)
		(void)dsf_heap_set(&r->timers, &c->timer,
			dsf_time_after(slot_of(c, at)->started_at, r->timeout_ns));
	else
		dsf_heap_remove(&r->timers, &c->timer);
}

int fabric_reasm_input(struct fabric_reasm *r, const struct fabric_cell *cell,
	const uint8_t *payload, dsf_instant now)
{
	int count = check_cell(r, cell), err;
	struct fabric_reasm_context *c;
	uint32_t ahead;
	bool fresh; /* any sequence may be the first that we see */

	if (count < 0)
		return count;
	c = find_context(r, cell, now);
	if (c == NULL)
		return -DSF_E_NOMEM;
	if (c->epoch != cell->epoch) {
		if (c->epoch != 0 && fabric_epoch_older(cell->epoch, c->epoch))
			return -DSF_E_STALE;
		restart(r, c, cell->epoch);
	}
	ahead = cell->packet_sequence - c->next;
	fresh = !c->synced && c->next == c->end;
	if (!fresh && (int32_t)ahead < 0) {
		r->cells_duplicate++;
		return -DSF_E_STALE;
	}
	if (ahead >= FABRIC_REASM_WINDOW_MAX)
		slide(r, c, cell->packet_sequence);
	err = widen(r, c, cell->packet_sequence - c->next + 1);
	if (err < 0)
		return err;
	err = add_cell(r, slot_of(c, cell->packet_sequence), cell, payload, count, now);
	if (err < 0)
		return err;
	c->used = true;
	if ((int32_t)(cell->packet_sequence + 1 - c->end) > 0)
		c->end = cell->packet_sequence + 1;
	hand_on(r, c);
	if (c->timer.place == 0 && c->next != c->end)
		set_timer(r, c);
	return 0;
}

static void expire_context(struct fabric_reasm *r, struct fabric_reasm_context *c, dsf_instant now)
{
	for (;;) {
		uint32_t at = first_pending(c);
		struct fabric_reasm_slot *slot;

		if (at == c->end)
			break;
		slot = slot_of(c, at);
		if (!dsf_time_due(dsf_time_after(slot->started_at, r->timeout_ns), now))
			break;
		give_up(r, c, slot->cells_left == 0 ? at : at + 1);
		hand_on(r, c);
	}
	set_timer(r, c);
}

static void sweep(struct fabric_reasm *r, dsf_instant now)
{
	struct fabric_reasm_context *next;

	for (struct fabric_reasm_context *c = dsf_hash_next(&r->contexts, NULL); c != NULL;
		c = next) {
		next = dsf_hash_next(&r->contexts, c);
		if (!c->used && c->next == c->end) {
			dsf_heap_remove(&r->timers, &c->timer);
			close_context(r, c);
			dsf_hash_remove(&r->contexts, c);
		} else {
			c->used = false;
		}
	}
	r->recent = NULL;
	r->sweep_at = r->contexts.count > 0 ? dsf_time_after(now, r->idle_ns) : DSF_NEVER;
}

void fabric_reasm_expire(struct fabric_reasm *r, dsf_instant now)
{
	while (dsf_time_due(dsf_heap_at(&r->timers), now))
		expire_context(r,
			DSF_CONTAINER(
				dsf_heap_first(&r->timers), struct fabric_reasm_context, timer),
			now);
	if (dsf_time_due(r->sweep_at, now))
		sweep(r, now);
}
