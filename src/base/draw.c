#include "base/draw.h"
#include <stdbool.h>
#include "base/rng.h"

static uint64_t mix(uint64_t sum, uint64_t value)
{
	return dsf_mix(sum + 0x9e3779b97f4a7c15ull + value);
}

static uint64_t key_of(const struct dsf_draw *draw, uint64_t group, const struct dsf_draw_link *l)
{
	uint64_t key = mix(mix(0x64726177, draw->seed), group);

	if (draw->kind == DSF_DRAW_RANDOM)
		return mix(mix(mix(key, draw->device), l->peer), l->parallel);
	return mix(mix(key, draw->family), l->peer);
}

/* Strict order of the shuffle; links of one peer lie a whole round apart. */
static bool before(
	const struct dsf_draw *draw, const struct dsf_draw_link *a, const struct dsf_draw_link *b)
{
	if (draw->kind != DSF_DRAW_RANDOM && a->parallel != b->parallel)
		return a->parallel < b->parallel;
	if (a->key != b->key)
		return a->key < b->key;
	if (a->peer != b->peer)
		return a->peer < b->peer;
	return a->parallel < b->parallel;
}

static void swap(struct dsf_draw_link *a, struct dsf_draw_link *b)
{
	struct dsf_draw_link other = *a;

	*a = *b;
	*b = other;
}

/* Shell's sort: a group has a few hundred links at most. */
static void sort(const struct dsf_draw *draw, struct dsf_draw_link *links, uint32_t count)
{
	for (uint32_t gap = count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < count; i++)
			for (uint32_t k = i; k >= gap && before(draw, &links[k], &links[k - gap]);
				k -= gap)
				swap(&links[k], &links[k - gap]);
}

static void reverse(struct dsf_draw_link *links, uint32_t count)
{
	for (uint32_t i = 0; i < count / 2; i++)
		swap(&links[i], &links[count - 1 - i]);
}

/* Makes the link at first the first of the circle. */
static void rotate(struct dsf_draw_link *links, uint32_t count, uint32_t first)
{
	reverse(links, first);
	reverse(links + first, count - first);
	reverse(links, count);
}

static void stratify(const struct dsf_draw *draw, struct dsf_draw_link *links, uint32_t count)
{
	bool backwards = draw->siblings % 2 == 0 && draw->sibling % 2 == 1;
	uint64_t stretch = backwards ? draw->sibling + 1u : draw->sibling;

	rotate(links, count, (uint32_t)(stretch * count / draw->siblings % count));
	if (backwards) /* the stretch's end was put first, so its last link is the last */
		reverse(links, count);
}

/* Stable: what has a place comes first, by place. */
static void force(struct dsf_draw_link *links, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t k = i; k > 0 && links[k].place < links[k - 1].place; k--)
			swap(&links[k], &links[k - 1]);
}

void dsf_draw_order(
	const struct dsf_draw *draw, uint64_t group, struct dsf_draw_link *links, uint32_t count)
{
	if (count == 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		links[i].key = key_of(draw, group, &links[i]);
	sort(draw, links, count);
	if (draw->kind != DSF_DRAW_RANDOM)
		stratify(draw, links, count);
	if (draw->kind == DSF_DRAW_FORCED)
		force(links, count);
}
