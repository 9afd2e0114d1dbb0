#include "base/err.h"
#include <stddef.h>

static const struct {
	const char *text;
	const char *counter;
} errors[DSF_ERR_COUNT] = {
#define X(code, text, counter) [DSF_E_##code - DSF_E_FIRST - 1] = { text, counter },
	DSF_ERR_LIST(X)
#undef X
};

static int err_index(int err)
{
	int index = DSF_ERR_INDEX(err);

	return index >= 0 && index < DSF_ERR_COUNT ? index : -1;
}

const char *dsf_err_text(int err)
{
	int index = err_index(err);

	return index < 0 ? "error" : errors[index].text;
}

const char *dsf_err_counter(int err)
{
	int index = err_index(err);

	return index < 0 ? NULL : errors[index].counter;
}
