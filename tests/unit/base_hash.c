#include "base/hash.h"
#include "base/rng.h"
#include "tests/memory.h"
#include "tests/tap.h"

struct entry {
	uint64_t key;
	uint32_t value;
};

#define KEYS 500u

/* Random puts, gets and removes against a plain array. */
static void against_a_model(uint64_t seed)
{
	struct test_memory m;
	struct dsf_hash h;
	struct dsf_rng rng;
	uint32_t value[KEYS] = { 0 }, count = 0, wrong = 0;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_rng_init(&rng, seed);
	dsf_hash_init(&h, &m.memory, sizeof(uint64_t), sizeof(struct entry), KEYS);
	for (uint32_t i = 1; i < 50000; i++) {
		uint64_t key = dsf_rng_below(&rng, KEYS);
		struct entry *e = dsf_hash_get(&h, &key);

		wrong += (e != NULL) != (value[key] != 0);
		wrong += e != NULL && (e->key != key || e->value != value[key]);
		if (dsf_rng_below(&rng, 3) > 0) {
			e = dsf_hash_put(&h, &key);
			wrong += e == NULL || e->key != key || e->value != value[key];
			if (e == NULL)
				break;
			count += value[key] == 0;
			e->value = value[key] = i;
		} else if (e != NULL) {
			dsf_hash_remove(&h, e);
			value[key] = 0;
			count--;
		}
		wrong += h.count != count;
	}
	for (struct entry *e = dsf_hash_next(&h, NULL); e != NULL; e = dsf_hash_next(&h, e)) {
		wrong += e->key >= KEYS || value[e->key] != e->value;
		count--;
	}
	TAP_EQ(wrong, 0, "seed %d: 50000 steps agree with an array", (int)seed);
	TAP_EQ(count, 0, "seed %d: iteration sees each entry once", (int)seed);
	dsf_hash_close(&h);
	TAP_EQ(m.blocks, 0, "seed %d: all memory is back", (int)seed);
}

static void full(void)
{
	static const uint32_t limits[] = { 0, 1, 7, 8, 9, 16, 17, 100 };

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct test_memory m;
		struct dsf_hash h;
		uint64_t key = 0, first = 0;

		m = (struct test_memory)TEST_MEMORY(m);
		dsf_hash_init(&h, &m.memory, sizeof(key), sizeof(struct entry), limits[i]);
		TAP_EQ(m.calls, 0, "limit %u: init allocates nothing", limits[i]);
		TAP_OK(dsf_hash_get(&h, &key) == NULL, "limit %u: nothing in an empty table",
			limits[i]);
		TAP_OK(dsf_hash_next(&h, NULL) == NULL, "limit %u: nothing to iterate", limits[i]);
		while (key < 1000 && dsf_hash_put(&h, &key) != NULL)
			key++;
		TAP_EQ(key, limits[i], "limit %u: exactly as many entries", limits[i]);
		if (limits[i] > 0) {
			TAP_OK(dsf_hash_put(&h, &first) != NULL,
				"limit %u: a known key is no new entry", limits[i]);
			dsf_hash_remove(&h, dsf_hash_get(&h, &first));
			TAP_OK(dsf_hash_put(&h, &key) != NULL, "limit %u: room after a removal",
				limits[i]);
		}
		dsf_hash_close(&h);
		TAP_EQ(m.blocks, 0, "limit %u: all memory is back", limits[i]);
	}
}

/* Whichever allocation fails: what is in the table stays, a put fails or works, nothing leaks. */
static void no_memory(void)
{
	uint32_t wrong = 0, failures = 0;

	for (uint64_t nth = 1; nth <= 20; nth++) {
		struct test_memory m;
		struct dsf_hash h;
		uint64_t key = 0, inside = 0;

		m = (struct test_memory)TEST_MEMORY(m);
		dsf_hash_init(&h, &m.memory, sizeof(key), sizeof(struct entry), 1000);
		test_memory_fail_from(&m, nth);
		for (; key < 100; key++) {
			struct entry *e = dsf_hash_put(&h, &key);

			if (e != NULL) {
				e->value = (uint32_t)key + 1;
				inside++;
			} else {
				failures++;
			}
		}
		wrong += h.count != inside;
		for (key = 0; key < 100; key++) {
			struct entry *e = dsf_hash_get(&h, &key);

			wrong += (key < inside) != (e != NULL);
			wrong += e != NULL && e->value != key + 1;
		}
		dsf_hash_close(&h);
		wrong += m.blocks != 0;
	}
	TAP_EQ(wrong, 0, "a failing allocation harms nothing");
	TAP_OK(failures > 0, "and puts did fail (%u)", failures);
}

