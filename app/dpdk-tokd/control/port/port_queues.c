/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each worker polls one queue pair. A queue that receives packets and that no worker polls would
 * lose them silently.
 */
#include <errno.h>
#include <string.h>

#include "kernel_if.h"
#include "log.h"
#include "port.h"

/*
 * Drivers whose arguments set the number of receive queues. With net_tap, net_memif, net_ring and
 * net_virtio_user the peer sees only the configured queues; on a NIC, RSS uses only those.
 */
static const struct {
	const char *driver, *argument;
} by_argument[] = {
	{"net_af_packet", "qpairs"},
	{"net_af_xdp", "queue_count"},
	{"net_pcap", "the number of rx_pcap or rx_iface"},
};

static int
refuse_unpolled(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	for (size_t i = 0; i < RTE_DIM(by_argument); i++) {
		if (strcmp(p->driver, by_argument[i].driver) != 0 ||
			info->max_rx_queues <= p->n_queues)
			continue;
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): packets come to %u queues, but %u worker(s) poll one "
			"each: the others would lose packets; set %s in its --vdev to %u, or give "
			"%u lcores in -l\n",
			p->id, p->name, p->driver, info->max_rx_queues, p->n_queues,
			by_argument[i].argument, p->n_queues, info->max_rx_queues);
		return -EINVAL;
	}
	return 0;
}

/* Packets of a channel without an AF_XDP socket go to the kernel. */
static void
warn_unpolled_channels(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	char name[IF_NAMESIZE] = "";
	const char *kind;
	uint32_t n;

	if (strcmp(p->driver, "net_af_xdp") != 0 || if_indextoname(info->if_index, name) == NULL)
		return;
	n = tokd_kernel_if_rx_channels(name, &kind);
	if (n > p->n_queues)
		TOKD_LOG(port, WARNING,
			"port %u (net_af_xdp): %s has %u receive channels, of which %u are polled: "
			"packets of the others go to the kernel; run ethtool -L %s %s %u, or give "
			"%u lcores in -l and queue_count=%u, or steer by rules (ethtool -N)\n",
			p->id, name, n, p->n_queues, name, kind, p->n_queues, n, n);
}

int
tokd_port_check_queues(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	const uint16_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (p->n_queues > most) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): %u workers need a queue pair each, the port has %u RX "
			"and %u TX queues; give at most %u lcore(s) in -l, or the device more "
			"queues (net_af_packet: qpairs=%u, net_af_xdp: queue_count=%u)\n",
			p->id, p->name, p->driver, p->n_queues, info->max_rx_queues,
			info->max_tx_queues, most, p->n_queues, p->n_queues);
		return -ENOSPC;
	}
	warn_unpolled_channels(p, info);
	return refuse_unpolled(p, info);
}
