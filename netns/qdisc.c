#include "netns/qdisc.h"
#include <sys/socket.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#define PSCHED_NS_PER_TICK 64u /* the kernel's unit of packet scheduler times */

void netns_qdisc_tbf(
	struct netns_batch *b, uint32_t ifindex, const struct netns_qdisc_tbf *tbf, uint32_t tag)
{
	struct nlmsghdr *message =
		netns_batch_add(b, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, "add shaper", tag);
	struct tcmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));
	struct tc_tbf_qopt options = { .limit = tbf->limit_bytes };
	uint64_t rate = tbf->rate_bps / 8 > 0 ? tbf->rate_bps / 8 : 1; /* bytes per second */
	uint64_t ticks = (uint64_t)tbf->burst_bytes * 1000000000u / rate / PSCHED_NS_PER_TICK;
	struct nlattr *nest;

	info->tcm_family = AF_UNSPEC;
	info->tcm_ifindex = (int)ifindex;
	info->tcm_parent = TC_H_ROOT;
	info->tcm_handle = 1u << 16;
	options.rate.rate = rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
	options.rate.overhead = NETNS_QDISC_OVERHEAD;
	options.rate.linklayer = TC_LINKLAYER_ETHERNET;
	options.buffer = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
	mnl_attr_put_strz(message, TCA_KIND, "tbf");
	nest = mnl_attr_nest_start(message, TCA_OPTIONS);
	mnl_attr_put(message, TCA_TBF_PARMS, sizeof(options), &options);
	mnl_attr_put_u32(message, TCA_TBF_BURST, tbf->burst_bytes);
	if (rate >= UINT32_MAX)
		mnl_attr_put_u64(message, TCA_TBF_RATE64, rate);
	mnl_attr_nest_end(message, nest);
}
