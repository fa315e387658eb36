/* SPDX-License-Identifier: BSD-3-Clause */
/* The MTU (--mtu), and whether a frame fits one mbuf. */
#include <errno.h>
#include <string.h>
#include <linux/bpf.h>

#include "kernel_if.h"
#include "log.h"
#include "port.h"

/* Bytes of a frame around the IP packet, as ethdev computes them. */
static uint32_t
overhead(const struct rte_eth_dev_info *info)
{
	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		return info->max_rx_pktlen - info->max_mtu;
	return RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
}

/* Bytes of a frame that fit one mbuf. AF_XDP reserves headroom for programs in the kernel. */
static uint32_t
room(const struct tokd_port *p, const struct tokd_options *opt)
{
	return opt->mbuf_room - (strcmp(p->driver, "net_af_xdp") == 0 ? XDP_PACKET_HEADROOM : 0);
}

static int
check_room(const struct tokd_port *p, const struct tokd_options *opt,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	const uint32_t mtu = opt->mtu != 0 ? opt->mtu : RTE_ETHER_MTU;
	const uint32_t tag = opt->vlan != 0 ? RTE_VLAN_HLEN : 0;
	const uint32_t frame = mtu + overhead(info) + tag;
	const bool fits = frame <= room(p, opt);

	if (!fits && !(info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): frames of up to %u bytes (MTU %u) do not fit "
			"--mbuf-room %u, and the driver needs one mbuf per frame; give --mbuf-room "
			"%u or more\n",
			p->id, p->name, p->driver, frame, mtu, opt->mbuf_room,
			opt->mbuf_room - room(p, opt) + frame);
		return -EINVAL;
	}
	if (!fits)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_SCATTER;
	TOKD_LOG(port, INFO, "port %u (%s): frames of up to %u bytes, in %s of %u\n", p->id,
		p->driver, frame, fits ? "an mbuf" : "several mbufs", opt->mbuf_room);
	return 0;
}

int
tokd_port_mtu_check(const struct tokd_port *p, const struct tokd_options *opt,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	const uint32_t most = RTE_MIN(info->max_mtu, info->max_rx_pktlen - overhead(info));

	if (opt->mtu != 0 && (opt->mtu < info->min_mtu || opt->mtu > most)) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): --mtu %u: must be %u to %u for this driver; for a "
			"kernel interface leave --mtu out and use ip link\n",
			p->id, p->name, p->driver, opt->mtu, info->min_mtu, most);
		return -EINVAL;
	}
	conf->rxmode.mtu = opt->mtu;
	return check_room(p, opt, info, conf);
}

/* Drivers of kernel interfaces know only an MTU that they were told. */
static int
learn(struct tokd_port *p)
{
	char name[IF_NAMESIZE];
	uint32_t of_interface = 0;

	if (rte_eth_dev_get_mtu(p->id, &p->mtu) != 0)
		p->mtu = RTE_ETHER_MTU;
	if (p->if_index != 0 && if_indextoname(p->if_index, name) != NULL)
		of_interface = tokd_kernel_if_mtu(name);
	if (of_interface != 0 && of_interface < p->mtu)
		p->mtu = (uint16_t)of_interface;
	if (p->mtu < TOKD_MTU_LEAST) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): an MTU of %u: replies need %u or more; raise it by ip "
			"link or --mtu\n",
			p->id, p->name, p->driver, p->mtu, TOKD_MTU_LEAST);
		return -EINVAL;
	}
	TOKD_LOG(port, INFO, "port %u (%s): replies fit an MTU of %u\n", p->id, p->driver, p->mtu);
	return 0;
}

/* Drivers of NICs use the configured MTU; those of kernel interfaces need this call. */
static int
set(const struct tokd_port *p, const struct tokd_options *opt)
{
	int rc = opt->mtu != 0 ? rte_eth_dev_set_mtu(p->id, (uint16_t)opt->mtu) : 0;

	if (rc == -ENOTSUP) {
		TOKD_LOG(port, NOTICE,
			"port %u (%s): --mtu %u: the driver cannot set the MTU of what it is "
			"attached to: set it there\n",
			p->id, p->driver, opt->mtu);
		return 0;
	}
	if (rc != 0)
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): --mtu %u: cannot set it: %s; give a value that the "
			"device supports, or leave --mtu out\n",
			p->id, p->name, p->driver, opt->mtu, strerror(-rc));
	return rc;
}

int
tokd_port_mtu_set(struct tokd_port *p, const struct tokd_options *opt)
{
	int rc = set(p, opt);

	return rc == 0 ? learn(p) : rc;
}
