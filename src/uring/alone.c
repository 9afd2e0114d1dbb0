#include "uring/alone.h"
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "topo/file.h"
#include "uring/log.h"
#include "uring/node_main.h"

#define EXIT_USE 2

/* The whole file, zero-terminated, which the caller frees; NULL with errno. */
static char *read_file(const char *name, size_t *size)
{
	FILE *file = fopen(name, "re");
	size_t capacity = 65536, got;
	char *text = NULL, *grown;

	*size = 0;
	if (file == NULL)
		return NULL;
	do {
		grown = realloc(text, capacity + 1);
		if (grown == NULL)
			break;
		text = grown;
		got = fread(text + *size, 1, capacity - *size, file);
		*size += got;
		if (*size == capacity)
			capacity *= 2;
	} while (got > 0 && *size < TOPO_TEXT_BYTES_MAX);
	if (grown == NULL || ferror(file)) {
		int err = grown == NULL ? ENOMEM : errno;

		free(text);
		fclose(file);
		errno = err;
		return NULL;
	}
	fclose(file);
	text[*size] = '\0';
	return text;
}

static struct topo *load(const char *name)
{
	char line[TOPO_ERROR_FILE_MAX + TOPO_ERROR_PATH_MAX + TOPO_ERROR_TEXT_MAX];
	struct topo_error error;
	struct topo *topo;
	size_t size;
	char *text = read_file(name, &size);

	if (text == NULL) {
		log_err("%s: %s", name, uring_err_text(-errno));
		return NULL;
	}
	if (topo_load_text(text, size, name, &topo, &error) < 0)
		log_err("%s", topo_error_line(&error, line, sizeof(line)));
	free(text);
	return topo;
}

static bool read_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value <= max;
}

struct options {
	const char *file, *node;
	uint64_t dilation; /* 0: the file's */
	uint64_t epoch_ns;
	int control_fd;
};

static bool read_options(int argc, char **argv, struct options *o)
{
	static const struct option names[] = {
		{ "time-dilation", required_argument, NULL, 'd' },
		{ "epoch", required_argument, NULL, 'e' },
		{ "control", required_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	uint64_t fd;
	int option;

	memset(o, 0, sizeof(*o));
	o->control_fd = -1;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'd' && read_number(optarg, UINT32_MAX, &o->dilation))
			continue;
		if (option == 'e' && read_number(optarg, UINT64_MAX, &o->epoch_ns))
			continue;
		if (option != 'c' || !read_number(optarg, INT32_MAX, &fd))
			return false;
		o->control_fd = (int)fd;
	}
	if (optind + 2 != argc)
		return false;
	o->file = argv[optind];
	o->node = argv[optind + 1];
	return true;
}

static int run(struct topo *topo, const struct options *o, bool host)
{
	struct uring_node_config config = {
		.topo = topo,
		.index = topo_find_node(topo, o->node),
		.epoch_ns = o->epoch_ns,
		.sessions = uring_runs_sessions(topo),
		.control_fd = o->control_fd,
	};

	if (o->dilation > 0)
		topo->time_dilation = (uint32_t)o->dilation;
	if (config.index == TOPO_NONE) {
		log_err("%s: no node %s", o->file, o->node);
		return EXIT_USE;
	}
	if ((topo->nodes[config.index].role == TOPO_ROLE_HOST) != host) {
		log_err("%s is %s", o->node,
			host ? "a switch: use dsf-switch" : "a host: use dsf-host");
		return EXIT_USE;
	}
	if (topo->time_dilation == 0) {
		log_err("%s: time_dilation is not decided: give --time-dilation", o->file);
		return EXIT_USE;
	}
	return uring_node_main(&config);
}

int uring_alone_main(int argc, char **argv, bool host)
{
	struct options options;
	struct topo *topo;
	int code;

	uring_log_open(host ? "host" : "switch", URING_LOG_INFO);
	if (!read_options(argc, argv, &options)) {
		fprintf(stderr,
			"usage: %s LAB.json NODE [--time-dilation D] [--epoch NS] [--control FD]\n",
			host ? "dsf-host" : "dsf-switch");
		return EXIT_USE;
	}
	topo = load(options.file);
	if (topo == NULL)
		return EXIT_USE;
	code = run(topo, &options, host);
	topo_free(topo);
	return code;
}
