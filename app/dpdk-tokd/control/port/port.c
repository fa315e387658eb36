/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "kernel_if.h"
#include "log.h"
#include "port.h"
#include "port_none.h"

#define RX_CKSUM (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM)
#define TX_CKSUM (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
#define RSS_UDP (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP)
#define RSS_WANTED (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6 | RSS_UDP)

static int
find_port(struct tokd_port *p, const struct tokd_options *opt)
{
	char list[160] = "";
	uint16_t id;

	/* Not one that another port polls, as net_failsafe and net_netvsc do. */
	if (rte_eth_dev_is_valid_port(opt->port) &&
		rte_eth_find_next_owned_by(opt->port, RTE_ETH_DEV_NO_OWNER) == opt->port) {
		p->id = opt->port;
		return rte_eth_dev_get_name_by_port(p->id, p->name);
	}
	if (rte_eth_dev_count_avail() == 0) {
		tokd_port_explain_none(p->n_queues, opt->vocab);
		return -ENODEV;
	}
	RTE_ETH_FOREACH_DEV (id) {
		char name[RTE_ETH_NAME_MAX_LEN];
		size_t used = strlen(list);

		if (rte_eth_dev_get_name_by_port(id, name) == 0)
			snprintf(list + used, sizeof(list) - used, " %u (%s)", id, name);
	}
	TOKD_LOG(port, ERR, "--port %u: %s; ports:%s\n", opt->port,
		rte_eth_dev_is_valid_port(opt->port) ? "part of another port" : "no such port",
		list);
	return -ENODEV;
}

static void
choose_offloads(struct tokd_port *p, const struct tokd_options *opt,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf)
{
	uint64_t rss_hf = info->flow_type_rss_offloads & RSS_WANTED;

	/* net_virtio, for one, does UDP's alone. */
	conf->rxmode.offloads |= info->rx_offload_capa & RX_CKSUM;
	conf->txmode.offloads |= info->tx_offload_capa & TX_CKSUM;
	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM)
		p->rx_cksum |= RTE_MBUF_F_RX_IP_CKSUM_MASK;
	if (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_UDP_CKSUM)
		p->rx_cksum |= RTE_MBUF_F_RX_L4_CKSUM_MASK;
	if (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)
		p->tx_cksum |= RTE_MBUF_F_TX_IP_CKSUM;
	if (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_UDP_CKSUM)
		p->tx_cksum |= RTE_MBUF_F_TX_UDP_CKSUM;

	p->vlan_filter = opt->vlan != 0 && (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	if (p->vlan_filter)
		conf->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_VLAN_FILTER;

	p->zero_copy = opt->zero_copy_ids != 0 ? tokd_port_zero_copy(info) : TOKD_ZC_NO;
	if (p->zero_copy != TOKD_ZC_NO)
		conf->txmode.offloads |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	TOKD_LOG(port, INFO, "port %u (%s): %s\n", p->id, p->driver,
		p->zero_copy != TOKD_ZC_NO ? "replies with --zero-copy ids or more are zero-copy"
					   : "replies carry copies of ids");

	if (p->n_queues == 1)
		return;
	p->rss = rss_hf != 0;
	if (p->rss) {
		conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf->rx_adv_conf.rss_conf.rss_hf = rss_hf;
		if ((rss_hf & RSS_UDP) != RSS_UDP)
			TOKD_LOG(port, NOTICE,
				"port %u (%s): RSS ignores UDP ports (of IPv4, IPv6 or both): all "
				"texts of one client address go to one worker\n",
				p->id, p->driver);
	} else {
		TOKD_LOG(port, NOTICE,
			"port %u (%s): no RSS: the driver spreads packets over %u queues by its "
			"own rule, which must keep a UDP flow on one queue\n",
			p->id, p->driver, p->n_queues);
		if (strcmp(p->driver, "net_af_packet") == 0)
			TOKD_LOG(port, NOTICE,
				"port %u (net_af_packet): if a queue is full, the kernel gives its "
				"packets to another worker, where their texts fail: raise framecnt "
				"to what clients send at once, for example framecnt=8192\n",
				p->id);
	}
}

