/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_if.h"

#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <netpacket/packet.h>

#define IF_INET6 "/proc/net/if_inet6"
#define SHORT_LIVED (IFA_F_TEMPORARY | IFA_F_DEPRECATED | IFA_F_DADFAILED)

/* getifaddrs() gives an IPv4 address its label, which may be "eth0:1". */
static bool
is_of(const struct ifaddrs *one, const char *name)
{
	const size_t len = strlen(name);

	return one->ifa_addr != NULL && strncmp(one->ifa_name, name, len) == 0 &&
	       (one->ifa_name[len] == '\0' || one->ifa_name[len] == ':');
}

/* False for the ranges of RFC 6890 2.2.2 that other hosts cannot reach. */
static bool
is_global(struct in_addr ip)
{
	const uint32_t host = ntohl(ip.s_addr);

	return host >> 24 != 0 && host >> 24 != 127 && host >> 16 != 0xa9fe && host >> 28 < 0xe;
}

/* getifaddrs() has no flags. False if the address is no longer there. */
static bool
lasts(const struct in6_addr *ip6, const char *name)
{
	char line[128], hex[33], wanted[33], of[IF_NAMESIZE];
	FILE *f = fopen(IF_INET6, "re");
	unsigned int flags;
	bool found = false;

	if (f == NULL)
		return false;
	for (int i = 0; i < 16; i++)
		snprintf(wanted + 2 * (size_t)i, 3, "%02x", ip6->s6_addr[i]);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "%32s %*x %*x %*x %x %15s", hex, &flags, of) == 3 &&
			strcmp(hex, wanted) == 0 && strcmp(of, name) == 0;
	fclose(f);
	return found && !(flags & SHORT_LIVED);
}

static void
take_ip6(struct tokd_kernel_addrs *a, const struct in6_addr *ip6, const char *name)
{
	struct in6_addr *to = IN6_IS_ADDR_LINKLOCAL(ip6) ? &a->link_local : &a->ip6;

	if (IN6_IS_ADDR_UNSPECIFIED(to) && !IN6_IS_ADDR_LOOPBACK(ip6) && lasts(ip6, name))
		*to = *ip6;
}

int
tokd_kernel_if_addrs(const char *name, struct tokd_kernel_addrs *a)
{
	struct ifaddrs *all;

	memset(a, 0, sizeof(*a));
	if (getifaddrs(&all) != 0)
		return -errno;
	for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
		if (!is_of(one, name))
			continue;
		if (one->ifa_addr->sa_family == AF_INET6) {
			take_ip6(a, &((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, name);
		} else if (one->ifa_addr->sa_family == AF_INET && a->ip.s_addr == 0) {
			const struct in_addr ip =
				((const struct sockaddr_in *)one->ifa_addr)->sin_addr;

			if (is_global(ip))
				a->ip = ip;
		}
	}
	freeifaddrs(all);
	return 0;
}

bool
tokd_kernel_if_has_mac(const char *name, const struct rte_ether_addr *mac)
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *one = all; one != NULL && !found; one = one->ifa_next) {
		const struct sockaddr_ll *link = (const struct sockaddr_ll *)one->ifa_addr;

		found = link != NULL && (name == NULL || is_of(one, name)) &&
			link->sll_family == AF_PACKET && link->sll_halen == sizeof(*mac) &&
			memcmp(link->sll_addr, mac, sizeof(*mac)) == 0;
	}
	freeifaddrs(all);
	return found;
}

/* The kernel's answer to RTM_GETLINK, of at most `room` bytes; 0: none. */
static size_t
get_link(const char *name, struct nlmsghdr *answer, size_t room)
{
	struct {
		struct nlmsghdr head;
		struct ifinfomsg link;
	} ask = {
		.head = {.nlmsg_len = sizeof(ask),
			.nlmsg_type = RTM_GETLINK,
			.nlmsg_flags = NLM_F_REQUEST},
		.link = {.ifi_index = (int)if_nametoindex(name)},
	};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd < 0)
		return 0;
	if (send(fd, &ask, sizeof(ask), 0) == sizeof(ask))
		n = recv(fd, answer, room, 0);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* NULL: there is none. */
static const struct rtattr *
find_attribute(const struct rtattr *a, size_t n, unsigned int type)
{
	for (; RTA_OK(a, n); a = RTA_NEXT(a, n)) {
		if ((a->rta_type & NLA_TYPE_MASK) == type)
			return a;
	}
	return NULL;
}

bool
tokd_kernel_if_has_xdp(const char *name)
{
	alignas(struct nlmsghdr) char buffer[32768]; /* netlink(7): no message is longer */
	struct nlmsghdr *answer = (struct nlmsghdr *)buffer;
	const size_t n = get_link(name, answer, sizeof(buffer));
	const struct rtattr *a = NULL;

	if (NLMSG_OK(answer, n) && answer->nlmsg_type == RTM_NEWLINK)
		a = find_attribute(IFLA_RTA(NLMSG_DATA(answer)), IFLA_PAYLOAD(answer), IFLA_XDP);
	if (a != NULL)
		a = find_attribute(RTA_DATA(a), RTA_PAYLOAD(a), IFLA_XDP_ATTACHED);
	return a != NULL && *(const uint8_t *)RTA_DATA(a) != XDP_ATTACHED_NONE;
}

static bool
ask_interface(const char *name, unsigned long request, struct ifreq *ifr)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = -1;

	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	if (fd >= 0) {
		rc = ioctl(fd, request, ifr);
		close(fd);
	}
	return rc == 0;
}

bool
tokd_kernel_if_is_running(const char *name)
{
	struct ifreq ifr = {0};

	return ask_interface(name, SIOCGIFFLAGS, &ifr) &&
	       (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

int
tokd_kernel_if_open_promiscuous(uint32_t if_index)
{
	const struct packet_mreq any = {.mr_ifindex = (int)if_index, .mr_type = PACKET_MR_PROMISC};
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &any, sizeof(any)) == 0)
		return fd;
	close(fd);
	return -1;
}

uint32_t
tokd_kernel_if_mtu(const char *name)
{
	struct ifreq ifr = {0};

	return ask_interface(name, SIOCGIFMTU, &ifr) ? (uint32_t)ifr.ifr_mtu : 0;
}

uint32_t
tokd_kernel_if_rx_channels(const char *name, const char **kind)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq ifr = {.ifr_data = (char *)&channels};
	const bool known = ask_interface(name, SIOCETHTOOL, &ifr);

	*kind = channels.combined_count != 0 ? "combined" : "rx";
	return known ? channels.rx_count + channels.combined_count : 0;
}
