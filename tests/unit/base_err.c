#include <string.h>
#include "base/err.h"
#include "tests/tap.h"

static void every_error_has_its_own_texts(void)
{
	for (int err = DSF_E_FIRST + 1; err < DSF_E_END; err++) {
		const char *counter = dsf_err_counter(-err);

		TAP_OK(strlen(dsf_err_text(-err)) > 0 && strcmp(dsf_err_text(-err), "error") != 0,
			"error %d has a text", err);
		TAP_OK(dsf_err_text(err) == dsf_err_text(-err), "error %d: either sign", err);
		TAP_OK(counter != NULL &&
				counter[strspn(counter, "abcdefghijklmnopqrstuvwxyz_")] == 0,
			"error %d has a counter with a plain name", err);
		for (int other = DSF_E_FIRST + 1; counter != NULL && other < err; other++) {
			if (strcmp(counter, dsf_err_counter(other)) == 0)
				TAP_OK(false, "errors %d and %d share a counter", err, other);
		}
		TAP_EQ(DSF_ERR_INDEX(-err), err - DSF_E_FIRST - 1, "error %d: index", err);
	}
}

static void others_have_none(void)
{
	static const int others[] = { 0, -1, 1, -2, -4095, DSF_E_FIRST, -DSF_E_FIRST, DSF_E_END,
		-DSF_E_END, INT32_MAX, -INT32_MAX, INT32_MIN };

	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		TAP_OK(strcmp(dsf_err_text(others[i]), "error") == 0, "%d has no text", others[i]);
		TAP_OK(dsf_err_counter(others[i]) == NULL, "%d has no counter", others[i]);
	}
}

int main(void)
{
	TAP_OK(DSF_E_FIRST > 4095, "core errors are above every errno");
	every_error_has_its_own_texts();
	others_have_none();
	return TAP_DONE();
}
