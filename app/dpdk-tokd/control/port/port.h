/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of the DPDK port: one RX and one TX queue, and one mbuf pool, per worker. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>

#include "datapath/net_addr.h"
#include "options/options.h"

/* How a driver sends a packet that points into a token ring. */
enum tokd_zc_kind {
	TOKD_ZC_NO,	/* it cannot, or it is unknown */
	TOKD_ZC_COPIES, /* copies the data */
	TOKD_ZC_DMA,	/* the device reads the memory, once mapped */
};

struct tokd_port {
	uint16_t id;
	uint16_t n_queues;
	uint16_t rx_desc, tx_desc;   /* as the driver adjusted them */
	int node;		     /* NUMA node of the device, or SOCKET_ID_ANY */
	uint64_t rx_cksum, tx_cksum; /* as in struct tokd_worker */
	bool rss;
	bool vlan_filter; /* --vlan, and the device passes only VLANs that it was told */
	bool started;
	struct rte_eth_rxconf rx_conf; /* of each queue */
	_Atomic bool lost;	       /* any thread: the device has failed; logged */
	_Atomic bool no_carrier;       /* as port_watch.c last saw it; any thread may read it */
	enum tokd_zc_kind zero_copy;
	struct rte_device *device;
	uint16_t mtu;	   /* bytes of an IP packet that it sends */
	uint32_t if_index; /* kernel interface of the port, or at its other end; 0: none */
	int promiscuous;   /* descriptor that makes it so; -1: none */
	const char *driver;
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_ether_addr mac;
};

/* All return 0, or -errno with a message logged that names port, driver, value and remedy. */

/* Configure port opt->port with `n_queues` queue pairs. A failure leaves nothing to undo. */
int tokd_port_configure(struct tokd_port *p, const struct tokd_options *opt, uint16_t n_queues);
/* port_pool.c: the mbufs of one worker, on `node`; NULL on failure. */
struct rte_mempool *tokd_port_pool(
	const struct tokd_port *p, const struct tokd_options *opt, uint16_t queue, int node);
/* Set up RX and TX queue `queue`, with memory on `node`. */
int tokd_port_queue(struct tokd_port *p, uint16_t queue, int node, struct rte_mempool *pool);
/* Start the port, and join the solicited-node group of `ip6`, unless that is ::. */
int tokd_port_start(
	struct tokd_port *p, const struct tokd_options *opt, const struct tokd_addr *ip6);
/* Stop, if started, and close. */
void tokd_port_close(struct tokd_port *p);

/* port_queues.c: check that there is a queue per worker, and no queue without a worker. */
int tokd_port_check_queues(const struct tokd_port *p, const struct rte_eth_dev_info *info);

/* port_mtu.c: set --mtu in *conf, and scattered receive if needed. */
int tokd_port_mtu_check(const struct tokd_port *p, const struct tokd_options *opt,
	const struct rte_eth_dev_info *info, struct rte_eth_conf *conf);
/* After the port is configured. */
int tokd_port_mtu_set(struct tokd_port *p, const struct tokd_options *opt);

/* port_watch.c */
struct tokd_port_watch {
	uint32_t carrier_missed; /* looks in a row that found none */
	bool xdp_told, cksums_told;
};
/*
 * Once a second. Zero *watch at first. `wrong_cksums`: datagrams dropped for their UDP checksum so
 * far. One thread only: ethdev's calls for one port must not run at the same time.
 */
void tokd_port_watch(struct tokd_port_watch *watch, struct tokd_port *p, uint64_t wrong_cksums);

/* port_zero_copy.c */
enum tokd_zc_kind tokd_port_zero_copy(const struct rte_eth_dev_info *info);
