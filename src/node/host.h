/*
 * host.h - a host: NICs with the MetaRoCE transport and the built-in workloads
 */
#ifndef DSF_NODE_HOST_H
#define DSF_NODE_HOST_H
#include "node/node.h"
#include "node/row.h"

#define NODE_HOST_UDP_PORT 4795u /* of the udp workload; ours */

struct node_host;

struct node_host *node_host_new(const struct node_config *config, dsf_instant now);
void node_host_free(struct node_host *h);
int node_host_frame_input(
	struct node_host *h, uint32_t port, const struct node_frame *frame, dsf_instant now);
void node_host_carrier(struct node_host *h, uint32_t port, bool up, dsf_instant now);
dsf_instant node_host_deadline(const struct node_host *h);
void node_host_expire(struct node_host *h, dsf_instant now);
bool node_host_output(struct node_host *h, struct node_output *out, dsf_instant now);
void node_host_frame_done(struct node_host *h, void *buffer);
void node_host_memory_done(struct node_host *h, uint64_t request, int status, dsf_instant now);
int node_host_command(struct node_host *h, const struct node_command *command, dsf_instant now);
bool node_host_ready(const struct node_host *h);
void node_host_view(const struct node_host *h, enum node_query query, uint32_t filter,
	node_row_fn row_fn, void *user, dsf_instant now);

#endif
