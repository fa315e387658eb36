/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mempool.h>

#include "port.h"

#define DESCRIPTORS 1024
#define MBUFS 8191 /* enough for both rings and all held packets, several times */
#define MBUF_CACHE 256
#define LINK_MS 10000
#define ARP_TRIES 50
#define ARP_MS 100
#define ARP_BURST 32 /* vector drivers give nothing to who asks for less than 4, or 8 */

static int
fail(const char *what, int rc)
{
	fprintf(stderr, "tokd-load-dpdk: port %d: %s: %s; see the driver's message above\n",
		PORT_ID, what, rte_strerror(-rc));
	return -1;
}

static int
start(struct frames *f)
{
	const struct rte_eth_conf conf = {0};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	int rc;

	rc = rte_eth_dev_configure(PORT_ID, 1, 1, &conf);
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(PORT_ID, &rx, &tx);
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(PORT_ID, 0, rx, SOCKET_ID_ANY, NULL, f->pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(PORT_ID, 0, tx, SOCKET_ID_ANY, NULL);
	if (rc == 0)
		rc = rte_eth_macaddr_get(PORT_ID, &f->mac);
	if (rc != 0)
		return fail("not configured", rc);
	rc = rte_eth_dev_start(PORT_ID);
	return rc == 0 ? 0 : fail("not started", rc);
}

int
port_open(struct frames *f)
{
	if (!rte_eth_dev_is_valid_port(PORT_ID)) {
		fprintf(stderr,
			"tokd-load-dpdk: no DPDK port: name one among EAL's options, as in --vdev "
			"net_memif0,role=client,socket=PATH,socket-abstract=no\n");
		return -1;
	}
	f->pool = rte_pktmbuf_pool_create(
		"load", MBUFS, MBUF_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (f->pool == NULL) {
		fprintf(stderr, "tokd-load-dpdk: no memory for %d mbufs: %s; raise EAL's -m\n",
			MBUFS, rte_strerror(rte_errno));
		return -1;
	}
	return start(f);
}

static int
wait_for_link(void)
{
	for (uint32_t ms = 0; ms < LINK_MS; ms++) {
		struct rte_eth_link link = {0};

		if (rte_eth_link_get_nowait(PORT_ID, &link) == 0 &&
			link.link_status == RTE_ETH_LINK_UP)
			return 0;
		rte_delay_us_sleep(1000);
	}
	fprintf(stderr,
		"tokd-load-dpdk: port %d: the link is down after %d s: does the appliance run, at "
		"the other end of it?\n",
		PORT_ID, LINK_MS / 1000);
	return -1;
}

static bool
ask(struct frames *f)
{
	struct rte_mbuf *m = frames_arp_request(f), *came[ARP_BURST];
	struct frame frame;
	uint16_t n;

	if (m != NULL && rte_eth_tx_burst(PORT_ID, 0, &m, 1) == 0)
		rte_pktmbuf_free(m);
	for (uint32_t ms = 0; ms < ARP_MS && rte_is_zero_ether_addr(&f->peer); ms++) {
		while ((n = rte_eth_rx_burst(PORT_ID, 0, came, ARP_BURST)) > 0) {
			for (uint16_t i = 0; i < n; i++)
				(void)frames_take(f, came[i], &frame);
			rte_pktmbuf_free_bulk(came, n);
		}
		rte_delay_us_sleep(1000);
	}
	return !rte_is_zero_ether_addr(&f->peer);
}

int
port_find_peer(struct frames *f)
{
	uint32_t ip = rte_be_to_cpu_32(f->server_ip);

	if (wait_for_link() != 0)
		return -1;
	for (uint32_t i = 0; i < ARP_TRIES; i++)
		if (ask(f))
			return 0;
	fprintf(stderr,
		"tokd-load-dpdk: no ARP reply from %u.%u.%u.%u: is it the --ip of the "
		"appliance?\n",
		ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
	return -1;
}

void
port_close(void)
{
	rte_eth_dev_stop(PORT_ID);
	rte_eth_dev_close(PORT_ID);
}
