/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each worker polls one queue pair: there must be as many as workers, and no queue more that gets
 * packets, for the flows that came to it would be lost, and nobody could say so.
 */
#include <errno.h>
#include <string.h>

#include "kernel_if.h"
#include "log.h"
#include "port.h"

/*
 * Drivers whose queues are made by their arguments, before it is known how many will be polled.
 * (Of net_tap, net_memif, net_ring and net_virtio_user those not asked for are not there for the
 * other side, net_null has no other side, and a NIC is told which queues RSS may use.)
 */
static const struct {
	const char *driver, *argument;
} made_early[] = {
	{"net_af_packet", "qpairs"},
	{"net_af_xdp", "queue_count"},
	{"net_pcap", "the number of rx_pcap or rx_iface"},
};

static int
refuse_unpolled(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	for (size_t i = 0; i < RTE_DIM(made_early); i++) {
		if (strcmp(p->driver, made_early[i].driver) != 0 ||
			info->max_rx_queues <= p->n_queues)
			continue;
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): packets are spread over %u queues, the %u worker(s) poll "
			"one each: what comes to the others would be lost; let %s in its --vdev be "
			"%u, or give %u lcores in -l\n",
			p->id, p->name, p->driver, info->max_rx_queues, p->n_queues,
			made_early[i].argument, p->n_queues, info->max_rx_queues);
		return -EINVAL;
	}
	return 0;
}

/* What comes to a channel without a socket goes to the kernel, unless the NIC keeps it away. */
static void
warn_of_channels(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	char name[IF_NAMESIZE] = "";
	const char *kind;
	uint32_t n;

	if (strcmp(p->driver, "net_af_xdp") != 0 || if_indextoname(info->if_index, name) == NULL)
		return;
	n = tokd_kernel_if_rx_channels(name, &kind);
	if (n > p->n_queues)
		TOKD_LOG(port, WARNING,
			"port %u (net_af_xdp): %s spreads packets over %u channels, of which %u are "
			"polled: those of the others go to the kernel; give ethtool -L %s %s %u, or "
			"%u lcores in -l and queue_count=%u, or see to it by rules (ethtool -N)\n",
			p->id, name, n, p->n_queues, name, kind, p->n_queues, n, n);
}

int
tokd_port_check_queues(const struct tokd_port *p, const struct rte_eth_dev_info *info)
{
	const uint16_t most = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (p->n_queues > most) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): %u workers need a queue pair each, the port has %u RX and "
			"%u TX queues; give at most %u lcore(s) in -l, or give the device more queues "
			"(net_af_packet: qpairs=%u, net_af_xdp: queue_count=%u)\n",
			p->id, p->name, p->driver, p->n_queues, info->max_rx_queues,
			info->max_tx_queues, most, p->n_queues, p->n_queues);
		return -ENOSPC;
	}
	warn_of_channels(p, info);
	return refuse_unpolled(p, info);
}
