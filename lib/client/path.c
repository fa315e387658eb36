/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The longest packets that the path to an appliance takes. The kernel knows the MTU of the
 * interface, and what routers have told it since (RFC 1191, RFC 8201). It does not fragment: where
 * it has learned of a smaller MTU, sending or receiving fails with EMSGSIZE. It forgets that, by
 * default after ten minutes, and says so only when it is asked again.
 */
#include <netinet/in.h>

#include "client_inside.h"

#define UDP_HEADER 8
#define KERNEL_LEAST 552 /* Linux believes no router that says less: net.ipv4.route.min_pmtu */
#define IPV4_HEADER 20
#define IPV6_HEADER 40

static uint32_t
ask(const struct appliance *a)
{
	const uint32_t most = a->mtu_most != 0 ? a->mtu_most : UINT32_MAX;
	int mtu = 0, rc;
	socklen_t len = sizeof(mtu);

	if (a->ipv6)
		rc = getsockopt(a->fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &len);
	else
		rc = getsockopt(a->fd, IPPROTO_IP, IP_MTU, &mtu, &len);
	if (rc != 0 || mtu <= 0)
		return 0;
	if (mtu < KERNEL_LEAST)
		mtu = KERNEL_LEAST;
	return (uint32_t)mtu < most ? (uint32_t)mtu : most;
}

void
path_begin(struct appliance *a, const struct tokd_client_options *o)
{
	const int v4 = IP_PMTUDISC_DO, v6 = IPV6_PMTUDISC_DO;
	int family = AF_INET;
	socklen_t len = sizeof(family);

	(void)getsockopt(a->fd, SOL_SOCKET, SO_DOMAIN, &family, &len);
	a->ipv6 = family == AF_INET6;
	a->mtu_most = o->mtu;
	a->mtu = ask(a);
	if (a->mtu == 0)
		a->mtu = o->mtu;
	a->payload = o->payload;
	if (o->payload != 0) /* IP may fragment these */
		return;
	if (a->ipv6)
		(void)setsockopt(a->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6));
	else
		(void)setsockopt(a->fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));
}

uint32_t
path_reply_max(const struct appliance *a)
{
	return a->mtu == 0 ? 0 : a->mtu - (a->ipv6 ? IPV6_HEADER : IPV4_HEADER) - UDP_HEADER;
}

uint32_t
path_payload(const struct appliance *a)
{
	const uint32_t room = path_reply_max(a) - (uint32_t)sizeof(struct tokd_req);

	if (a->payload != 0)
		return a->payload;
	return a->mtu == 0 || room > TOKD_WIRE_PAYLOAD ? TOKD_WIRE_PAYLOAD : room;
}

bool
path_learn(struct appliance *a)
{
	const uint32_t mtu = ask(a);

	if (mtu == 0 || mtu == a->mtu)
		return false;
	a->mtu = mtu;
	return true;
}