int
tokd_port_configure(struct tokd_port *p, const struct tokd_options *opt, uint16_t n_queues)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	int rc;

	memset(p, 0, sizeof(*p));
	p->promiscuous = -1;
	p->n_queues = n_queues;
	p->rx_desc = (uint16_t)opt->rx_desc;
	p->tx_desc = (uint16_t)opt->tx_desc;
	rc = find_port(p, opt);
	if (rc != 0)
		return rc;
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc != 0) {
		TOKD_LOG(port, ERR,
			"port %u (%s): cannot read its capabilities (rte_eth_dev_info_get): %s\n",
			p->id, p->name, strerror(-rc));
		return rc;
	}
	p->driver = info.driver_name;
	p->device = info.device;
	p->if_index = info.if_index;
	p->node = rte_eth_dev_socket_id(p->id);
	rc = tokd_port_check_queues(p, &info);
	if (rc == 0)
		rc = tokd_port_mtu_check(p, opt, &info, &conf);
	if (rc != 0)
		return rc;
	choose_offloads(p, opt, &info, &conf);
	/* A full queue must not hold up the others, as by default with ixgbe and igb. */
	p->rx_conf = info.default_rxconf;
	p->rx_conf.rx_drop_en |= n_queues > 1;
	conf.intr_conf.rmv = (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0;

	rc = rte_eth_dev_configure(p->id, n_queues, n_queues, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &p->rx_desc, &p->tx_desc);
	if (rc == 0)
		rc = rte_eth_macaddr_get(p->id, &p->mac);
	if (rc != 0) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): cannot configure %u queues, --rxd %u, --txd %u: %s; see "
			"the driver's message above\n",
			p->id, p->name, p->driver, n_queues, opt->rx_desc, opt->tx_desc,
			strerror(-rc));
		return rc;
	}
	rc = tokd_port_mtu_set(p, opt);
	if (rc != 0)
		return rc;
	if (!rte_is_zero_ether_addr(&opt->mac))
		p->mac = opt->mac;
	if (p->rx_desc != opt->rx_desc || p->tx_desc != opt->tx_desc)
		TOKD_LOG(port, NOTICE,
			"port %u (%s): the driver uses %u RX and %u TX descriptors instead of "
			"--rxd %u and --txd %u\n",
			p->id, p->driver, p->rx_desc, p->tx_desc, opt->rx_desc, opt->tx_desc);
	return 0;
}

/* net_af_xdp returns EINVAL for every failure. */
static const char *
queue_remedy(const struct tokd_port *p, char lacks[TOKD_PORT_LACKS])
{
	char name[IF_NAMESIZE];

	if (strcmp(p->driver, "net_af_xdp") == 0 && if_indextoname(p->if_index, name) != NULL &&
		tokd_kernel_if_has_xdp(name))
		return "another program has the interface's XDP queues (ip link shows its "
		       "program): end it";
	if (tokd_port_lacks(p->driver, lacks))
		return lacks;
	return "try other --rxd, --txd or --mbuf-room; EAL's messages above say more";
}

int
tokd_port_queue(struct tokd_port *p, uint16_t queue, int node, struct rte_mempool *pool)
{
	char lacks[TOKD_PORT_LACKS];
	const char *side = "RX";
	int rc;

	rc = rte_eth_rx_queue_setup(
		p->id, queue, p->rx_desc, (unsigned int)node, &p->rx_conf, pool);
	if (rc == 0) {
		side = "TX";
		rc = rte_eth_tx_queue_setup(p->id, queue, p->tx_desc, (unsigned int)node, NULL);
	}
	if (rc != 0)
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): %s queue %u with %u descriptors and frames of up to %u "
			"bytes: %s; %s\n",
			p->id, p->name, p->driver, side, queue,
			side[0] == 'R' ? p->rx_desc : p->tx_desc,
			rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM, strerror(-rc),
			queue_remedy(p, lacks));
	return rc;
}

/* Neighbour solicitations come to the solicited-node group, which the device must pass. */
static void
join_group(const struct tokd_port *p, const struct tokd_addr *ip6)
{
	const struct tokd_addr group = tokd_addr_solicited(ip6);
	struct rte_ether_addr mac = tokd_addr_group_mac(&group);
	int rc;

	if (tokd_addr_is_none(ip6))
		return;
	if (rte_eth_dev_set_mc_addr_list(p->id, &mac, 1) == 0)
		return;
	rc = rte_eth_allmulticast_enable(p->id);
	if (rc != 0)
		TOKD_LOG(port, NOTICE,
			"port %u (%s): the driver cannot join multicast groups (%s): if neighbours "
			"do not find the IPv6 address, make the interface below it "
			"receive " RTE_ETHER_ADDR_PRT_FMT "\n",
			p->id, p->driver, strerror(-rc), RTE_ETHER_ADDR_BYTES(&mac));
}

