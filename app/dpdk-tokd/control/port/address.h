/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses that are served: --ip and --ip6; without them, what somebody who starts the
 * appliance on a port would expect:
 *
 * - A port that is an interface of the kernel (mlx5, net_af_xdp, net_af_packet) is reached where
 * the machine is: at the interface's first global address of each family, so that clients may use
 *   either; if it has none, at its IPv6 link-local address.
 * - All others (net_tap, net_memif, net_virtio_user, a NIC on vfio-pci, an interface without any
 *   address, or under another --mac) are a host by themselves: at the IPv6 link-local address made
 *   from their Ethernet address, which needs no network plan.
 *
 * It is found out once, at the start.
 */
#ifndef TOKD_ADDRESS_H
#define TOKD_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <net/if.h>

#include "kernel_mute.h"
#include "datapath/net_addr.h"
#include "options/options.h"
#include "port.h"

struct tokd_address {
	uint32_t ip;		     /* network byte order; 0: IPv4 is not served */
	struct tokd_addr ip6;	     /* ::, IPv6 is not served */
	struct rte_ether_addr mac;   /* ours */
	const char *from;	     /* "options", "interface" or "mac" */
	char interface[IF_NAMESIZE]; /* of the kernel, that the port is; "" if it is none */
	/* The kernel sees what comes to the port, and has the address: ARP, ND and ping are its. */
	bool kernel_answers;
	struct tokd_kernel_mute mute;
};

/*
 * After the port is configured. Returns 0, or -errno with a message logged and nothing to undo.
 */
int tokd_address_choose(
	struct tokd_address *a, const struct tokd_port *p, const struct tokd_options *opt);
void tokd_address_free(struct tokd_address *a);

/* "10.0.0.1", "2001:db8::1", or both with a blank between; to *text, which is returned. */
#define TOKD_ADDRESS_TEXT (INET_ADDRSTRLEN + INET6_ADDRSTRLEN)
const char *tokd_address_text(const struct tokd_address *a, char text[TOKD_ADDRESS_TEXT]);

#endif
