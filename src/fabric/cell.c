#include "fabric/cell.h"
#include "base/err.h"

const char *fabric_class_name(enum fabric_class class)
{
	switch (class) {
	case FABRIC_CLASS_NC: return "nc";
	case FABRIC_CLASS_RDMA: return "rdma";
	case FABRIC_CLASS_DEFAULT: return "default";
	case FABRIC_CLASSES: break;
	}
	return "unknown";
}

int fabric_train_decode(struct fabric_train *t, const uint8_t *frame, size_t size)
{
	if (size < FABRIC_TRAIN_HEADER)
		return -DSF_E_TRUNCATED;
	if (dsf_load_be16(frame + 12) != FABRIC_ETHERTYPE)
		return -DSF_E_BADFIELD;
	if (frame[14] != FABRIC_TRAIN_VERSION)
		return -DSF_E_VERSION;
	t->flags = frame[15];
	t->cells = dsf_load_be16(frame + 16);
	t->bytes = dsf_load_be16(frame + 18);
	t->source_switch = dsf_load_be16(frame + 20);
	t->source_port = dsf_load_be16(frame + 22);
	t->depart.ns = dsf_load_be64(frame + 24);
	return t->bytes > size - FABRIC_TRAIN_HEADER ? -DSF_E_TRUNCATED : 0;
}

void fabric_train_encode(const struct fabric_train *t, uint8_t *frame)
{
	dsf_store_be16(frame + 12, FABRIC_ETHERTYPE);
	frame[14] = FABRIC_TRAIN_VERSION;
	frame[15] = t->flags;
	dsf_store_be16(frame + 16, t->cells);
	dsf_store_be16(frame + 18, t->bytes);
	dsf_store_be16(frame + 20, t->source_switch);
	dsf_store_be16(frame + 22, t->source_port);
	dsf_store_be64(frame + 24, t->depart.ns);
}

static bool is_credit(uint8_t kind)
{
	return kind == FABRIC_CELL_REQUEST || kind == FABRIC_CELL_GRANT;
}

int fabric_cell_decode(struct fabric_cell *c, const uint8_t *cells, size_t size)
{
	if (size < FABRIC_CELL_HEADER)
		return -DSF_E_TRUNCATED;
	c->kind = cells[0];
	c->flags = cells[1];
	c->source = dsf_load_be16(cells + 6);
	c->destination = dsf_load_be16(cells + 8);
	c->class = cells[10];
	c->index = cells[11];
	c->system_port = dsf_load_be32(cells + 12);
	c->link_sequence = dsf_load_be32(cells + 16);
	if (c->kind == 0 || c->kind >= FABRIC_CELL_KIND_END || c->class >= FABRIC_CLASSES)
		return -DSF_E_BADFIELD;
	if (is_credit(c->kind)) {
		c->size = c->stored = 0;
		c->epoch = dsf_load_be32(cells + 2);
		c->waiting = dsf_load_be32(cells + 20);
		c->total = dsf_load_be64(cells + 24);
		return (int)FABRIC_CELL_HEADER;
	}
	c->size = dsf_load_be16(cells + 2);
	c->stored = dsf_load_be16(cells + 4);
	c->packet_sequence = dsf_load_be32(cells + 20);
	c->packet_size = dsf_load_be16(cells + 24);
	c->packet_stored = dsf_load_be16(cells + 26);
	c->epoch = dsf_load_be32(cells + 28);
	if (c->stored > c->size || c->size > FABRIC_CELL_MAX)
		return -DSF_E_BADFIELD;
	if (c->stored > size - FABRIC_CELL_HEADER)
		return -DSF_E_TRUNCATED;
	return (int)(FABRIC_CELL_HEADER + c->stored);
}

void fabric_cell_encode(const struct fabric_cell *c, uint8_t *at)
{
	at[0] = c->kind;
	at[1] = c->flags;
	dsf_store_be16(at + 6, c->source);
	dsf_store_be16(at + 8, c->destination);
	at[10] = c->class;
	at[11] = c->index;
	dsf_store_be32(at + 12, c->system_port);
	dsf_store_be32(at + 16, c->link_sequence);
	if (is_credit(c->kind)) {
		dsf_store_be32(at + 2, c->epoch);
		dsf_store_be32(at + 20, c->waiting);
		dsf_store_be64(at + 24, c->total);
		return;
	}
	dsf_store_be16(at + 2, c->size);
	dsf_store_be16(at + 4, c->stored);
	dsf_store_be32(at + 20, c->packet_sequence);
	dsf_store_be16(at + 24, c->packet_size);
	dsf_store_be16(at + 26, c->packet_stored);
	dsf_store_be32(at + 28, c->epoch);
}
