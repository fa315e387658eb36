/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the kernel's network interfaces. Set-up only: opens files and sockets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>
#include <netinet/in.h>

#include <rte_ether.h>

/* All zero: none. */
struct tokd_kernel_addrs {
	struct in_addr ip;
	struct in6_addr ip6, link_local;
};

/*
 * The first global IPv4, first global IPv6 and first link-local IPv6 address of interface `name`,
 * in the order of `ip addr`. Skips IPv6 addresses that are temporary (RFC 8981), deprecated, or
 * found to be duplicates (RFC 4862 5.4). Returns 0 or -errno.
 */
int tokd_kernel_if_addrs(const char *name, struct tokd_kernel_addrs *a);

/* True if interface `name` has the Ethernet address `mac`; NULL: if any interface has. */
bool tokd_kernel_if_has_mac(const char *name, const struct rte_ether_addr *mac);

/* True if an XDP program is attached to interface `name`: some process has its AF_XDP queues. */
bool tokd_kernel_if_has_xdp(const char *name);

/* True if interface `name` is up and has a carrier. */
bool tokd_kernel_if_is_running(const char *name);

/* Lets interface `if_index` receive frames for any address until the descriptor is closed, however
 * this process ends. -1: it cannot. */
int tokd_kernel_if_open_promiscuous(uint32_t if_index);

/* MTU of interface `name`; 0: unknown. */
uint32_t tokd_kernel_if_mtu(const char *name);

/* Receive channels of interface `name`; 0: unknown. *kind: ethtool's name for them. */
uint32_t tokd_kernel_if_rx_channels(const char *name, const char **kind);
