#include "ip/neighbor.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

static struct ip_neighbor make(uint8_t last, uint32_t system_port)
{
	struct ip_neighbor n = { .address = { { 0xfd, 0x5f, [15] = last } },
		.system_port = system_port,
		.state = IP_NEIGHBOR_STATIC };

	return n;
}

/* The system ports in order of iteration, as decimal digits. */
static uint64_t walk(const struct ip_neighbor_table *t)
{
	const struct ip_neighbor *n = NULL;
	uint64_t digits = 0;

	while ((n = ip_neighbor_next(t, n)) != NULL)
		digits = digits * 10 + n->system_port;
	return digits;
}

int main(void)
{
	struct test_memory memory = TEST_MEMORY(memory);
	struct ip_neighbor n = make(1, 1);
	struct ip_neighbor_table base, t;

	ip_neighbor_init(&base, &memory.memory, NULL);
	ip_neighbor_init(&t, &memory.memory, &base);
	TAP_OK(ip_neighbor_lookup(&t, &n.address) == NULL, "an empty table knows nobody");
	TAP_EQ(walk(&t), 0, "and shows nobody");
	for (uint8_t i = 1; i <= 3; i++) {
		n = make(i, i);
		TAP_EQ(ip_neighbor_set(&base, &n), 0, "base has neighbour %u", i);
	}
	TAP_OK(ip_neighbor_lookup(&t, &n.address)->system_port == 3, "the base is seen through");
	n.system_port = 7;
	TAP_EQ(ip_neighbor_set(&t, &n), 0, "the table says otherwise");
	TAP_OK(ip_neighbor_lookup(&t, &n.address)->system_port == 7, "and hides the base");
	n = make(4, 8);
	TAP_EQ(ip_neighbor_set(&t, &n), 0, "the table knows one more");
	TAP_EQ(walk(&t), 7812, "own first, then what the base has beside");
	n = make(3, 0);
	TAP_EQ(ip_neighbor_remove(&t, &n.address), 0, "removed from the table");
	TAP_OK(ip_neighbor_lookup(&t, &n.address)->system_port == 3, "the base is seen again");
	TAP_EQ(ip_neighbor_remove(&t, &n.address), -DSF_E_UNKNOWN,
		"the base can't be removed from");
	n = make(9, 9);
	memory.fail_at = 1;
	while (ip_neighbor_set(&t, &n) == 0) /* until a new slab or bucket array is needed */
		n.address.bytes[14]++;
	TAP_EQ(ip_neighbor_set(&t, &n), 0, "goes on after memory was short");
	ip_neighbor_close(&t);
	ip_neighbor_close(&base);
	TAP_EQ(memory.live, 0, "nothing leaks");
	return TAP_DONE();
}
