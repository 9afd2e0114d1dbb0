#include "node/fabric_node.h"

struct node_fabric {
	struct node_cells cells;
};

struct node_fabric *node_fabric_new(const struct node_config *config, dsf_instant now)
{
	struct node_fabric *f = dsf_memory_new(config->memory, sizeof(*f));

	if (f != NULL && node_cells_init(&f->cells, config, now) < 0) {
		dsf_memory_delete(config->memory, f, sizeof(*f));
		return NULL;
	}
	return f;
}

void node_fabric_free(struct node_fabric *f)
{
	const struct dsf_memory *memory = f->cells.memory;

	node_cells_close(&f->cells);
	dsf_memory_delete(memory, f, sizeof(*f));
}

static void settle(struct node_fabric *f, dsf_instant now)
{
	uint32_t destination;

	while (node_cells_next_changed(&f->cells, &destination))
		;
	node_cells_settle(&f->cells, now);
}

static void pass_on(void *owner, uint32_t port, const struct fabric_cell *cell, const uint8_t *raw,
	dsf_instant now)
{
	struct node_fabric *f = owner;

	(void)port;
	/* A train may first change what is reached and then use it. */
	if (f->cells.reach.changed_any)
		settle(f, now);
	node_cells_forward(&f->cells, cell, raw, now);
}

int node_fabric_frame_input(
	struct node_fabric *f, uint32_t port, const struct node_frame *frame, dsf_instant now)
{
	int err = node_cells_input(&f->cells, port, frame, pass_on, f, now);

	settle(f, now);
	return err;
}

void node_fabric_carrier(struct node_fabric *f, uint32_t port, bool up, dsf_instant now)
{
	node_cells_carrier(&f->cells, port, up, now);
	settle(f, now);
}

dsf_instant node_fabric_deadline(const struct node_fabric *f)
{
	return node_cells_deadline(&f->cells);
}

void node_fabric_expire(struct node_fabric *f, dsf_instant now)
{
	node_cells_expire(&f->cells, now);
	settle(f, now);
}

bool node_fabric_output(struct node_fabric *f, struct node_output *out, dsf_instant now)
{
	return node_cells_output(&f->cells, out, now);
}

void node_fabric_frame_done(struct node_fabric *f, void *buffer)
{
	fabric_frame_free(&f->cells.ports, buffer);
}

int node_fabric_command(struct node_fabric *f, const struct node_command *command, dsf_instant now)
{
	int err = node_cells_command(&f->cells, command, now);

	settle(f, now);
	return err;
}

bool node_fabric_ready(const struct node_fabric *f)
{
	return node_cells_ready(&f->cells);
}

void node_fabric_view(const struct node_fabric *f, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user)
{
	if (query == NODE_QUERY_COUNTERS) {
		struct node_row row = { .query = query, .node = f->cells.index };

		row.counters.errors = f->cells.errors;
		node_cells_count(&f->cells, &row.counters);
		row_fn(user, &row);
		return;
	}
	node_cells_view(&f->cells, query, filter, row_fn, user);
}
