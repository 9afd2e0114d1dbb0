#include "netns/route.h"
#include <sys/socket.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>

void netns_route_add(struct netns_batch *b, const struct netns_route *route, uint32_t tag)
{
	struct nlmsghdr *message =
		netns_batch_add(b, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, "add route", tag);
	struct rtmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	struct nlattr *metrics;

	info->rtm_family = AF_INET6;
	info->rtm_dst_len = (uint8_t)route->prefix_length;
	info->rtm_table = RT_TABLE_UNSPEC; /* RTA_TABLE has the number, which may be over 255 */
	info->rtm_protocol = RTPROT_STATIC;
	info->rtm_scope = RT_SCOPE_UNIVERSE;
	info->rtm_type = route->local ? RTN_LOCAL : RTN_UNICAST;
	if (route->prefix_length > 0)
		mnl_attr_put(message, RTA_DST, sizeof(route->target.bytes), route->target.bytes);
	if (route->gateway != NULL) {
		mnl_attr_put(
			message, RTA_GATEWAY, sizeof(route->gateway->bytes), route->gateway->bytes);
		info->rtm_flags = RTNH_F_ONLINK; /* true also while the peer's end is still down */
	}
	if (route->source != NULL)
		mnl_attr_put(
			message, RTA_PREFSRC, sizeof(route->source->bytes), route->source->bytes);
	mnl_attr_put_u32(message, RTA_OIF, route->ifindex);
	mnl_attr_put_u32(message, RTA_TABLE, route->table);
	if (route->rto_min_ms > 0) {
		metrics = mnl_attr_nest_start(message, RTA_METRICS);
		mnl_attr_put_u32(message, RTAX_RTO_MIN, route->rto_min_ms);
		mnl_attr_nest_end(message, metrics);
	}
}

void netns_route_rule(struct netns_batch *b, const struct dsf_ip6 *source, uint32_t table,
	uint32_t priority, uint32_t tag)
{
	struct nlmsghdr *message =
		netns_batch_add(b, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, "add rule", tag);
	struct fib_rule_hdr *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->family = AF_INET6;
	info->src_len = 128;
	info->action = FR_ACT_TO_TBL;
	mnl_attr_put(message, FRA_SRC, sizeof(source->bytes), source->bytes);
	mnl_attr_put_u32(message, FRA_TABLE, table);
	mnl_attr_put_u32(message, FRA_PRIORITY, priority);
}
