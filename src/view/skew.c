#include "view/skew.h"
#include "view/json.h"

/* To four digits behind the point. */
static cJSON *value_of(const struct node_skew *s)
{
	return cJSON_CreateNumber((double)node_skew_value(s) / 1e4);
}

static bool add_row(
	cJSON *rows, const struct node_skew *s, const struct node_skew_tier *tier, bool up)
{
	cJSON *o = cJSON_CreateObject();

	if (view_json_add_text(o, "tier", tier->name) &&
		view_json_add_text(o, "direction", up ? "up" : "down") &&
		view_json_add_u64(o, "links", s->links) &&
		view_json_add_u64(o, "bytes_max", s->bytes_max) &&
		view_json_add_u64(o, "bytes_mean", s->bytes_sum / s->links) &&
		view_json_add(o, "skew", value_of(s)))
		return view_json_append(rows, o);
	cJSON_Delete(o);
	return false;
}

static bool add_tier(cJSON *o, cJSON *rows, const struct node_skew_meter *before,
	const struct node_skew_meter *after, const struct node_skew_tier *tier)
{
	struct node_skew up = node_skew_of(before, after, tier, true);
	struct node_skew down = node_skew_of(before, after, tier, false);
	bool up_is_worse = node_skew_value(&up) > node_skew_value(&down);

	if (up.links == 0)
		return view_json_add_text(o, tier->key, NULL);
	return add_row(rows, &up, tier, true) && add_row(rows, &down, tier, false) &&
	       view_json_add(o, tier->key, value_of(up_is_worse ? &up : &down));
}

bool view_skew_add(
	cJSON *o, const struct node_skew_meter *before, const struct node_skew_meter *after)
{
	cJSON *rows = cJSON_CreateArray();
	bool added = view_json_add(o, "links", rows);

	for (uint32_t i = 0; added && i < NODE_SKEW_TIERS; i++)
		added = add_tier(o, rows, before, after, node_skew_tier(i));
	return added;
}
