/* SPDX-License-Identifier: BSD-3-Clause */
/* Logs what an operator must repair outside: once when it begins, not by packet. */
#include <inttypes.h>
#include <string.h>

#include "kernel_if.h"
#include "log.h"
#include "port.h"

#define CARRIER_LOOKS 6 /* five seconds: NICs negotiate for up to four, also as the port starts */

/* The kernel interface, if the port is one, else the device. */
static bool
has_carrier(const struct tokd_port *p)
{
	struct rte_eth_link link = {0};
	char name[IF_NAMESIZE];

	/* Drivers of kernel interfaces do not follow theirs. net_tap's may be in another namespace.
	 */
	if (p->if_index != 0 && strcmp(p->driver, "net_tap") != 0)
		return if_indextoname(p->if_index, name) != NULL && tokd_kernel_if_is_running(name);
	return rte_eth_link_get_nowait(p->id, &link) != 0 || link.link_status == RTE_ETH_LINK_UP;
}

static void
watch_carrier(struct tokd_port_watch *watch, struct tokd_port *p)
{
	const bool none = !has_carrier(p);

	atomic_store(&p->no_carrier, none);
	if (!none) {
		if (watch->carrier_missed >= CARRIER_LOOKS)
			TOKD_LOG(port, NOTICE, "port %u (%s): the carrier is back\n", p->id,
				p->name);
		watch->carrier_missed = 0;
		return;
	}
	if (watch->carrier_missed < CARRIER_LOOKS && ++watch->carrier_missed == CARRIER_LOOKS)
		TOKD_LOG(port, WARNING,
			"port %u (%s, %s): no carrier: look at the cable, the switch, or the "
			"interface at the other end (ip link)\n",
			p->id, p->name, p->driver);
}

/* As it ends, DPDK's driver removes the program, also that of another process. */
static void
watch_xdp(struct tokd_port_watch *watch, const struct tokd_port *p)
{
	char name[IF_NAMESIZE];

	if (watch->xdp_told || strcmp(p->driver, "net_af_xdp") != 0 ||
		if_indextoname(p->if_index, name) == NULL || tokd_kernel_if_has_xdp(name))
		return;
	watch->xdp_told = true;
	TOKD_LOG(port, ERR,
		"port %u (%s): another process removed the XDP program of %s: packets go to the "
		"kernel; end it and restart dpdk-tokd\n",
		p->id, p->name, name);
}

void
tokd_port_watch(struct tokd_port_watch *watch, struct tokd_port *p, uint64_t wrong_cksums)
{
	watch_carrier(watch, p);
	watch_xdp(watch, p);
	if (wrong_cksums == 0 || watch->cksums_told)
		return;
	watch->cksums_told = true;
	TOKD_LOG(port, WARNING,
		"port %u (%s): %" PRIu64
		" datagrams dropped: wrong UDP checksum; on a veth, tap or "
		"bridge the sender leaves it to a NIC: ethtool -K PEER tx off, with the sender's "
		"interface for PEER, or --rx-checksum trust\n",
		p->id, p->name, wrong_cksums);
}
