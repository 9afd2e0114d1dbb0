#include "fabric/pressure.h"
#include "base/err.h"
#include "tests/memory.h"
#include "tests/tap.h"

#define PORTS 100u

static struct test_memory memory = TEST_MEMORY(memory);
static struct fabric_pressure pressure;

static uint32_t remove_from(uint32_t out)
{
	return fabric_pressure_remove(&pressure, out);
}

static void stops(void)
{
	fabric_pressure_init(&pressure, &memory.memory, PORTS);
	TAP_EQ(remove_from(1), FABRIC_PRESSURE_NONE, "nobody is stopped at first");
	TAP_OK(fabric_pressure_add(&pressure, 1, 5), "a link that feeds a full queue is stopped");
	TAP_OK(!fabric_pressure_add(&pressure, 1, 5), "once");
	TAP_OK(!fabric_pressure_add(&pressure, 99, 5), "also by a second queue");
	TAP_OK(fabric_pressure_add(&pressure, 1, 70), "and another link");
	TAP_EQ(pressure.full_count, 2, "two queues stop somebody");
	TAP_EQ(remove_from(1), 70, "one drains: who fed only that goes on");
	TAP_EQ(remove_from(1), FABRIC_PRESSURE_NONE, "who feeds the other doesn't");
	TAP_EQ(pressure.full_count, 1, "one queue stops somebody");
	TAP_OK(!fabric_pressure_add(&pressure, 1, 5), "it is stopped still");
	TAP_EQ(remove_from(99), FABRIC_PRESSURE_NONE, "by the first again");
	TAP_EQ(remove_from(1), 5, "until that drains too");
	TAP_EQ(remove_from(1), FABRIC_PRESSURE_NONE, "then nobody");
	TAP_OK(pressure.full_count == 0 && fabric_pressure_add(&pressure, 2, 5),
		"and it can be stopped again");
	fabric_pressure_close(&pressure);
	TAP_EQ(memory.live, 0, "nothing is left");
}

static void failing_memory(void)
{
	for (unsigned long nth = 1; nth <= 3; nth++) {
		memory.fail_at = nth;
		TAP_EQ(fabric_pressure_init(&pressure, &memory.memory, PORTS), -DSF_E_NOMEM,
			"allocation %lu fails", nth);
		fabric_pressure_close(&pressure);
	}
	TAP_EQ(memory.live, 0, "without a leak");
}

int main(void)
{
	stops();
	failing_memory();
	return TAP_DONE();
}
