#include "topo/value.h"
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/err.h"
#include "base/time.h"
#include "base/units.h"
#include "topo/file.h"
#include "topo/locate.h"

#define EXACT_MAX 9007199254740992.0 /* 2^53: a double holds every whole number below */

int topo_read_text(const struct topo_reader *r, const char *file_name, cJSON **root)
{
	struct topo_error *err = r->err;
	int code;

	*root = NULL;
	memset(err, 0, sizeof(*err));
	snprintf(err->file, sizeof(err->file), "%s", file_name);
	snprintf(err->path, sizeof(err->path), "(top)");
	if (r->size > TOPO_TEXT_BYTES_MAX) {
		snprintf(err->text, sizeof(err->text), "the file is larger than %u bytes",
			TOPO_TEXT_BYTES_MAX);
		return -DSF_E_BADFIELD;
	}
	code = topo_locate_check(r->text, r->size, err);
	if (code < 0)
		return code;
	*root = cJSON_ParseWithLengthOpts(r->text, r->size, NULL, false);
	if (*root != NULL)
		return 0;
	snprintf(err->text, sizeof(err->text), "%s", dsf_err_text(DSF_E_NOMEM));
	return -DSF_E_NOMEM;
}

static void path_text(const struct topo_path *path, char *out, size_t size)
{
	if (path->up == NULL)
		return;
	path_text(path->up, out, size);
	if (cJSON_IsArray(path->up->item))
		topo_path_add_index(out, size, path->child);
	else
		topo_path_add_key(out, size, path->item->string, strlen(path->item->string));
}

static struct topo_place path_place(const struct topo_reader *r, const struct topo_path *path)
{
	uint32_t steps[TOPO_DEPTH_MAX], count = 0;

	for (const struct topo_path *p = path; p->up != NULL; p = p->up)
		count++;
	assert(count <= TOPO_DEPTH_MAX);
	for (uint32_t i = count; i > 0; i--, path = path->up)
		steps[i - 1] = path->child;
	return topo_locate(r->text, r->size, steps, count);
}

int topo_fail(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_slot *slot, const char *format, ...)
{
	struct topo_path below = { .up = path };
	va_list args;

	if (slot != NULL && slot->given) {
		below.item = slot->item;
		below.child = slot->child;
		path = &below;
	}
	r->err->line = path_place(r, path).line;
	r->err->path[0] = '\0';
	path_text(path, r->err->path, sizeof(r->err->path));
	if (r->err->path[0] == '\0')
		snprintf(r->err->path, sizeof(r->err->path), "(top)");
	va_start(args, format);
	vsnprintf(r->err->text, sizeof(r->err->text), format, args);
	va_end(args);
	return -DSF_E_BADFIELD;
}

static const char *type_text(const cJSON *item)
{
	if (cJSON_IsObject(item))
		return "an object";
	if (cJSON_IsArray(item))
		return "an array";
	if (cJSON_IsString(item))
		return "a string";
	if (cJSON_IsNumber(item))
		return "a number";
	return cJSON_IsBool(item) ? "true or false" : "null";
}

static int fail_type(const struct topo_reader *r, const struct topo_path *path, const char *want)
{
	return topo_fail(
		r, path, NULL, "wrong type: must be %s, is %s", want, type_text(path->item));
}

static int fail_bounds(
	const struct topo_reader *r, const struct topo_path *path, const struct topo_key *key)
{
	const char *unit = "";

	if (key->type == TOPO_VALUE_RATE)
		unit = " bit/s";
	else if (key->type == TOPO_VALUE_TIME || key->type == TOPO_VALUE_TIME_AUTO)
		unit = " ns";
	else if (key->type == TOPO_VALUE_SHARE)
		unit = " ppm (100%)";
	else if (key->type == TOPO_VALUE_BYTES)
		unit = " bytes";
	return topo_fail(r, path, NULL, "out of bounds: must be %llu to %llu%s",
		(unsigned long long)key->min, (unsigned long long)key->max, unit);
}

/* A JSON number that is whole and that a double holds exactly. */
static int read_whole(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_key *key, uint64_t *value)
{
	double number = path->item->valuedouble;

	if (!(number >= 0 && number < EXACT_MAX))
		return fail_bounds(r, path, key);
	*value = (uint64_t)number;
	if ((double)*value != number)
		return topo_fail(r, path, NULL, "must be a whole number");
	return 0;
}

