/* SPDX-License-Identifier: BSD-3-Clause */
#include "checks.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "options.h"

bool
tokd_check_ip(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	struct in_addr a;
	uint32_t host;

	if (inet_pton(AF_INET, text, &a) != 1)
		return opt_wrong(
			err, "not an IPv4 address; give four decimal numbers, as in 10.0.0.1");
	host = ntohl(a.s_addr);
	if (host >> 24 == 0 || host >> 24 == 127 || host >> 24 >= 224)
		return opt_wrong(err, "not a unicast address; give one as in 10.0.0.1");
	*(uint32_t *)field = a.s_addr;
	return true;
}

/* RFC 4291 2.5 and 2.7: not ::, ::1, a group, or an IPv4-mapped or -compatible address. */
static bool
is_ip6_host(const struct in6_addr *a)
{
	return !IN6_IS_ADDR_UNSPECIFIED(a) && !IN6_IS_ADDR_LOOPBACK(a) &&
	       !IN6_IS_ADDR_V4COMPAT(a) && !IN6_IS_ADDR_V4MAPPED(a) && !IN6_IS_ADDR_MULTICAST(a);
}

bool
tokd_check_ip6(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	struct in6_addr a;

	if (inet_pton(AF_INET6, text, &a) != 1)
		return opt_wrong(err, "not an IPv6 address; give one as in 2001:db8::1");
	if (!is_ip6_host(&a))
		return opt_wrong(err, "not a unicast address; give one as in 2001:db8::1");
	*(struct in6_addr *)field = a;
	return true;
}

bool
tokd_check_mac(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	struct rte_ether_addr a;

	if (rte_ether_unformat_addr(text, &a) != 0 || !rte_is_valid_assigned_ether_addr(&a))
		return opt_wrong(
			err, "not a unicast Ethernet address; give one as in 02:00:00:00:00:01");
	*(struct rte_ether_addr *)field = a;
	return true;
}

bool
tokd_check_mtu(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	const uint32_t v = *(const uint32_t *)field;

	return v == 0 || v >= TOKD_MTU_LEAST ||
	       opt_wrong(err, "replies need %u or more; 0: the driver's", TOKD_MTU_LEAST);
}

gid_t
tokd_find_group(const char *name)
{
	const struct group *g = getgrnam(name); /* no other thread calls it */
	uint64_t v;

	if (g != NULL)
		return g->gr_gid;
	return opt_number(name, 0, (gid_t)-1 - 1, &v) ? (gid_t)v : (gid_t)-1;
}

bool
tokd_check_group(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	return tokd_find_group(text) != (gid_t)-1 ||
	       opt_wrong(err, "no such group; give a name of /etc/group, or a number");
}

bool
tokd_check_byte(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	uint64_t v;

	return opt_number(text, 0, 255, &v) ||
	       opt_wrong(err, "not an index; give a decimal number, 0 to 255");
}
