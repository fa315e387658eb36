/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses to serve: --ip and --ip6, else
 *
 * - for a port that is a kernel interface (mlx5, net_af_xdp, net_af_packet): the interface's first
 *   global address of each family; if it has none, its IPv6 link-local address;
 * - for all others (net_tap, net_memif, net_virtio_user, a NIC on vfio-pci, an interface without
 *   addresses, or with another --mac): the IPv6 link-local address made from the Ethernet address.
 *
 * Chosen once, at start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>

#include "kernel_mute.h"
#include "datapath/net_addr.h"
#include "options/options.h"
#include "port.h"

struct tokd_address {
	uint32_t ip;	      /* network byte order; 0: no IPv4 */
	struct tokd_addr ip6; /* ::, no IPv6 */
	struct rte_ether_addr mac;
	const char *from;	     /* "options", "interface" or "mac" */
	char interface[IF_NAMESIZE]; /* kernel interface of the port; "": none */
	/* The kernel receives the same packets and answers ARP, ND and ping. */
	bool kernel_answers;
	struct tokd_kernel_mute mute;
};

/* After the port is configured. Returns 0, or -errno with a message logged and nothing to undo. */
int tokd_address_choose(
	struct tokd_address *a, const struct tokd_port *p, const struct tokd_options *opt);
void tokd_address_free(struct tokd_address *a);

/* "10.0.0.1", "2001:db8::1", or both separated by a blank. Writes and returns *text. */
#define TOKD_ADDRESS_TEXT (INET_ADDRSTRLEN + INET6_ADDRSTRLEN)
const char *tokd_address_text(const struct tokd_address *a, char text[TOKD_ADDRESS_TEXT]);
