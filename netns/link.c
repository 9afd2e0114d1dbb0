#include "netns/link.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/gen_stats.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

#define LINK_BYTES_MAX 8192u       /* what the kernel says of a link */
#define DELETE_GROUP   0x64736600u /* "dsf": every link is put here, then the group is deleted */

static void put_end(struct nlmsghdr *message, const struct netns_link_end *end)
{
	mnl_attr_put_strz(message, IFLA_IFNAME, end->name);
	mnl_attr_put_u32(message, IFLA_NET_NS_FD, (uint32_t)end->ns_fd);
	mnl_attr_put_u32(message, IFLA_MTU, end->mtu);
	mnl_attr_put(message, IFLA_ADDRESS, sizeof(end->mac.bytes), end->mac.bytes);
	/* The default is one queue per CPU, which a port with one socket can't use. */
	mnl_attr_put_u32(message, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(message, IFLA_NUM_RX_QUEUES, 1);
	if (end->single_segment)
		mnl_attr_put_u32(message, IFLA_GSO_MAX_SEGS, 1);
}

void netns_link_add(struct netns_batch *b, const struct netns_link_end *a,
	const struct netns_link_end *z, uint32_t tag)
{
	struct nlmsghdr *message =
		netns_batch_add(b, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, "create link", tag);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	struct nlattr *linkinfo, *data, *peer;

	info->ifi_family = AF_UNSPEC;
	info->ifi_index = (int)a->ifindex;
	put_end(message, a);
	linkinfo = mnl_attr_nest_start(message, IFLA_LINKINFO);
	mnl_attr_put_strz(message, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(message, VETH_INFO_PEER);
	info = (struct ifinfomsg *)mnl_nlmsg_get_payload_tail(message);
	memset(info, 0, sizeof(*info));
	info->ifi_index = (int)z->ifindex;
	message->nlmsg_len += MNL_ALIGN(sizeof(*info));
	put_end(message, z);
	mnl_attr_nest_end(message, peer);
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, linkinfo);
}

static struct nlmsghdr *change_link(struct netns_batch *b, uint32_t ifindex, unsigned flags,
	unsigned mask, const char *what, uint32_t tag)
{
	struct nlmsghdr *message = netns_batch_add(b, RTM_NEWLINK, 0, what, tag);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ifi_family = AF_UNSPEC;
	info->ifi_index = (int)ifindex;
	info->ifi_flags = flags;
	info->ifi_change = mask;
	return message;
}

void netns_link_set(struct netns_batch *b, uint32_t ifindex, bool up, uint32_t tag)
{
	(void)change_link(
		b, ifindex, up ? IFF_UP : 0, IFF_UP, up ? "set link up" : "set link down", tag);
}

void netns_link_alias(struct netns_batch *b, uint32_t ifindex, const char *alias, uint32_t tag)
{
	struct nlmsghdr *message = change_link(b, ifindex, 0, 0, "mark namespace", tag);

	mnl_attr_put_strz(message, IFLA_IFALIAS, alias);
}

struct alias_reader {
	char *text;
};

static int read_alias(const struct nlattr *attribute, void *user)
{
	struct alias_reader *reader = user;

	if (mnl_attr_get_type(attribute) == IFLA_IFALIAS &&
		mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) >= 0 &&
		mnl_attr_get_payload_len(attribute) <= NETNS_LINK_ALIAS_MAX + 1)
		strcpy(reader->text, mnl_attr_get_str(attribute));
	return MNL_CB_OK;
}

/* What the kernel says of one link, in bytes; 0 or -errno. */
static int ask_link(int fd, uint32_t ifindex, uint8_t bytes[LINK_BYTES_MAX])
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	ssize_t got;

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST;
	info->ifi_index = (int)ifindex;
	if (send(fd, message, message->nlmsg_len, 0) < 0)
		return -errno;
	got = recv(fd, bytes, LINK_BYTES_MAX, 0);
	if (got < 0)
		return -errno;
	if (!mnl_nlmsg_ok(message, (int)got))
		return -EPROTO;
	if (message->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)mnl_nlmsg_get_payload(message))->error;
	return 0;
}

