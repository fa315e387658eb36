/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of its network interfaces. Set-up only: these open files and sockets. */
#ifndef TOKD_KERNEL_IF_H
#define TOKD_KERNEL_IF_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>
#include <netinet/in.h>

#include <rte_ether.h>

/* All zero: it has none. */
struct tokd_kernel_addrs {
	struct in_addr ip;
	struct in6_addr ip6, link_local;
};

/*
 * The first IPv4 and the first IPv6 address with global scope of interface `name`, and its first
 * IPv6 link-local one, in the order of `ip addr`. IPv6 addresses that are temporary (RFC 8981),
 * deprecated, or found to be taken (RFC 4862 5.4) are passed over: they do not last. Returns 0, or
 * -errno where the kernel does not say.
 */
int tokd_kernel_if_addrs(const char *name, struct tokd_kernel_addrs *a);

/* Has interface `name`, or any where that is NULL, the Ethernet address `mac`? */
bool tokd_kernel_if_has_mac(const char *name, const struct rte_ether_addr *mac);

/* Channels of interface `name` that receive; 0: it does not say. *kind: what ethtool calls them. */
uint32_t tokd_kernel_if_rx_channels(const char *name, const char **kind);

#endif
