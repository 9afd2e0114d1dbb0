#include "netns/addr.h"
#include <sys/socket.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

void netns_addr_add(struct netns_batch *b, uint32_t ifindex, const struct dsf_ip6 *address,
	unsigned prefix_length, uint32_t tag)
{
	struct nlmsghdr *message =
		netns_batch_add(b, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, "add address", tag);
	struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ifa_family = AF_INET6;
	info->ifa_prefixlen = (uint8_t)prefix_length;
	info->ifa_flags = IFA_F_NODAD;
	info->ifa_index = ifindex;
	mnl_attr_put(message, IFA_LOCAL, sizeof(address->bytes), address->bytes);
	mnl_attr_put(message, IFA_ADDRESS, sizeof(address->bytes), address->bytes);
}

void netns_addr_neighbor(struct netns_batch *b, uint32_t ifindex, const struct dsf_ip6 *address,
	const struct dsf_mac *mac, uint32_t tag)
{
	struct nlmsghdr *message = netns_batch_add(
		b, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, "add neighbour", tag);
	struct ndmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ndm_family = AF_INET6;
	info->ndm_ifindex = (int)ifindex;
	info->ndm_state = NUD_PERMANENT;
	mnl_attr_put(message, NDA_DST, sizeof(address->bytes), address->bytes);
	mnl_attr_put(message, NDA_LLADDR, sizeof(mac->bytes), mac->bytes);
}
