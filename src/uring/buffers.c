#include "uring/buffers.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define COPIES_PER_SLAB 16u

static size_t ring_size(const struct uring_buffers *b)
{
	return b->count_max * sizeof(struct io_uring_buf);
}

static void *map(size_t size)
{
	void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return block == MAP_FAILED ? NULL : block;
}

int uring_buffers_open(struct uring_buffers *b, struct uring_loop *loop,
	const struct dsf_memory *memory, uint16_t group, uint32_t size, uint16_t count_max)
{
	struct io_uring_buf_reg reg;
	int err;

	assert((count_max & (count_max - 1)) == 0 && count_max >= URING_BUFFERS_FIRST);
	memset(b, 0, sizeof(*b));
	b->size = size;
	b->group = group;
	b->count_max = count_max;
	b->ring = map(ring_size(b));
	b->bytes = map((size_t)count_max * size);
	if (b->ring == NULL || b->bytes == NULL) {
		err = -ENOMEM;
		goto fail;
	}
	memset(&reg, 0, sizeof(reg));
	reg.ring_addr = (uint64_t)(uintptr_t)b->ring;
	reg.ring_entries = count_max;
	reg.bgid = group;
	err = io_uring_register_buf_ring(&loop->ring, &reg, 0);
	if (err < 0)
		goto fail;
	io_uring_buf_ring_init(b->ring);
	dsf_pool_init(&b->copies, memory, size, COPIES_PER_SLAB, URING_COPIES_MAX);
	b->loop = loop;
	uring_buffers_grow(b);
	return 0;
fail:
	if (b->bytes != NULL)
		munmap(b->bytes, (size_t)count_max * size);
	if (b->ring != NULL)
		munmap(b->ring, ring_size(b));
	b->bytes = NULL;
	b->ring = NULL;
	return err;
}

void uring_buffers_close(struct uring_buffers *b)
{
	if (b->loop == NULL)
		return;
	if (b->loop->open)
		io_uring_unregister_buf_ring(&b->loop->ring, b->group);
	dsf_pool_close(&b->copies);
	munmap(b->bytes, (size_t)b->count_max * b->size);
	munmap(b->ring, ring_size(b));
	b->loop = NULL;
}

bool uring_buffers_grow(struct uring_buffers *b)
{
	uint16_t count = b->count == 0 ? URING_BUFFERS_FIRST : (uint16_t)(b->count * 2);

	if (b->count == b->count_max)
		return false;
	for (uint16_t id = b->count; id < count; id++)
		io_uring_buf_ring_add(b->ring, b->bytes + (size_t)id * b->size, b->size, id,
			io_uring_buf_ring_mask(b->count_max), id - b->count);
	io_uring_buf_ring_advance(b->ring, count - b->count);
	b->count = count;
	return true;
}