/* A virtual function passes no tagged frames but those of VLANs that it was told. */
static void
join_vlan(const struct tokd_port *p, uint16_t vlan)
{
	const int rc = p->vlan_filter ? rte_eth_dev_vlan_filter(p->id, vlan, 1) : 0;

	if (rc != 0)
		TOKD_LOG(port, NOTICE,
			"port %u (%s): --vlan %u: the driver cannot let its frames through "
			"(rte_eth_dev_vlan_filter): %s\n",
			p->id, p->driver, vlan, strerror(-rc));
}

/*
 * The device must pass frames for another MAC than its own. These two drivers would give it to the
 * kernel's interface, or make that promiscuous, for longer than we run.
 */
static void
take_mac(struct tokd_port *p, const struct rte_ether_addr *mac)
{
	struct rte_ether_addr own = *mac;

	if (rte_is_zero_ether_addr(mac))
		return;
	if (strcmp(p->driver, "net_af_packet") == 0 || strcmp(p->driver, "net_af_xdp") == 0)
		p->promiscuous = tokd_kernel_if_open_promiscuous(p->if_index);
	if (p->promiscuous >= 0 || rte_eth_dev_default_mac_addr_set(p->id, &own) == 0 ||
		rte_eth_promiscuous_enable(p->id) == 0)
		return;
	TOKD_LOG(port, NOTICE,
		"port %u (%s): the driver takes no address, and cannot be promiscuous: frames for "
		"--mac come only if the device lets them through\n",
		p->id, p->driver);
}

/* In DPDK's interrupt thread. Only a new start sets the device up again. */
static int
on_lost(uint16_t id, enum rte_eth_event_type event, void *port, void *ret)
{
	struct tokd_port *p = port;

	RTE_SET_USED(ret);
	if (!atomic_exchange(&p->lost, true))
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): the device %s: stopping; systemd starts dpdk-tokd "
			"again\n",
			id, p->name, p->driver,
			event == RTE_ETH_EVENT_INTR_RMV ? "was removed" : "must be reset");
	return 0;
}

static const enum rte_eth_event_type losses[] = {
	RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_RECOVERY_FAILED, RTE_ETH_EVENT_INTR_RMV};

static void
watch_events(struct tokd_port *p)
{
	for (size_t i = 0; i < RTE_DIM(losses); i++) {
		const int rc = rte_eth_dev_callback_register(p->id, losses[i], on_lost, p);

		if (rc != 0)
			TOKD_LOG(port, WARNING,
				"port %u (%s): its removal will not be noticed "
				"(rte_eth_dev_callback_register): %s\n",
				p->id, p->driver, strerror(-rc));
	}
}

static const char *
cksums(bool ip, bool udp)
{
	if (ip)
		return udp ? "IPv4 and UDP" : "IPv4";
	return udp ? "UDP" : "none";
}

int
tokd_port_start(struct tokd_port *p, const struct tokd_options *opt, const struct tokd_addr *ip6)
{
	int rc;

	/* Nobody reads packet types: a driver that can omits them. */
	(void)rte_eth_dev_set_ptypes(p->id, RTE_PTYPE_UNKNOWN, NULL, 0);
	watch_events(p);
	rc = rte_eth_dev_start(p->id);
	if (rc != 0) {
		TOKD_LOG(port, ERR,
			"port %u (%s, %s): cannot start: %s; see the driver's message above\n",
			p->id, p->name, p->driver, strerror(-rc));
		return rc;
	}
	p->started = true;
	join_vlan(p, opt->vlan);
	join_group(p, ip6);
	take_mac(p, &opt->mac);
	TOKD_LOG(port, INFO,
		"port %u: %s (%s), " RTE_ETHER_ADDR_PRT_FMT
		", %u queues, %u/%u descriptors, checksums by the device: rx %s, tx %s%s\n",
		p->id, p->name, p->driver, RTE_ETHER_ADDR_BYTES(&p->mac), p->n_queues, p->rx_desc,
		p->tx_desc,
		cksums(p->rx_cksum & RTE_MBUF_F_RX_IP_CKSUM_MASK,
			p->rx_cksum & RTE_MBUF_F_RX_L4_CKSUM_MASK),
		cksums(p->tx_cksum & RTE_MBUF_F_TX_IP_CKSUM, p->tx_cksum & RTE_MBUF_F_TX_UDP_CKSUM),
		p->rss ? ", RSS" : "");
	return 0;
}

void
tokd_port_close(struct tokd_port *p)
{
	for (size_t i = 0; i < RTE_DIM(losses); i++)
		rte_eth_dev_callback_unregister(p->id, losses[i], on_lost, p);
	if (p->started)
		rte_eth_dev_stop(p->id);
	rte_eth_dev_close(p->id);
	if (p->promiscuous >= 0)
		close(p->promiscuous);
}