/* All 64 bits: from the text, as a double would lose digits. */
static int read_uint64(const struct topo_reader *r, const struct topo_path *path, uint64_t *value)
{
	struct topo_place place = path_place(r, path);

	*value = 0;
	for (size_t i = 0; i < place.value_size; i++) {
		unsigned digit = (unsigned char)place.value[i] - (unsigned)'0';

		if (digit > 9 || *value > (UINT64_MAX - digit) / 10)
			return topo_fail(r, path, NULL,
				"must be a whole number from 0 to 18446744073709551615, digits "
				"only");
		*value = *value * 10 + digit;
	}
	return 0;
}

static const struct dsf_unit rate_units[] = { { "K", 1000 }, { "M", 1000000 }, { "G", 1000000000 },
	{ "T", 1000000000000 }, { NULL, 0 } };
static const struct dsf_unit time_units[] = { { "ns", 1 }, { "us", NS_PER_US }, { "ms", NS_PER_MS },
	{ "s", NS_PER_S }, { NULL, 0 } };
static const struct dsf_unit share_units[] = { { "%", 10000 }, { NULL, 0 } };
static const struct dsf_unit byte_units[] = { { "K", 1u << 10 }, { "M", 1u << 20 },
	{ "G", 1u << 30 }, { NULL, 0 } };

/* A number, or a string with a unit. */
static int read_measure(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_key *key, const struct dsf_unit *units, const char *want, uint64_t *value)
{
	struct topo_quote quote;

	if (cJSON_IsNumber(path->item))
		return read_whole(r, path, key, value);
	if (!cJSON_IsString(path->item))
		return fail_type(r, path, want);
	if (!dsf_units_parse(path->item->valuestring, units, value))
		return topo_fail(r, path, NULL, "%s: must be %s",
			topo_quote(
				&quote, path->item->valuestring, strlen(path->item->valuestring)),
			want);
	return 0;
}

static int read_word(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_key *key, uint64_t *value)
{
	struct topo_quote quote;
	char list[160] = "";

	for (uint32_t i = 0; key->words[i] != NULL; i++) {
		size_t used = strlen(list);

		if (cJSON_IsString(path->item) &&
			strcmp(key->words[i], path->item->valuestring) == 0) {
			*value = i;
			return 0;
		}
		snprintf(
			list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", key->words[i]);
	}
	if (!cJSON_IsString(path->item))
		return fail_type(r, path, "a string");
	return topo_fail(r, path, NULL, "%s: must be one of %s",
		topo_quote(&quote, path->item->valuestring, strlen(path->item->valuestring)), list);
}

static bool is_word(const cJSON *item, const char *word)
{
	return cJSON_IsString(item) && strcmp(item->valuestring, word) == 0;
}

static int read_container(
	const struct topo_reader *r, const struct topo_path *path, const struct topo_key *key)
{
	uint64_t count = 0;

	if (key->type == TOPO_VALUE_OBJECT)
		return cJSON_IsObject(path->item) ? 0 : fail_type(r, path, "an object");
	if (!cJSON_IsArray(path->item))
		return fail_type(r, path, "an array");
	for (const cJSON *c = path->item->child; c != NULL; c = c->next)
		count++;
	if (count < key->min || count > key->max)
		return topo_fail(r, path, NULL, "has %llu elements: must be %llu to %llu",
			(unsigned long long)count, (unsigned long long)key->min,
			(unsigned long long)key->max);
	return 0;
}

/* Reads one value; *bounded says whether min and max apply to it. */
static int read_typed(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_key *key, uint64_t *value, bool *bounded)
{
	*bounded = false;
	switch (key->type) {
	case TOPO_VALUE_INT_AUTO:
	case TOPO_VALUE_TIME_AUTO:
		if (is_word(path->item, "auto")) {
			*value = TOPO_AUTO;
			return 0;
		}
		*bounded = true;
		if (key->type == TOPO_VALUE_TIME_AUTO)
			return read_measure(r, path, key, time_units,
				"a time as \"500ns\" (ns, us, ms, s), whole ns, or \"auto\"",
				value);
		if (!cJSON_IsNumber(path->item))
			return fail_type(r, path, "a whole number or \"auto\"");
		return read_whole(r, path, key, value);
	case TOPO_VALUE_INT:
		*bounded = true;
		if (!cJSON_IsNumber(path->item))
			return fail_type(r, path, "a whole number");
		return read_whole(r, path, key, value);
	case TOPO_VALUE_UINT64:
		if (!cJSON_IsNumber(path->item))
			return fail_type(r, path, "a whole number");
		return read_uint64(r, path, value);
	case TOPO_VALUE_BOOL:
		*value = cJSON_IsTrue(path->item);
		return cJSON_IsBool(path->item) ? 0 : fail_type(r, path, "true or false");
	case TOPO_VALUE_STRING:
		return cJSON_IsString(path->item) ? 0 : fail_type(r, path, "a string");
	case TOPO_VALUE_WORD: return read_word(r, path, key, value);
	case TOPO_VALUE_RATE:
		*value = 0;
		if (is_word(path->item, "unlimited"))
			return 0;
		*bounded = true;
		return read_measure(r, path, key, rate_units,
			"a rate as \"400G\" (K, M, G, T), whole bit/s, or \"unlimited\"", value);
	case TOPO_VALUE_TIME:
		*bounded = true;
		return read_measure(r, path, key, time_units,
			"a time as \"500ns\" (ns, us, ms, s) or whole ns", value);
	case TOPO_VALUE_SHARE:
		*bounded = true;
		return read_measure(r, path, key, share_units,
			"a share as \"0.1%\" or whole parts per million", value);
	case TOPO_VALUE_BYTES:
		*bounded = true;
		return read_measure(r, path, key, byte_units,
			"a size as \"64K\" (K, M, G: powers of 1024) or whole bytes", value);
	case TOPO_VALUE_OBJECT:
	case TOPO_VALUE_ARRAY: return read_container(r, path, key);
	}
	return -DSF_E_UNSUPPORTED;
}

static int read_slot(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_key *key, struct topo_slot *slot)
{
	struct topo_path below = { .up = path, .item = slot->item, .child = slot->child };
	bool bounded;
	int err = read_typed(r, &below, key, &slot->number, &bounded);

	if (err < 0)
		return err;
	if (bounded && (slot->number < key->min || slot->number > key->max))
		return fail_bounds(r, &below, key);
	return 0;
}

static int fail_unknown(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_keys *keys, const struct topo_slot *slot)
{
	char list[400] = "";

	for (uint32_t i = 0; i < keys->count; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
			keys->keys[i].name);
	}
	return topo_fail(r, path, slot, "unknown key: known here are %s", list);
}

