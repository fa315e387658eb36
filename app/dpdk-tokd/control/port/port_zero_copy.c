/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ports can send packets that point into a token ring, memory outside EAL and mempools. The
 * driver must support several segments, and either copy the data or use a device that reads the
 * memory, which must then be mapped for DMA; such a driver must free what was sent when it is
 * asked. Some free in batches (tx_rs_thresh), so the last packets stay until others are sent.
 * Unknown drivers get copies.
 */
#include <string.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_version.h>

#include "port.h"

/*
 * Copy the data, in DPDK 22.11 and later. Not net_ring, which passes on the mbuf itself: another
 * lcore would free it, or a process that has not mapped the token ring.
 */
static const char *const copying[] = {
	"net_memif", "net_af_packet", "net_tap", "net_pcap", "net_null"};

/*
 * Have rte_eth_tx_done_cleanup(), without which a full ring would wait for other packets: in DPDK
 * 22.11 to 26.07. mlx5, bnxt, virtio and others have not. cnxk's does nothing: the device itself
 * returns mbufs to their pool.
 */
static const char *const freeing[] = {"net_e1000_igb", "net_e1000_igb_vf", "net_ena", "net_hns3",
	"net_hns3_vf", "net_i40e", "net_iavf", "net_ice", "net_ice_dcf", "net_igc", "net_ixgbe",
	"net_ixgbe_vf", "net_ngbe", "net_txgbe", "net_txgbe_vf"};

/*
 * net_memif from 23.03 on leaves "more follows" of an earlier packet in its ring, until 23.11.7,
 * 24.11.5 and 25.11.1: a whole packet is then joined to the next one. Releases without this fault
 * get copies, too: the version at run time counts, and 22.11 to 23.07 have one ABI.
 */
static bool
joins_packets(const struct rte_eth_dev_info *info)
{
	return strcmp(info->driver_name, "net_memif") == 0 &&
	       strncmp(rte_version(), "DPDK 22.11", strlen("DPDK 22.11")) != 0;
}

static bool
shares_mbufs(const struct rte_eth_dev_info *info)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);

	return args != NULL && args->args != NULL && strstr(args->args, "zero-copy=yes") != NULL;
}

enum tokd_zc_kind
tokd_port_zero_copy(const struct rte_eth_dev_info *info)
{
	if (!(info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) || joins_packets(info))
		return TOKD_ZC_NO;
	for (size_t i = 0; i < RTE_DIM(copying); i++) {
		/* net_memif with zero-copy=yes: the peer maps EAL's memory only. */
		if (strcmp(info->driver_name, copying[i]) == 0)
			return shares_mbufs(info) ? TOKD_ZC_NO : TOKD_ZC_COPIES;
	}
	/* The device must use this process's virtual addresses. */
	if (rte_eal_iova_mode() != RTE_IOVA_VA)
		return TOKD_ZC_NO;
	for (size_t i = 0; i < RTE_DIM(freeing); i++) {
		if (strcmp(info->driver_name, freeing[i]) == 0)
			return TOKD_ZC_DMA;
	}
	return TOKD_ZC_NO;
}
