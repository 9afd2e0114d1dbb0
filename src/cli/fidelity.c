#include "cli/fidelity.h"
#include <string.h>
#include "base/time.h"
#include "cli/json_span.h"

bool fidelity_add(struct fidelity *f, const char *text, size_t size)
{
	int64_t drops, max;
	cJSON *object, *pair;
	bool good = json_span_integer(json_span_get(text, size, "emulator_drops"), &drops) &&
		    json_span_integer(json_span_get(text, size, "late_max_ns"), &max);

	object = good ? cJSON_ParseWithLength(text, size) : NULL;
	if (object == NULL)
		return false;
	f->emulator_drops += (uint64_t)drops;
	if ((uint64_t)max > f->late.max)
		f->late.max = (uint64_t)max;
	cJSON_ArrayForEach(pair, cJSON_GetObjectItemCaseSensitive(object, "late_bins"))
	{
		const cJSON *bin = cJSON_GetArrayItem(pair, 0),
			    *count = cJSON_GetArrayItem(pair, 1);

		if (!cJSON_IsNumber(bin) || !cJSON_IsNumber(count) || bin->valuedouble < 0 ||
			bin->valuedouble >= DSF_HISTOGRAM_BINS || count->valuedouble < 0 ||
			count->valuedouble > UINT32_MAX) {
			good = false;
			continue;
		}
		f->late.bins[(uint32_t)bin->valuedouble] += (uint32_t)count->valuedouble;
		f->late.count += (uint64_t)count->valuedouble;
	}
	cJSON_Delete(object);
	return good;
}

uint64_t fidelity_quantum_ns(const struct topo *t)
{
	uint64_t least = FIDELITY_QUANTUM_WALL_NS / (t->time_dilation > 0 ? t->time_dilation : 1);
	uint64_t rate = 0, train;

	/* Of the fastest link, whose trains are the shortest. */
	for (uint32_t i = 0; i < t->links_count; i++)
		if (t->links[i].rate_bps > rate)
			rate = t->links[i].rate_bps;
	train = dsf_time_of_bytes(
		t->fabric.train_bytes > 0 ? t->fabric.train_bytes : t->fabric.cell_bytes, rate);
	return train > least ? train : least;
}

/* Lateness in wall time stays what it is; which dilation makes it small enough? */
static uint64_t suggest(const struct topo *t, uint64_t late_ns, uint64_t drops)
{
	uint64_t allowed = t->base_rtt_ns / 10, dilation = t->time_dilation, wanted = dilation;
	uint64_t train = fidelity_quantum_ns(t);

	/* The part of the quantum that is the live minimum shrinks with the dilation, so only a
	 * train's own time counts. */
	if (train > FIDELITY_QUANTUM_WALL_NS / dilation && train > allowed)
		allowed = train;
	if (late_ns > (UINT64_MAX - allowed) / dilation)
		return TOPO_DILATION_MAX;
	if (allowed > 0 && late_ns > allowed)
		wanted = (late_ns * dilation + allowed - 1) / allowed;
	if (drops > 0 && wanted < 2 * dilation)
		wanted = 2 * dilation;
	if (wanted <= dilation)
		wanted = dilation + 1;
	return wanted < TOPO_DILATION_MAX ? wanted : TOPO_DILATION_MAX;
}

/* The greatest 99th percentile that is still true to the model. */
static uint64_t allowed_ns(const struct topo *t)
{
	uint64_t quantum = fidelity_quantum_ns(t);

	return quantum > t->base_rtt_ns / 10 ? quantum : t->base_rtt_ns / 10;
}

static cJSON *unknown_json(const struct topo *t)
{
	cJSON *object = cJSON_CreateObject();

	cJSON_AddBoolToObject(object, "valid", false);
	cJSON_AddNullToObject(object, "late_p99_ns");
	cJSON_AddNumberToObject(object, "allowed_p99_ns", (double)allowed_ns(t));
	cJSON_AddNumberToObject(object, "quantum_ns", (double)fidelity_quantum_ns(t));
	cJSON_AddNullToObject(object, "emulator_drops");
	cJSON_AddNullToObject(object, "suggested_time_dilation");
	return object;
}

static cJSON *known_json(const struct fidelity *f, const struct topo *t)
{
	uint64_t late = dsf_histogram_quantile(&f->late, 990);
	bool valid = f->emulator_drops == 0 && late <= allowed_ns(t);
	cJSON *object = cJSON_CreateObject();

	cJSON_AddBoolToObject(object, "valid", valid);
	cJSON_AddNumberToObject(object, "late_p99_ns", (double)late);
	cJSON_AddNumberToObject(object, "allowed_p99_ns", (double)allowed_ns(t));
	cJSON_AddNumberToObject(object, "quantum_ns", (double)fidelity_quantum_ns(t));
	cJSON_AddNumberToObject(object, "emulator_drops", (double)f->emulator_drops);
	if (valid)
		cJSON_AddNullToObject(object, "suggested_time_dilation");
	else
		cJSON_AddNumberToObject(object, "suggested_time_dilation",
			(double)suggest(t, late, f->emulator_drops));
	return object;
}

cJSON *fidelity_json(const struct fidelity *f, const struct topo *t)
{
	return f != NULL ? known_json(f, t) : unknown_json(t);
}