/* What removed entries took comes back; the others stay as they were, and in their order. */
static void shrinks(void)
{
	struct test_memory m;
	struct dsf_hash h;
	size_t few, many;
	uint64_t key, next = 0;
	bool same = true;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_hash_init(&h, &m.memory, sizeof(key), sizeof(struct entry), 5000);
	dsf_hash_shrink(&h);
	TAP_EQ(m.live, 0, "shrink: an empty table needs nothing");
	for (key = 0; key < 20; key++)
		((struct entry *)dsf_hash_put(&h, &key))->value = (uint32_t)key + 1;
	few = m.live;
	for (; key < 2000; key++)
		dsf_hash_put(&h, &key);
	for (key = 20; key < 2000; key++)
		dsf_hash_remove(&h, dsf_hash_get(&h, &key));
	many = m.live;
	m.fail_at = 2;
	dsf_hash_shrink(&h);
	TAP_OK(m.live == many && h.count == 20, "shrink: without memory all stays");
	dsf_hash_shrink(&h);
	TAP_EQ(m.live, few, "shrink: 20 entries take what 20 entries take");
	for (struct entry *e = dsf_hash_next(&h, NULL); e != NULL; e = dsf_hash_next(&h, e)) {
		same &= e->key == next && e->value == next + 1 && dsf_hash_get(&h, &next) == e;
		next++;
	}
	TAP_OK(same && next == 20, "shrink: the same entries in the same order");
	dsf_hash_close(&h);
	TAP_EQ(m.blocks, 0, "shrink: all memory is back");
}

static void order_and_pointers(void)
{
	struct test_memory m;
	struct dsf_hash h;
	struct entry *kept, *e;
	uint64_t key, next = 0;
	bool in_order = true;

	m = (struct test_memory)TEST_MEMORY(m);
	dsf_hash_init(&h, &m.memory, sizeof(key), sizeof(struct entry), 2000);
	key = 77;
	kept = dsf_hash_put(&h, &key);
	kept->value = 123;
	for (key = 1000; key < 2000; key++)
		dsf_hash_put(&h, &key);
	key = 77;
	TAP_OK(dsf_hash_get(&h, &key) == kept && kept->value == 123, "a pointer outlives growth");
	dsf_hash_remove(&h, kept);
	e = dsf_hash_put(&h, &key);
	TAP_EQ(e->value, 0, "an entry made again starts zeroed");
	for (e = dsf_hash_next(&h, NULL); e != NULL && e->key != 77; e = dsf_hash_next(&h, e)) {
		in_order = in_order && e->key == 1000 + next;
		next++;
	}
	TAP_OK(in_order && next == 1000, "iteration is in order of insertion");
	TAP_OK(e != NULL && dsf_hash_next(&h, e) == NULL, "the one made again comes last");
	dsf_hash_close(&h);
	TAP_OK(dsf_hash_get(&h, &key) == NULL && h.count == 0, "closed is empty");
	TAP_OK(dsf_hash_put(&h, &key) != NULL, "and can be used again");
	dsf_hash_close(&h);
}

/* Keys of every size; keys that differ in one byte only; the entry is nothing but the key. */
static void key_sizes(void)
{
	for (uint32_t size = 1; size <= 40; size++) {
		struct test_memory m;
		struct dsf_hash h;
		uint8_t key[40] = { 0 };
		uint32_t wrong = 0;

		m = (struct test_memory)TEST_MEMORY(m);
		dsf_hash_init(&h, &m.memory, size, size, 1000);
		for (uint32_t at = 0; at < size; at++) {
			key[at] = 1;
			wrong += dsf_hash_put(&h, key) == NULL;
			key[at] = 0;
		}
		for (uint32_t at = 0; at < size; at++) {
			key[at] = 1;
			wrong += dsf_hash_get(&h, key) == NULL;
			key[at] = 2;
			wrong += dsf_hash_get(&h, key) != NULL;
			key[at] = 0;
		}
		TAP_EQ(wrong + (h.count != size), 0, "keys of %u bytes", size);
		dsf_hash_close(&h);
	}
}

int main(void)
{
	against_a_model(1);
	against_a_model(2);
	full();
	no_memory();
	order_and_pointers();
	shrinks();
	key_sizes();
	return TAP_DONE();
}
