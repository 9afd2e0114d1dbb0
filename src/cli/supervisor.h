/*
 * supervisor.h - the process that keeps one lab
 *
 * `up` starts it (by exec, so that its environment shows the lab's mark), it builds the lab, forks
 * the nodes, tells `up` when all of them are ready, and stays. It is one thread around one epoll:
 * nothing in it waits for a peer, a node or a client. Parts:
 *
 *   supervisor.c         start, phases, event loop, end
 *   supervisor_ready.c   until all nodes are ready, or what is missing
 *   supervisor_build.c   namespaces, links, hosts' kernels
 *   supervisor_node.c    node processes: start, stop, freeze, death, ports
 *   supervisor_external.c  external nodes: their files, and commands that aren't ours
 *   supervisor_job.c     questions to nodes, and what waits for their answers
 *   supervisor_client.c  the lab's control socket
 *   supervisor_op.c      what clients may ask for
 *   supervisor_call.c    a request's parts
 *   supervisor_link.c    requests about links and drains
 *   supervisor_process.c requests about processes of nodes
 *   supervisor_drain.c   drains of links and nodes
 *   supervisor_heal.c    what was asked for a time, and its end
 *   supervisor_event.c   what happens, for clients that listen
 *   supervisor_status.c  the object of `up` and `status`
 *   supervisor_log.c     what nodes say on stderr, and our own log
 *
 * All or nothing. Until the lab is ready every failure, signal, `down` or death of `up` leads to
 * supervisor.c's end_lab, which removes everything by its marks, as `down` does later. A supervisor
 * that is killed takes its nodes along; what stays has its marks, and `down` or the next `up`
 * removes it.
 *
 * Asked state (links set down, impairments, drains, nodes stopped) is kept here and applied again
 * to what comes back. What was asked for a time only ends here too, whatever becomes of who asked.
 */
#ifndef DSF_CLI_SUPERVISOR_H
#define DSF_CLI_SUPERVISOR_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <cjson/cJSON.h>
#include "cli/channel.h"
#include "cli/lab.h"
#include "netns/netns.h"
#include "node/node.h"
#include "topo/model.h"

#define SUPERVISOR_CLIENTS_MAX       64
#define SUPERVISOR_JOBS_MAX          256
#define SUPERVISOR_REQUEST_BYTES_MAX (16u << 20)  /* a client's line */
#define SUPERVISOR_ANSWER_BYTES_MAX  (64u << 20)  /* a node's line */
#define SUPERVISOR_LOG_BYTES_MAX     (256u << 10) /* per node; then the older half goes */
#define SUPERVISOR_ANSWER_MS         5000         /* a node that says nothing for that long */
#define SUPERVISOR_IFINDEX_BASE      10u /* + port index: the ifindex, never twice in a lab */
#define SUPERVISOR_COMMAND           "supervisor" /* argv[1] of the process */

enum supervisor_phase {
	SUPERVISOR_BUILDING,
	SUPERVISOR_STARTING, /* until all nodes are ready */
	SUPERVISOR_RUNNING,
	SUPERVISOR_ENDING,
};

enum supervisor_state {
	SUPERVISOR_NODE_EXTERNAL, /* a namespace only: no command */
	SUPERVISOR_NODE_NONE,     /* not started yet */
	SUPERVISOR_NODE_ALIVE,
	SUPERVISOR_NODE_FROZEN,
	SUPERVISOR_NODE_STOPPED, /* ended because we were asked to */
	SUPERVISOR_NODE_DEAD,
};

struct supervisor;
struct supervisor_job;
struct supervisor_heal;

/* A descriptor in the epoll. */
struct supervisor_source {
	void (*fn)(void *user, uint32_t events);
	void *user;
};

struct supervisor_request {
	struct supervisor_request *next;
	int64_t id;
	struct supervisor_job *job;
	uint32_t slot; /* of job->answers */
};

struct supervisor_node {
	struct supervisor *s;
	uint32_t index;
	enum supervisor_state state;
	bool started, ready; /* as the process said last */
	bool was_ready;      /* since the process started */
	bool stop_asked;     /* its end is no accident */
	bool ending;         /* a signal that ends it is under way */
	bool leaving;        /* external: its command has ended, processes of it haven't */
	bool drained;        /* asked */
	pid_t pid;           /* 0: no process */
	unsigned long long start_time;
	int pidfd;
	int exit_code;      /* of the last process; 128 + N: signal N */
	struct netns_ns ns; /* while the lab is being built */
	uint64_t inode;     /* of the namespace */
	struct channel control;
	int64_t next_id;
	struct supervisor_request *requests, **requests_end; /* unanswered, oldest first */
	struct netns_monitor monitor;                        /* hosts: see supervisor_node.c */
	struct supervisor_source control_source, pidfd_source, monitor_source;
	uint32_t log_bytes;
	char last_line[160]; /* what it said last on stderr */
	/* External nodes with a command. */
	int output_fd; /* what it says; -1: nobody can say anything */
	struct supervisor_source output_source;
	int64_t settled_ms; /* when it counts as ready */
	int64_t gone_ms;    /* what is left of it is killed then */
};

