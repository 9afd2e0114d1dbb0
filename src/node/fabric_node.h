/*
 * fabric_node.h - FDSW and SDSW: cells in, cells out
 */
#ifndef DSF_NODE_FABRIC_NODE_H
#define DSF_NODE_FABRIC_NODE_H
#include "node/cells.h"

struct node_fabric;

struct node_fabric *node_fabric_new(const struct node_config *config, dsf_instant now);
void node_fabric_free(struct node_fabric *f);
int node_fabric_frame_input(
	struct node_fabric *f, uint32_t port, const struct node_frame *frame, dsf_instant now);
void node_fabric_carrier(struct node_fabric *f, uint32_t port, bool up, dsf_instant now);
dsf_instant node_fabric_deadline(const struct node_fabric *f);
void node_fabric_expire(struct node_fabric *f, dsf_instant now);
bool node_fabric_output(struct node_fabric *f, struct node_output *out, dsf_instant now);
void node_fabric_frame_done(struct node_fabric *f, void *buffer);
int node_fabric_command(struct node_fabric *f, const struct node_command *command, dsf_instant now);
bool node_fabric_ready(const struct node_fabric *f);
void node_fabric_view(const struct node_fabric *f, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user);

#endif
