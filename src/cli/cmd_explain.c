#include <stdlib.h>
#include <string.h>
#include "cli/commands.h"
#include "cli/lab_call.h"
#include "cli/lab_rows.h"
#include "cli/log.h"
#include "cli/output.h"
#include "view/explain.h"
#include "view/json.h"

#define TEXT_MAX 512

static int explain_lab(
	const char *lab, const struct topo *topo, uint32_t port, uint32_t destination, bool json)
{
	struct lab_rows rows;
	struct view_show_source source = lab_rows_source(&rows);
	int code = lab_rows_open(&rows, lab, topo, "explain");
	cJSON *result;
	char *text;

	if (code != CLI_OK)
		return code;
	result = view_explain(topo, port, destination, &source);
	lab_rows_close(&rows);
	text = result == NULL ? NULL
	       : json         ? view_json_print(result, false)
			      : view_explain_text(result);
	code = text == NULL ? CLI_FAILED : output_write(text, strlen(text));
	if (text == NULL && !rows.told)
		log_err("explain: out of memory");
	free(text);
	cJSON_Delete(result);
	return code;
}

static int run(int argc, char **argv, const struct cli_options *options)
{
	char text[TEXT_MAX], why[VIEW_SHOW_WHY_MAX], lab[TOPO_LAB_NAME_MAX + 1];
	uint32_t port, destination;
	struct topo *topo;
	uint64_t epoch_ns;
	int code = lab_call_choose(options, NULL, lab);

	(void)argc;
	if (code != CLI_OK)
		return code;
	if (lab_topology(lab, &topo, &epoch_ns, text, sizeof(text)) < 0) {
		log_err("explain: %s", text);
		return CLI_FAILED;
	}
	if (view_explain_parse(topo, argv[0], argv[1], &port, &destination, why) < 0)
		code = cli_wrong(options, "%s", why);
	else
		code = explain_lab(lab, topo, port, destination, options->json);
	topo_free(topo);
	return code;
}

const struct cli_command cmd_explain = {
	.name = "explain",
	.usage = "NODE:IF DST",
	.summary = "tells why a destination isn't reached over a link",
	.help = "Over the cell link NODE:IF (either end) one end tells the other that it reaches "
		"the\n"
		"switch DST, or doesn't: since the link is down, since it doesn't reach DST "
		"itself, "
		"or\n"
		"since Input Balanced Mode has it withhold the link. Each reason is followed back "
		"to "
		"the\n"
		"links whose failure caused it.",
	.words_min = 2,
	.words_max = 2,
	.run = run,
};