struct supervisor_link {
	bool down;                            /* asked */
	bool drained[2];                      /* asked, ends a and b */
	struct node_impairment impairment[2]; /* asked, ends a and b */
};

/* What a request changes of a link; those with an argument are of ends a and b. */
#define SUPERVISOR_KNOB_DOWN        0x01u
#define SUPERVISOR_KNOB_LOSS        0x02u
#define SUPERVISOR_KNOB_CORRUPT     0x04u
#define SUPERVISOR_KNOB_REORDER     0x08u
#define SUPERVISOR_KNOB_DELAY       0x10u
#define SUPERVISOR_KNOB_JITTER      0x20u
#define SUPERVISOR_KNOB_RATE        0x40u
#define SUPERVISOR_KNOB_SILENT(end) (0x80u << (end))
#define SUPERVISOR_KNOB_DRAIN(end)  (0x200u << (end))
#define SUPERVISOR_KNOBS            0x7ffu

/* How long something is asked for. All zero: until it is asked otherwise. */
struct supervisor_term {
	const struct supervisor_client *client; /* not NULL: at most until this one goes */
	int64_t for_ms;                         /* 0: no end of its own */
	uint32_t toggles;                       /* flap: changes after the first */
	int64_t half_ms;                        /* flap: between two changes */
};

struct supervisor_client {
	struct supervisor_client *next;
	struct supervisor *s;
	struct channel channel;
	struct supervisor_source source;
	int64_t accepted_ms;
	bool asked;      /* has sent a whole request */
	bool events;     /* wants to hear what happens */
	uint64_t missed; /* events that it was too slow for, not told yet */
	bool wants_end;  /* asked for `down` and waits for it */
	bool ended;
};

struct supervisor_answer {
	uint32_t node;
	const char *query; /* which question, static */
	char *text;        /* the result's JSON, or what went wrong; NULL: no answer came */
	size_t size;
	bool failed;
};

/* Something that waits for nodes, and then answers a client. */
struct supervisor_job {
	struct supervisor_job *next;
	struct supervisor *s;
	struct supervisor_client *client; /* NULL: gone, or the job is our own */
	char *id;                         /* the client's, as JSON; NULL: none */
	int64_t deadline_ms;
	uint32_t waiting; /* answers to come */
	struct supervisor_answer *answers;
	uint32_t answers_count, answers_size;
	uint32_t node, link; /* what it is about */
	bool expired;        /* deadline_ms came first */
	/* NULL: over when nothing is waited for. */
	bool (*over)(struct supervisor_job *job);
	void (*done)(struct supervisor_job *job);
};

struct supervisor_options {
	const char *lab;
	const char *file;       /* for messages */
	uint32_t time_dilation; /* 0: the file's */
	uint32_t timeout_s;
	bool keep;   /* don't undo when the time is over */
	int up_fd;   /* stream socket to `up` */
	int text_fd; /* the topology file's text */
};

struct supervisor {
	struct supervisor_options options;
	struct topo *topo;
	enum supervisor_phase phase;
	bool sessions; /* FSDB's: the lab isn't too large for them */
	uint64_t epoch_ns;
	int64_t deadline_ms; /* of being ready */
	int lock_fd, epoll_fd, signal_fd, listen_fd, log_fd[2];
	struct supervisor_node *nodes;
	struct supervisor_link *links;
	bool *port_up;            /* hosts' ports: administratively up, as their monitor saw */
	uint32_t processes_count; /* nodes that are to have a process */
	uint32_t started_count, ready_count;
	struct channel up; /* to `up` */
	struct supervisor_source up_source, signal_source, listen_source, log_source;
	struct supervisor_client *clients;
	uint32_t clients_count;
	struct supervisor_job *jobs;
	uint32_t jobs_count;
	struct supervisor_heal *heals;
	bool up_told;  /* `up` has been told the end of the story */
	bool kill_all; /* end strangers' processes too */
	int exit_code;
	char failure[1024];
	cJSON *missing; /* what was not ready in time */
	struct netns_batch batch;
	uint32_t log_bytes;
};

