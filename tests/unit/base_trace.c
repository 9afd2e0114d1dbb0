#include <string.h>
#include "base/trace.h"
#include "tests/tap.h"

static void store(void *user, const struct dsf_event *event)
{
	*(struct dsf_event *)user = *event;
}

int main(void)
{
	struct dsf_event got = { DSF_EPOCH, DSF_EVENT_COUNT, 0, 0, 0 };
	struct dsf_trace trace = { store, &got };

	for (int kind = 0; kind < DSF_EVENT_COUNT; kind++) {
		const char *name = dsf_event_name((enum dsf_event_kind)kind);

		TAP_OK(name != NULL && name[0] != 0 && strcmp(name, "unknown") != 0,
			"event %d has a name", kind);
		TAP_OK(dsf_event_number_name((enum dsf_event_kind)kind, 0) != NULL &&
				dsf_event_number_name((enum dsf_event_kind)kind, 1) != NULL,
			"%s: its numbers have names", name);
	}
	TAP_OK(strcmp(dsf_event_name(DSF_EVENT_COUNT), "unknown") == 0, "no event, no name");
	TAP_OK(strcmp(dsf_event_number_name(DSF_EVENT_COUNT, 0), "") == 0, "nor a number's");
	dsf_trace_emit(NULL, DSF_EPOCH, DSF_EVENT_PORT_UP, 0, 0, 0);
	TAP_EQ(got.kind, DSF_EVENT_COUNT, "nobody listens: nothing happens");
	dsf_trace_emit(&trace, (dsf_instant){ 5 }, DSF_EVENT_PORT_UP, 1, 2, 3);
	TAP_EQ(got.at.ns, 5, "instant");
	TAP_EQ(got.kind, DSF_EVENT_PORT_UP, "kind");
	TAP_EQ(got.node, 1, "node");
	TAP_EQ(got.a, 2, "first number");
	TAP_EQ(got.b, 3, "second number");
	return TAP_DONE();
}
