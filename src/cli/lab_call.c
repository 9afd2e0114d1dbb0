#include "cli/lab_call.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <cjson/cJSON.h>
#include "cli/json_span.h"
#include "cli/log.h"
#include "cli/units.h"

int lab_call_choose(
	const struct cli_options *o, const char *wanted, char lab[TOPO_LAB_NAME_MAX + 1])
{
	char text[512];
	int code = lab_choose(wanted != NULL ? wanted : o->lab, lab, text, sizeof(text));

	if (code != 0)
		log_err("%s", text);
	return code;
}

int lab_call_root(const char *what)
{
	if (geteuid() == 0)
		return CLI_OK;
	log_err("%s: must run as root: try sudo dsfemu %s", what, what);
	return CLI_UNABLE;
}

int lab_call_open(struct lab_client *c, const char *lab)
{
	int err = lab_client_open(c, lab);

	if (err == 0)
		return CLI_OK;
	if (err == -EACCES)
		log_err("lab %s: belongs to root: try sudo", lab);
	else if (lab_running(lab))
		log_err("lab %s: it is just starting or ending", lab);
	else if (err == -ENOENT || err == -ECONNREFUSED)
		log_err("lab %s: doesn't run; dsfemu list shows what does, dsfemu down %s removes "
			"what is "
			"left of it",
			lab, lab);
	else
		log_err("lab %s: %s", lab, strerror(-err));
	return err == -EACCES ? CLI_UNABLE : CLI_FAILED;
}

/* Ends the span with a zero byte in place: what follows it isn't needed any more. */
static const char *terminate(struct json_span span)
{
	((char *)span.at)[span.size] = '\0';
	return span.at;
}

static int tell_error(const char *line, size_t size, const struct json_span error)
{
	cJSON *string = cJSON_ParseWithLength(error.at, error.size);
	int64_t code = CLI_FAILED;

	log_err("%s", cJSON_IsString(string) ? string->valuestring : "the lab gave no reason");
	cJSON_Delete(string);
	(void)json_span_integer(json_span_get(line, size, "code"), &code);
	return code == CLI_USAGE ? CLI_USAGE : CLI_FAILED;
}

int lab_call(struct lab_client *c, const char *request, const char **result, const char **failed)
{
	struct json_span span, failed_span;
	size_t size = 0;
	char *line;
	int err = lab_client_send(c, request);

	line = err == 0 ? lab_client_receive(c, LAB_CALL_MS, &size, &err) : NULL;
	if (line == NULL) {
		log_err("the lab doesn't answer: %s",
			err == -EPIPE ? "it has ended" : strerror(-err));
		return CLI_FAILED;
	}
	span = json_span_get(line, size, "error");
	if (span.at != NULL)
		return tell_error(line, size, span);
	span = json_span_get(line, size, "result");
	failed_span = json_span_get(line, size, "failed");
	if (span.at == NULL) {
		log_err("the lab gave an answer that makes no sense");
		return CLI_FAILED;
	}
	*result = terminate(span);
	if (failed != NULL)
		*failed = failed_span.at != NULL ? terminate(failed_span) : "[]";
	return CLI_OK;
}

int lab_call_once(const char *lab, const char *request)
{
	struct lab_client client;
	const char *result;
	int code = lab_call_open(&client, lab);

	if (code != CLI_OK)
		return code;
	code = lab_call(&client, request, &result, NULL);
	lab_client_close(&client);
	return code;
}

int lab_call_term(const struct cli_options *options, const char *option, const char *key,
	char *text, size_t size)
{
	const char *value = cli_option(options, option);
	uint64_t ns;
	bool wall;

	text[0] = '\0';
	if (value == NULL)
		return CLI_OK;
	if (!units_duration(value, &ns, &wall) || ns == 0)
		return cli_wrong(
			options, "--%s takes a duration like 2ms or 5sw, not %s", option, value);
	snprintf(text, size, ",\"%s\":%llu%s", key, (unsigned long long)ns,
		wall ? ",\"wall\":true" : "");
	return CLI_OK;
}

bool lab_call_lock(const char *what, const char *lab)
{
	char path[LAB_PATH_MAX];
	int fd = open(lab_path(path, lab, "lab.json"), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		return true;
	if (fd >= 0 && errno == EWOULDBLOCK)
		log_err("%s: lab %s: another run or drill is under way", what, lab);
	else
		log_err("%s: %s: %s", what, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return false;
}