int netns_link_alias_get(int fd, uint32_t ifindex, char *text)
{
	uint8_t bytes[LINK_BYTES_MAX] __attribute__((aligned(8)));
	struct alias_reader reader = { text };
	int err = ask_link(fd, ifindex, bytes);

	text[0] = '\0';
	if (err == 0)
		(void)mnl_attr_parse(
			(struct nlmsghdr *)bytes, sizeof(struct ifinfomsg), read_alias, &reader);
	return err;
}

static int decode_attribute(const struct nlattr *attribute, void *user)
{
	struct netns_link_state *state = user;
	struct rtnl_link_stats64 stats;

	switch (mnl_attr_get_type(attribute)) {
	case IFLA_IFNAME:
		if (mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) >= 0 &&
			mnl_attr_get_payload_len(attribute) <= sizeof(state->name))
			strcpy(state->name, mnl_attr_get_str(attribute));
		break;
	case IFLA_OPERSTATE:
		state->carrier = mnl_attr_get_payload_len(attribute) >= 1 &&
				 mnl_attr_get_u8(attribute) == IF_OPER_UP;
		break;
	case IFLA_CARRIER_DOWN_COUNT:
		if (mnl_attr_validate(attribute, MNL_TYPE_U32) >= 0)
			state->carrier_downs = mnl_attr_get_u32(attribute);
		break;
	case IFLA_STATS64:
		/* Newer kernels append fields, and the payload is aligned to 4 only. */
		memset(&stats, 0, sizeof(stats));
		memcpy(&stats, mnl_attr_get_payload(attribute),
			mnl_attr_get_payload_len(attribute) < sizeof(stats)
				? mnl_attr_get_payload_len(attribute)
				: sizeof(stats));
		state->rx_packets = stats.rx_packets;
		state->tx_packets = stats.tx_packets;
		state->rx_bytes = stats.rx_bytes;
		state->tx_bytes = stats.tx_bytes;
		state->rx_dropped = stats.rx_dropped;
		state->tx_dropped = stats.tx_dropped;
		break;
	}
	return MNL_CB_OK;
}

bool netns_link_decode(const struct nlmsghdr *message, struct netns_link_state *state)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	bool lower_up;

	if ((message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK) ||
		mnl_nlmsg_get_payload_len(message) < sizeof(*info) || info->ifi_index <= 0)
		return false;
	*state = (struct netns_link_state){ .ifindex = (uint32_t)info->ifi_index };
	state->up = (info->ifi_flags & IFF_UP) != 0;
	state->deleted = message->nlmsg_type == RTM_DELLINK;
	if (mnl_attr_parse(message, sizeof(*info), decode_attribute, state) < 0)
		return false;
	lower_up = state->up && (info->ifi_flags & IFF_LOWER_UP) != 0;
	state->settling = lower_up && !state->carrier;
	state->carrier = lower_up && state->carrier;
	return true;
}

int netns_link_get(int fd, uint32_t ifindex, struct netns_link_state *state)
{
	uint8_t bytes[LINK_BYTES_MAX] __attribute__((aligned(8)));
	int err = ask_link(fd, ifindex, bytes);

	if (err < 0)
		return err;
	return netns_link_decode((struct nlmsghdr *)bytes, state) ? 0 : -EPROTO;
}

static struct nlmsghdr *get_links(uint8_t *bytes)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_seq = 1;
	info->ifi_family = AF_UNSPEC;
	return message;
}

static int group_link(const struct nlmsghdr *message, void *user)
{
	struct netns_batch *b = user;
	struct netns_link_state state;

	if (netns_link_decode(message, &state) && state.ifindex != NETNS_LINK_LO)
		mnl_attr_put_u32(change_link(b, state.ifindex, 0, 0, "group link", state.ifindex),
			IFLA_GROUP, DELETE_GROUP);
	return MNL_CB_OK;
}