/* main of the process; argv as supervisor_start made it. */
int supervisor_main(int argc, char **argv);

/* Starts a supervisor and returns its pid, and our end of its `up` socket. -errno. */
pid_t supervisor_start(const struct supervisor_options *options, int *fd);

/* supervisor.c */
int supervisor_watch(
	struct supervisor *s, int fd, struct supervisor_source *source, uint32_t events);
void supervisor_rewatch(
	struct supervisor *s, int fd, struct supervisor_source *source, uint32_t events);
/* Handles what has come, waits up to time_ms for it. False: the lab is to end. */
bool supervisor_turn(struct supervisor *s, int time_ms);
int64_t supervisor_clock_ms(void);
/* The lab can't be: remembers why (the first reason counts) and ends it. */
void supervisor_fail(struct supervisor *s, int exit_code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void supervisor_progress(struct supervisor *s, const char *what, uint32_t done, uint32_t total);

/* The end of the story for `up`, taken over; the connection closes once it is sent. */
void supervisor_tell_last(struct supervisor *s, cJSON *object);

/* supervisor_ready.c */
void supervisor_ready_look(struct supervisor *s);

/* supervisor_build.c */
int supervisor_build(struct supervisor *s);
void supervisor_configure_port(struct supervisor *s, uint32_t port, bool first);

/* supervisor_node.c */
int supervisor_node_spawn(struct supervisor_node *n);
int supervisor_node_ports(struct supervisor_node *n); /* sets them as they are to be */
int supervisor_link_apply(struct supervisor *s, uint32_t link);
int supervisor_node_watch_ports(struct supervisor_node *n); /* in its namespace */
int supervisor_node_start(struct supervisor_node *n);
void supervisor_node_signal(struct supervisor_node *n, int signal_number);
/* Tells the node what is asked of a port. */
void supervisor_node_impair(struct supervisor_node *n, uint32_t port);
void supervisor_node_thaw(struct supervisor_node *n);
/* Members of an impair request about a port, and the way to it; their size. */
#define SUPERVISOR_IMPAIR_TEXT_MAX 768u
int supervisor_impair_text(const struct supervisor *s, uint32_t port, char *text, size_t size);
const char *supervisor_node_state_name(const struct supervisor_node *n);
/* Is there a process that answers questions? What an external node runs doesn't. */
bool supervisor_node_answers(const struct supervisor_node *n);
void supervisor_node_set_ready(struct supervisor_node *n, bool ready);
/* A descriptor of its namespace, or -errno. */
int supervisor_node_namespace(const struct supervisor_node *n);
/* Keeps the process that netns_spawn gave n->pidfd for; 0, or -errno and it is gone. */
int supervisor_node_adopt(struct supervisor_node *n, pid_t pid);
void supervisor_write_pids(struct supervisor *s);

/* supervisor_external.c */
/* Makes the folders of external nodes with their files. 0, or -errno and the lab ends. */
int supervisor_external_files(struct supervisor *s);
int supervisor_external_spawn(struct supervisor_node *n);
/* All that there is of its command. Returns how many processes were found; 0 only counts. */
uint32_t supervisor_external_signal(struct supervisor_node *n, int signal_number);
/* Its command is asked to end: kills it when it doesn't. */
void supervisor_external_ending(struct supervisor_node *n);
/* Its command has ended: so does what that left behind. */
void supervisor_external_ended(struct supervisor_node *n);
/* Takes what its command has said. */
void supervisor_external_hear(struct supervisor_node *n);
/* "code 1: what it said last" or "signal 9: ...". */
void supervisor_external_why(const struct supervisor_node *n, char *text, size_t size);

/* supervisor_job.c */
struct supervisor_job *supervisor_job_new(struct supervisor *s, struct supervisor_client *client,
	const char *id, int time_ms, void (*done)(struct supervisor_job *job));
/* Asks a node: members is what stands between the braces behind the id. A node that can't be asked
 * is a failed answer. */
void supervisor_job_ask(struct supervisor_job *job, struct supervisor_node *n, const char *query,
	const char *members, size_t size);
void supervisor_node_answer(struct supervisor_node *n, int64_t id, const char *line, size_t size);
void supervisor_node_requests_fail(struct supervisor_node *n, const char *why);
void supervisor_jobs_run(struct supervisor *s);
void supervisor_jobs_forget(struct supervisor *s, const struct supervisor_client *client);
/* True while a job is to answer the client. */
bool supervisor_jobs_wait(const struct supervisor *s, const struct supervisor_client *client);
/* The earliest deadline of a job, INT64_MAX: none. */
int64_t supervisor_jobs_deadline(const struct supervisor *s);
void supervisor_jobs_free(struct supervisor *s);

/* supervisor_client.c */
int supervisor_listen(struct supervisor *s);
void supervisor_client_put(struct supervisor_client *c, const char *text, size_t size);
void supervisor_client_flush(struct supervisor_client *c);
/* {"id":ID,"result":TEXT} and {"id":ID,"error":"..."}; a client that is NULL is no error. */
void supervisor_client_result(
	struct supervisor_client *c, const char *id, const char *text, size_t size);
void supervisor_client_result_json(struct supervisor_client *c, const char *id, cJSON *result);
void supervisor_client_error(struct supervisor_client *c, const char *id, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with "code":2: wrong use, not a failure. */
void supervisor_client_wrong(struct supervisor_client *c, const char *id, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void supervisor_clients_reap(struct supervisor *s);
void supervisor_clients_end(struct supervisor *s, cJSON *strangers);

/* supervisor_op.c */
void supervisor_op(struct supervisor_client *c, const char *line, size_t size);

/* supervisor_drain.c */
/* Asks the node at a port to drain it as s->links says; the node itself as its own state says. */
void supervisor_drain_ask_port(struct supervisor_job *job, uint32_t port);
void supervisor_drain_ask_node(struct supervisor_job *job, struct supervisor_node *n);
/* The same unasked: whoever doesn't run is told when it is started. */
void supervisor_drain_tell_port(struct supervisor *s, uint32_t port);
void supervisor_drain_tell_node(struct supervisor_node *n);
/* Is the link or one of its ends' nodes asked to be drained? */
bool supervisor_drain_asked(const struct supervisor *s, uint32_t link);
/* Array of the node's ports by number, the caller's; NULL: memory is short. */
bool *supervisor_drain_ports(const struct supervisor_node *n);

/* supervisor_heal.c */
/* What is about to be asked of a link's knobs ends as term says; called before the asked state
 * changes. Earlier terms of these knobs are over. 0 or -ENOMEM. */
int supervisor_heal_link(
	struct supervisor *s, uint32_t link, uint32_t knobs, const struct supervisor_term *term);
/* The same for a node's process, which is about to be frozen, ended or started. */
int supervisor_heal_node(
	struct supervisor *s, struct supervisor_node *n, const struct supervisor_term *term);
/* The same for its drain. */
int supervisor_heal_drain(
	struct supervisor *s, struct supervisor_node *n, const struct supervisor_term *term);
void supervisor_heals_run(struct supervisor *s);
int64_t supervisor_heals_deadline(const struct supervisor *s);
void supervisor_heals_client_gone(struct supervisor *s, const struct supervisor_client *client);
void supervisor_heals_free(struct supervisor *s);

/* supervisor_event.c */
/* A node's line: goes to who listens, with the node's name in front. */
void supervisor_event_relay(const struct supervisor_node *n, const char *line);
/* What became of a node's process: died, stopped, frozen, thawed. */
void supervisor_event_process(const struct supervisor_node *n, const char *event);
/* A link is asked to be as s->links says. To be told before it is done. */
void supervisor_event_asked(struct supervisor *s, uint32_t link);
/* Tells a client what it has missed, once it has room for it. */
void supervisor_event_missed(struct supervisor_client *c);
/* What is asked of a link's impairment other than the lab file says: an object, the caller's; NULL:
 * nothing. */
cJSON *supervisor_impairment(const struct supervisor *s, uint32_t link);

/* supervisor_status.c */
/* done gets the object by supervisor_status_object. */
struct supervisor_job *supervisor_status_ask(struct supervisor *s, struct supervisor_client *client,
	const char *id, void (*done)(struct supervisor_job *job));
cJSON *supervisor_status_object(struct supervisor_job *job);
/* "starting", "ready", "degraded" or "ending", as the nodes last said. */
const char *supervisor_state_name(const struct supervisor *s);
/* What is asked of links and nodes that the lab file doesn't say; NULL when memory is short. */
cJSON *supervisor_asked_object(const struct supervisor *s);
/* Without asking anybody: for a lab that failed. */
cJSON *supervisor_status_failed(struct supervisor *s);

/* supervisor_log.c */
int supervisor_log_open(struct supervisor *s);
/* Something that a node said, for its log. */
void supervisor_log_node(struct supervisor_node *n, const char *text, size_t size);
void supervisor_log(struct supervisor *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
