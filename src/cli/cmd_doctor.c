#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/if_tun.h>
#include <linux/io_uring.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/commands.h"
#include "cli/lab.h"
#include "cli/lab_limits.h"
#include "cli/log.h"
#include "cli/output.h"
#include "netns/netns.h"

/* A lab that everybody should be able to run: the needs of mini.json, rounded up. */
static const struct lab_needs small_lab = { .descriptors = 256,
	.processes = 40,
	.namespaces = 20,
	.neighbors = 0,
	.memory_bytes = 128u << 20 };

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

struct report {
	cJSON *checks;
	bool failed;
};

enum verdict { GOOD, WARNING, BAD };

static void add(struct report *r, const char *check, enum verdict verdict, const char *mend,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(struct report *r, const char *check, enum verdict verdict, const char *mend,
	const char *format, ...)
{
	static const char *const states[] = { "ok", "warning", "failed" };
	cJSON *row = cJSON_CreateObject();
	char detail[400];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(detail, sizeof(detail), format, arguments);
	va_end(arguments);
	cJSON_AddStringToObject(row, "check", check);
	cJSON_AddStringToObject(row, "state", states[verdict]);
	cJSON_AddStringToObject(row, "detail", detail);
	if (verdict == GOOD)
		cJSON_AddNullToObject(row, "mend");
	else
		cJSON_AddStringToObject(row, "mend", mend);
	cJSON_AddItemToArray(r->checks, row);
	r->failed |= verdict == BAD;
}

static void check_kernel(struct report *r)
{
	struct utsname name;
	int major = 0, minor = 0;
	bool good;

	(void)uname(&name);
	good = sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
	       (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR));
	add(r, "kernel", good ? GOOD : BAD, "boot Linux 6.1 or newer", "%s", name.release);
}

/* What a node does, step by step in a namespace of its own that ends with the process. */
enum step {
	STEP_NAMESPACE,
	STEP_SYSCTL,
	STEP_VETH,
	STEP_ADDRESS,
	STEP_RULE,
	STEP_SHAPER,
	STEP_PACKET,
	STEP_TUN,
	STEP_RING,
	STEP_COUNT
};

static const struct {
	const char *check, *mend;
} steps[STEP_COUNT] = {
	[STEP_NAMESPACE] = { "network namespaces",
		"run as root, outside of an unprivileged container" },
	[STEP_SYSCTL] = { "IPv6 sysctls",
		"/proc/sys must be writable: in a container, --privileged" },
	[STEP_VETH] = { "veth links", "modprobe veth" },
	[STEP_ADDRESS] = { "IPv6", "boot without ipv6.disable=1" },
	[STEP_RULE] = { "IPv6 policy routing", "a kernel with CONFIG_IPV6_MULTIPLE_TABLES" },
	[STEP_SHAPER] = { "tbf shaper", "modprobe sch_tbf" },
	[STEP_PACKET] = { "packet sockets", "modprobe af_packet" },
	[STEP_TUN] = { "TUN devices", "modprobe tun; in a container, --device /dev/net/tun" },
	[STEP_RING] = { "io_uring", "sysctl -w kernel.io_uring_disabled=0; allow it in seccomp" },
};

static int try_veth(struct netns_batch *b, int nl)
{
	int ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct netns_link_end a = { .ns_fd = ns,
		.ifindex = 10,
		.name = "a",
		.mtu = 65535,
		.mac = { { 2, 0, 0, 0, 0, 1 } } };
	struct netns_link_end z = { .ns_fd = ns,
		.ifindex = 11,
		.name = "z",
		.mtu = 9000,
		.mac = { { 6, 0, 0, 0, 0, 1 } },
		.single_segment = true };

	if (ns < 0)
		return -errno;
	netns_batch_init(b);
	netns_batch_use(b, nl);
	netns_link_add(b, &a, &z, 0);
	netns_link_set(b, 10, true, 0);
	netns_link_set(b, 11, true, 0);
	return netns_batch_flush(b);
}

static int try_kernel_ipv6(struct netns_batch *b, enum step step)
{
	struct dsf_ip6 address = { { 0xfd, 0x5f, [15] = 1 } };
	struct netns_qdisc_tbf tbf = { 400000000, 65536, 1u << 20 };

	netns_batch_reset(b);
	if (step == STEP_ADDRESS)
		netns_addr_add(b, 11, &address, 64, 0);
	else if (step == STEP_RULE)
		netns_route_rule(b, &address, 1000, 1000, 0);
	else
		netns_qdisc_tbf(b, 11, &tbf, 0);
	return netns_batch_flush(b);
}

static int try_tun(void)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int err = fd < 0 ? -errno : ioctl(fd, TUNSETIFF, &request) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return err;
}

static int try_ring(void)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SINGLE_ISSUER |
						   IORING_SETUP_DEFER_TASKRUN };
	long fd = syscall(SYS_io_uring_setup, 8u, &params);

	if (fd < 0)
		return -errno;
	close((int)fd);
	return 0;
}

static int try(enum step step, struct netns_batch *b, int *nl)
{
	int fd;

	switch (step) {
	case STEP_NAMESPACE:
		if (unshare(CLONE_NEWNET) < 0)
			return -errno;
		*nl = netns_nl_open();
		return *nl < 0 ? *nl : 0;
	case STEP_SYSCTL: return netns_ns_ipv6_on();
	case STEP_VETH: return try_veth(b, *nl);
	case STEP_ADDRESS:
	case STEP_RULE:
	case STEP_SHAPER: return try_kernel_ipv6(b, step);
	case STEP_PACKET:
		fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL));
		if (fd < 0)
			return -errno;
		close(fd);
		return 0;
	case STEP_TUN: return try_tun();
	case STEP_RING: return try_ring();
	case STEP_COUNT: break;
	}
	return 0;
}