int netns_link_delete_all(int fd)
{
	uint8_t bytes[128] __attribute__((aligned(8)));
	struct netns_batch *b = malloc(sizeof(*b));
	struct nlmsghdr *message;
	int answers, err;

	if (b == NULL)
		return -ENOMEM;
	answers = netns_nl_open(); /* the dump is still being read on fd */
	if (answers < 0) {
		free(b);
		return answers;
	}
	netns_batch_init(b);
	netns_batch_use(b, answers);
	netns_link_alias(b, NETNS_LINK_LO, "", NETNS_LINK_LO);
	err = netns_nl_dump(fd, get_links(bytes), group_link, b);
	if (err == 0)
		err = netns_batch_flush(b);
	if (err == 0) {
		message = netns_batch_add(b, RTM_DELLINK, 0, "delete links", 0);
		mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
		mnl_attr_put_u32(message, IFLA_GROUP, DELETE_GROUP);
		err = netns_batch_flush(b);
		if (err == -ENODEV) /* there was none */
			err = 0;
	}
	close(answers);
	free(b);
	return err;
}

/* qdisc drops arrive by ifindex, ahead of the links they belong to. */
struct stats_reader {
	netns_link_fn fn;
	void *user;
	struct {
		uint32_t ifindex;
		uint64_t dropped;
	} qdiscs[256]; /* more than a node has ports; the rest show 0 */
	uint32_t count;
};

static int qdisc_queue(const struct nlattr *attribute, void *user)
{
	uint64_t *dropped = user;
	struct gnet_stats_queue queue;

	if (mnl_attr_get_type(attribute) == TCA_STATS_QUEUE &&
		mnl_attr_get_payload_len(attribute) >= sizeof(queue)) {
		memcpy(&queue, mnl_attr_get_payload(attribute), sizeof(queue));
		*dropped = queue.drops;
	}
	return MNL_CB_OK;
}

static int qdisc_attribute(const struct nlattr *attribute, void *user)
{
	if (mnl_attr_get_type(attribute) == TCA_STATS2)
		return mnl_attr_parse_nested(attribute, qdisc_queue, user);
	return MNL_CB_OK;
}

static int read_qdisc(const struct nlmsghdr *message, void *user)
{
	struct stats_reader *reader = user;
	const struct tcmsg *tc = mnl_nlmsg_get_payload(message);
	uint64_t dropped = 0;

	if (message->nlmsg_type != RTM_NEWQDISC || tc->tcm_parent != TC_H_ROOT ||
		reader->count == sizeof(reader->qdiscs) / sizeof(reader->qdiscs[0]))
		return MNL_CB_OK;
	(void)mnl_attr_parse(message, sizeof(*tc), qdisc_attribute, &dropped);
	reader->qdiscs[reader->count].ifindex = (uint32_t)tc->tcm_ifindex;
	reader->qdiscs[reader->count++].dropped = dropped;
	return MNL_CB_OK;
}

static int read_stats(const struct nlmsghdr *message, void *user)
{
	struct stats_reader *reader = user;
	struct netns_link_state state;

	if (!netns_link_decode(message, &state))
		return MNL_CB_OK;
	for (uint32_t i = 0; i < reader->count; i++)
		if (reader->qdiscs[i].ifindex == state.ifindex)
			state.qdisc_dropped = reader->qdiscs[i].dropped;
	reader->fn(reader->user, &state);
	return MNL_CB_OK;
}

int netns_link_stats(int fd, netns_link_fn fn, void *user)
{
	uint8_t bytes[128] __attribute__((aligned(8)));
	struct stats_reader reader = { .fn = fn, .user = user };
	struct nlmsghdr *message = mnl_nlmsg_put_header(bytes);
	int err;

	mnl_nlmsg_put_extra_header(message, sizeof(struct tcmsg));
	message->nlmsg_type = RTM_GETQDISC;
	message->nlmsg_seq = 1;
	err = netns_nl_dump(fd, message, read_qdisc, &reader);
	return err < 0 ? err : netns_nl_dump(fd, get_links(bytes), read_stats, &reader);
}
