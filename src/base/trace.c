#include "base/trace.h"

static const struct {
	const char *name, *first, *second;
} kinds[DSF_EVENT_COUNT] = {
#define X(kind, first, second) [DSF_EVENT_##kind] = { #kind, first, second },
	DSF_EVENT_LIST(X)
#undef X
};

const char *dsf_event_name(enum dsf_event_kind kind)
{
	return (unsigned)kind < DSF_EVENT_COUNT ? kinds[kind].name : "unknown";
}

const char *dsf_event_number_name(enum dsf_event_kind kind, unsigned index)
{
	if ((unsigned)kind >= DSF_EVENT_COUNT)
		return "";
	return index == 0 ? kinds[kind].first : kinds[kind].second;
}
