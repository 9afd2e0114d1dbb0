#include "cli/lab_rows.h"
#include <stdio.h>
#include <string.h>
#include "cli/lab_call.h"
#include "cli/log.h"
#include "view/json.h"
#include "view/rows.h"

#define REQUEST_MAX 256

/* Nodes that gave no answer are told, but don't keep the others' rows from being shown. */
static void tell_failed(const struct lab_rows *s, const char *text)
{
	cJSON *failed = text != NULL ? cJSON_Parse(text) : NULL;
	const cJSON *one;

	cJSON_ArrayForEach(one, failed)
	{
		const char *node = view_json_text(one, "node"), *why = view_json_text(one, "why");

		log_warn("%s: lab %s: node %s gives no answer: %s", s->command, s->lab,
			node != NULL ? node : "?", why != NULL ? why : "unknown");
	}
	cJSON_Delete(failed);
}

/* view_show_source: rows from the lab's processes. */
static cJSON *rows(void *user, enum node_query query, uint32_t node)
{
	struct lab_rows *s = user;
	const char *name = view_rows_query_name(query), *result, *failed = NULL;
	char request[REQUEST_MAX];
	cJSON *array;

	if (node == TOPO_NONE)
		snprintf(request, sizeof(request),
			"{\"op\":\"nodes\",\"request\":{\"op\":\"view\",\"query\":\"%s\"}}", name);
	else
		snprintf(request, sizeof(request),
			"{\"op\":\"node\",\"node\":\"%s\","
			"\"request\":{\"op\":\"view\",\"query\":\"%s\"}}",
			s->topo->nodes[node].name, name);
	if (lab_call(&s->client, request, &result, &failed) != CLI_OK) {
		s->told = true;
		return NULL;
	}
	tell_failed(s, failed);
	array = view_json_parse(result, strlen(result));
	if (cJSON_IsArray(array))
		return array;
	cJSON_Delete(array);
	log_err("%s: lab %s: no rows in the answer about %s", s->command, s->lab, name);
	s->told = true;
	return NULL;
}

int lab_rows_open(struct lab_rows *r, const char *lab, const struct topo *topo, const char *command)
{
	*r = (struct lab_rows){ .topo = topo, .lab = lab, .command = command };
	return lab_call_open(&r->client, lab);
}

void lab_rows_close(struct lab_rows *r)
{
	lab_client_close(&r->client);
}

struct view_show_source lab_rows_source(struct lab_rows *r)
{
	return (struct view_show_source){ rows, r };
}