int topo_read(const struct topo_reader *r, const struct topo_path *path,
	const struct topo_keys *keys, struct topo_slot *slots)
{
	uint32_t child = 0;

	assert(keys->count <= TOPO_KEYS_MAX);
	memset(slots, 0, keys->count * sizeof(*slots));
	if (!cJSON_IsObject(path->item))
		return fail_type(r, path, "an object");
	for (const cJSON *item = path->item->child; item != NULL; item = item->next, child++) {
		struct topo_slot found = { .given = true, .child = child, .item = item };
		uint32_t i = 0;
		int err;

		if (item->string[0] == '_' ||
			(path->up == NULL && strcmp(item->string, "$schema") == 0))
			continue;
		while (i < keys->count && strcmp(keys->keys[i].name, item->string) != 0)
			i++;
		if (i == keys->count)
			return fail_unknown(r, path, keys, &found);
		err = read_slot(r, path, &keys->keys[i], &found);
		if (err < 0)
			return err;
		slots[i] = found;
	}
	for (uint32_t i = 0; i < keys->count; i++) {
		if (keys->keys[i].required && !slots[i].given)
			return topo_fail(
				r, path, NULL, "key \"%s\" is missing", keys->keys[i].name);
	}
	return 0;
}

struct member {
	const char *key;
	const cJSON *item;
	uint32_t child;
};

static int member_compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order != 0 ? order : (x->child > y->child) - (x->child < y->child);
}

/* One object's own keys: sorted, so that equal ones lie side by side. */
static int duplicates_here(const struct topo_reader *r, const struct topo_path *path)
{
	struct member *members;
	uint32_t count = 0;
	int err = 0;

	for (const cJSON *c = path->item->child; c != NULL; c = c->next)
		count++;
	if (count < 2)
		return 0;
	members = malloc(count * sizeof(*members));
	if (members == NULL)
		return -DSF_E_NOMEM;
	count = 0;
	for (const cJSON *c = path->item->child; c != NULL; c = c->next, count++)
		members[count] = (struct member){ c->string, c, count };
	qsort(members, count, sizeof(*members), member_compare);
	for (uint32_t i = 1; i < count && err == 0; i++) {
		struct topo_slot second = {
			.given = true, .child = members[i].child, .item = members[i].item
		};

		if (strcmp(members[i - 1].key, members[i].key) == 0)
			err = topo_fail(r, path, &second,
				"duplicate key: the object has it already; remove one");
	}
	free(members);
	return err;
}

int topo_read_duplicates(const struct topo_reader *r, const struct topo_path *path)
{
	uint32_t child = 0;
	int err = cJSON_IsObject(path->item) ? duplicates_here(r, path) : 0;

	for (const cJSON *c = path->item->child; c != NULL && err == 0; c = c->next, child++) {
		struct topo_path below = { .up = path, .item = c, .child = child };

		if (c->child != NULL)
			err = topo_read_duplicates(r, &below);
	}
	return err;
}
