/*
 * lab.h - a whole fabric in virtual time, and the checkers that hold for any of them
 *
 * A test is a function of a seed. main() is lab_main(argc, argv, test, seeds): it runs the test
 * for seeds 1 to `seeds` and those kept in tests/sim/seeds, or for the numbers that were given as
 * arguments; DSF_SEEDS asks for more (or fewer) seeds. A check that fails names the program and the
 * seed, which is the line that replays it.
 */
#ifndef DSF_TESTS_LAB_H
#define DSF_TESTS_LAB_H
#include <inttypes.h>
#include <stdio.h>
#include "base/err.h"
#include "base/rng.h"
#include "tests/sim/generator.h"
#include "topo/model.h"

struct lab {
	struct topo *topo;
	struct sim *sim;
	uint64_t seed;
	struct dsf_rng rng;
	struct dsf_trace trace;
	uint64_t events[DSF_EVENT_COUNT];
};

/* What all devices have counted. */
struct lab_totals {
	uint64_t cells_tx, cells_rx;     /* of all kinds */
	uint64_t cells_lost;             /* gaps that receivers saw */
	uint64_t impaired, corrupt;      /* cells */
	uint64_t link_down, unreachable; /* cells */
	uint64_t fabric_drops;
	uint64_t reassembly_errors, reassembled;
	uint64_t voq_drops, watchdog_drops, ecn_marks;
	uint64_t egress_drops, ethernet_impaired, ethernet_corrupt;
	uint64_t errors[DSF_ERR_COUNT];
	uint64_t credits_sent, credits_received;
	uint64_t voq_packets;  /* waiting */
	uint64_t voq_watchdog_drops;
	uint64_t over_granted; /* VOQs that got more than they asked for */
};

int lab_main(int argc, char **argv, void (*test)(uint64_t seed), uint64_t seeds);

/* LAB_OK(held, "what held", ...): a TAP result, with the line that replays it where it didn't. */
#define LAB_OK(held, ...) lab_result((held), __FILE__, __LINE__, #held, __VA_ARGS__)
bool lab_result(bool held, const char *file, int line, const char *text, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Labs opened from now on run FSDB, and divide its durations by dilation. By default they don't,
 * for packets that no flow has sent would be counted where they are lost. */
void lab_sessions(uint32_t dilation);

/* Opens a shipped topology by its file name, or one whose text is given. Ends the program when it
 * can't. Ready within 10 ms of virtual time, or the check fails. */
void lab_open(struct lab *l, const char *file, uint64_t seed);

/* The text of a shipped topology, until the next call. */
const char *lab_read(const char *file);
void lab_open_text(struct lab *l, const char *text, uint64_t seed);
void lab_close(struct lab *l);

/* Text of a zone: one host a unit and rail ... see lab.c; NULL fields take the shipped values. */
struct lab_zone {
	uint32_t planes, units, rails, hosts_per_unit, fdsw;
	const char *gpu_rate, *fabric_rate, *fabric_delay, *fabric_more;
	const char *settings; /* of "fabric", behind a comma */
};
void lab_open_zone(struct lab *l, const struct lab_zone *zone, uint64_t seed);

void lab_run(struct lab *l, uint64_t ns);

/* Until all are ready; false after ns. */
bool lab_wait_ready(struct lab *l, uint64_t ns);

/* Until no VOQ holds a packet and all that was sent has come or is counted; false after ns. */
bool lab_wait_rest(struct lab *l, uint64_t ns);

void lab_total(const struct lab *l, struct lab_totals *t);
void lab_total_node(const struct lab *l, uint32_t node, struct lab_totals *t);

/* Packets that no flow has got and nobody has counted as lost: negative when too many are. */
int64_t lab_missing(const struct lab *l);

/* Flows: every packet right, once, in order. */
void lab_check_order(struct lab *l, const char *name);

/* At rest: every packet came or was counted once; credits; nothing waits. */
void lab_check_rest(struct lab *l, const char *name);

/* No loss of any kind inside the fabric and no reassembly error. */
void lab_check_lossless(struct lab *l, const char *name);

/* Takes all links down and then finds every cell that was ever sent: received, or counted once.
 * Only lab_close may follow. */
void lab_check_cells(struct lab *l, const char *name);

/* Fabric links: of an RDSW number (in order of nodes), its port number i, as a link. */
uint32_t lab_count(const struct lab *l, enum topo_role role);
uint32_t lab_node(const struct lab *l, enum topo_role role, uint32_t number);
uint32_t lab_fabric_port(const struct lab *l, uint32_t node, uint32_t number); /* topo->ports */
uint32_t lab_fabric_ports(const struct lab *l, uint32_t node);

/* The port's row. */
struct node_row_port lab_port(const struct lab *l, uint32_t port);

int lab_impair(struct lab *l, uint32_t port, const struct node_impairment *impairment);

double lab_jain(const double *values, uint32_t count);

#endif
