/*
 * fsdb_wire.c - bytes as messages of an FSDB stream; what is read is written back and compared
 */
#include "fsdb/wire.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct dsf_writer *w, const uint8_t *start, const uint8_t *want, size_t size)
{
	if (w->failed || (size_t)(w->at - start) != size || memcmp(start, want, size) != 0)
		abort();
}

static void read_records(struct dsf_cursor records)
{
	uint8_t bytes[FSDB_RECORD_MAX];
	struct fsdb_record r;
	bool set;

	for (;;) {
		const uint8_t *start = records.at;
		struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

		if (fsdb_wire_read_record(&records, &r, &set) <= 0)
			return;
		fsdb_wire_write_record(&w, &r, set);
		same(&w, bytes, start, (size_t)(records.at - start));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[FSDB_CONTROL_MAX];
	struct fsdb_message m;
	int whole;

	while ((whole = fsdb_wire_size(data, size)) > 0 && (size_t)whole <= size) {
		struct dsf_writer w = { bytes, bytes + sizeof(bytes), false };

		if (fsdb_wire_read(&m, data, (size_t)whole) == 0) {
			fsdb_wire_write(&w, &m);
			if (m.type == FSDB_UPDATE)
				read_records(m.records);
			else
				same(&w, bytes, data, (size_t)whole);
		}
		data += whole;
		size -= (size_t)whole;
	}
	return 0;
}
