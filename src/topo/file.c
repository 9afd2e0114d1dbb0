#include "topo/file.h"
#include <stdio.h>
#include "base/err.h"
#include "topo/draft.h"

static int load_draft(struct topo_draft *d, struct topo **out)
{
	struct topo_slot top[TOPO_TOP_COUNT];
	struct topo *t;
	int err = topo_read_duplicates(d->reader, &d->top);

	if (err == 0)
		err = topo_draft_top(d, top);
	if (err == 0)
		err = topo_draft_templates(d, top);
	if (err == 0)
		err = topo_draft_explicit(d, top);
	if (err == 0)
		err = topo_draft_number(d);
	if (err == 0)
		err = topo_draft_finish(d, &t);
	if (err < 0)
		return err;
	err = topo_draft_given(d, t, top);
	if (err == 0) /* the table is still ours to write */
		err = topo_draft_orders(d, t, (struct topo_port *)t->ports, top);
	if (err == 0)
		err = topo_draft_bgp(d, t, top);
	if (err == 0)
		err = topo_draft_check(d, t);
	if (err < 0) {
		topo_free(t);
		return err;
	}
	topo_derive(t);
	*out = t;
	return 0;
}

int topo_load_as(const char *text, size_t size, const char *file_name,
	const struct topo_choice *choice, struct topo **out, struct topo_error *err)
{
	struct topo_reader reader = { .text = text, .size = size, .err = err };
	struct topo_draft draft;
	cJSON *root;
	int code;

	*out = NULL;
	code = topo_read_text(&reader, file_name, &root);
	if (code < 0)
		return code;
	topo_draft_init(&draft, &reader, root);
	draft.choice = choice;
	code = load_draft(&draft, out);
	topo_draft_close(&draft);
	cJSON_Delete(root);
	if (code == -DSF_E_NOMEM)
		snprintf(err->text, sizeof(err->text), "%s", dsf_err_text(code));
	return code;
}

int topo_load_text(const char *text, size_t size, const char *file_name, struct topo **out,
	struct topo_error *err)
{
	return topo_load_as(text, size, file_name, NULL, out, err);
}