static void try_all(int *results)
{
	static struct netns_batch batch;
	int nl = -1;

	for (int i = 0; i < STEP_COUNT; i++)
		results[i] = i > 0 && results[0] < 0 && i != STEP_RING
				     ? -ECANCELED
				     : try((enum step)i, &batch, &nl);
}

static void check_steps(struct report *r)
{
	int results[STEP_COUNT], pipe_fd[2];
	pid_t pid = pipe2(pipe_fd, O_CLOEXEC) < 0 ? -1 : fork();
	bool got;

	if (pid < 0) {
		add(r, "processes", BAD, "raise the limit on processes", "%s", strerror(errno));
		return;
	}
	if (pid == 0) {
		try_all(results);
		_exit(write(pipe_fd[1], results, sizeof(results)) != (ssize_t)sizeof(results));
	}
	close(pipe_fd[1]);
	got = read(pipe_fd[0], results, sizeof(results)) == (ssize_t)sizeof(results);
	close(pipe_fd[0]);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; got && i < STEP_COUNT; i++) {
		if (results[i] == -ECANCELED)
			add(r, steps[i].check, WARNING, "first mend network namespaces",
				"not tried");
		else
			add(r, steps[i].check, results[i] == 0 ? GOOD : BAD, steps[i].mend, "%s",
				results[i] == 0 ? "works" : strerror(-results[i]));
	}
	if (!got)
		add(r, steps[0].check, BAD, steps[0].mend, "the trial ended early");
}

static void check_folder(struct report *r, const char *folder)
{
	bool good = mkdir(folder, 0755) == 0 || (errno == EEXIST && access(folder, W_OK) == 0);

	add(r, folder, good ? GOOD : BAD, "must be a folder that root can write to", "%s",
		good ? "writable" : strerror(errno));
	(void)rmdir(folder); /* only if it is empty, as one that we just made */
}

static void check_limits(struct report *r)
{
	for (int i = 0; i < LAB_LIMIT_COUNT; i++) {
		char name[320] = "", mend[320] = "";
		uint64_t room = lab_limit_free((enum lab_limit)i, name, mend, sizeof(name));
		bool good = room >= lab_limit_need((enum lab_limit)i, &small_lab);

		if (room == UINT64_MAX)
			add(r, name, GOOD, mend, "no limit");
		else
			add(r, name, good ? GOOD : BAD, mend, "%" PRIu64 " left", room);
	}
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char *copy = strdup(path != NULL ? path : "/usr/sbin:/usr/bin:/sbin:/bin"), *rest = copy,
	     *folder;
	bool found = false;

	while (copy != NULL && !found && (folder = strsep(&rest, ":")) != NULL) {
		char file[4200];

		snprintf(file, sizeof(file), "%.4000s/%s", folder, program);
		found = access(file, X_OK) == 0;
	}
	free(copy);
	return found;
}

static void check_programs(struct report *r)
{
	static const struct {
		const char *program, *package, *use;
	} programs[] = {
		{ "ip", "iproute2", "looking into namespaces" },
		{ "ping", "iputils-ping", "kernel traffic" },
		{ "tcpdump", "tcpdump", "capture" },
		{ "dumpcap", "wireshark-common", "capture -w" },
		{ "tshark", "tshark", "dissecting captures" },
		{ "iperf3", "iperf3", "kernel traffic" },
	};

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char mend[80];
		bool found = in_path(programs[i].program);

		snprintf(mend, sizeof(mend), "apt install %s", programs[i].package);
		add(r, programs[i].program, found ? GOOD : WARNING, mend, "%s: for %s",
			found ? "found" : "not found", programs[i].use);
	}
}

static int print_table(const struct report *r)
{
	static const char *const titles[] = { "CHECK", "STATE", "DETAIL", "HOW TO MEND IT" };
	static const char *const keys[] = { "check", "state", "detail", "mend" };
	struct output_text text = { .bytes = NULL };
	struct output_table table;
	const cJSON *row;

	output_table_begin(&table, 4, titles);
	cJSON_ArrayForEach(row, r->checks)
	{
		for (int i = 0; i < 4; i++) {
			const cJSON *item = cJSON_GetObjectItemCaseSensitive(row, keys[i]);

			output_table_cell(
				&table, "%s", cJSON_IsString(item) ? item->valuestring : "");
		}
	}
	output_table_end(&table, &text);
	return output_text_write(&text);
}

static int run_doctor(int argc, char **argv, const struct cli_options *options)
{
	struct report r = { .checks = cJSON_CreateArray() };
	int code;

	(void)argc;
	(void)argv;
	add(&r, "rights", geteuid() == 0 ? GOOD : BAD, "sudo dsfemu doctor", "user id %d",
		(int)geteuid());
	check_kernel(&r);
	check_steps(&r);
	if (geteuid() == 0) {
		check_folder(&r, NETNS_NS_DIR);
		check_folder(&r, LAB_DIR);
	}
	check_limits(&r);
	check_programs(&r);
	if (options->json) {
		code = output_json(r.checks);
	} else {
		code = print_table(&r);
		cJSON_Delete(r.checks);
	}
	return code == CLI_OK && r.failed ? CLI_UNABLE : code;
}

const struct cli_command cmd_doctor = {
	.name = "doctor",
	.usage = "",
	.summary = "check what this machine offers, and how to mend it",
	.help = "Ends with 3 when something is missing that every lab needs.",
	.words_min = 0,
	.words_max = 0,
	.run = run_doctor,
};
