/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of its own: what its driver says of it. */
#include <errno.h>
#include <stdlib.h>

#include <rte_eth_ring.h>
#include <rte_ip_frag.h>

#include "fixture.h"
#include "control/port/port.h"
#include "control/worker_open.h"

/* What drivers call: in DPDK's library, and in no header that is installed. */
struct rte_eth_dev;
struct rte_eth_dev *rte_eth_dev_allocated(const char *name);
int rte_eth_dev_callback_process(struct rte_eth_dev *dev, enum rte_eth_event_type event, void *ret);

FIXTURE_TEST(port_whose_device_is_reset_or_removed_is_lost)
{
	static const enum rte_eth_event_type lost[] = {
		RTE_ETH_EVENT_INTR_RESET, RTE_ETH_EVENT_RECOVERY_FAILED, RTE_ETH_EVENT_INTR_RMV};
	struct rte_ring *ring = rte_ring_create("lost", 64, SOCKET_ID_ANY, 0);
	struct tokd_options opt = fx->opt;
	struct rte_eth_dev *dev;
	struct tokd_port p;
	int id;

	assert_non_null(ring);
	id = rte_eth_from_rings("lost", &ring, 1, &ring, 1, SOCKET_ID_ANY);
	assert_true(id >= 0);
	opt.port = (uint16_t)id;
	assert_int_equal(tokd_port_configure(&p, &opt, 1), 0);
	assert_int_equal(tokd_port_queue(&p, 0, SOCKET_ID_ANY, fx_pool), 0);
	assert_int_equal(tokd_port_start(&p, &opt, &fx->w.ip6), 0);
	dev = rte_eth_dev_allocated(p.name);
	assert_non_null(dev);
	for (uint32_t i = 0; i < RTE_DIM(lost); i++) {
		p.lost = false;
		rte_eth_dev_callback_process(dev, RTE_ETH_EVENT_INTR_LSC, NULL);
		assert_false(p.lost);
		rte_eth_dev_callback_process(dev, lost[i], NULL);
		assert_true(p.lost);
	}
	tokd_port_close(&p);
	rte_ring_free(ring);
}

/* As one below net_failsafe has an owner. */
FIXTURE_TEST(port_that_another_one_polls_is_not_taken)
{
	struct rte_ring *ring = rte_ring_create("owned", 64, SOCKET_ID_ANY, 0);
	struct rte_eth_dev_owner owner = {.name = "failsafe"};
	struct tokd_options opt = fx->opt;
	struct tokd_port p;
	int id;

	assert_non_null(ring);
	id = rte_eth_from_rings("owned", &ring, 1, &ring, 1, SOCKET_ID_ANY);
	assert_true(id >= 0);
	opt.port = (uint16_t)id;
	assert_int_equal(rte_eth_dev_owner_new(&owner.id), 0);
	assert_int_equal(rte_eth_dev_owner_set(opt.port, &owner), 0);
	assert_int_equal(tokd_port_configure(&p, &opt, 1), -ENODEV);
	assert_int_equal(rte_eth_dev_owner_unset(opt.port, owner.id), 0);
	assert_int_equal(tokd_port_configure(&p, &opt, 1), 0);
	assert_int_equal(p.id, id);
	tokd_port_close(&p);
	rte_ring_free(ring);
}

static void
look(struct tokd_port_watch *watch, struct tokd_port *p, int times, FILE *log)
{
	while (times-- > 0)
		tokd_port_watch(watch, p, 0);
	fflush(log);
}

FIXTURE_TEST(carrier_that_comes_in_five_seconds_is_not_missed_aloud)
{
	struct rte_ring *ring = rte_ring_create("carrier", 64, SOCKET_ID_ANY, 0);
	struct tokd_port_watch watch = {0};
	struct tokd_options opt = fx->opt;
	struct tokd_port p;
	size_t size, told;
	char *said;
	FILE *log = open_memstream(&said, &size);
	int id;

	assert_non_null(log);
	assert_non_null(ring);
	id = rte_eth_from_rings("carrier", &ring, 1, &ring, 1, SOCKET_ID_ANY);
	assert_true(id >= 0);
	opt.port = (uint16_t)id;
	assert_int_equal(tokd_port_configure(&p, &opt, 1), 0);
	assert_int_equal(rte_openlog_stream(log), 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(rte_eth_dev_set_link_down(p.id), 0);
		look(&watch, &p, 5, log);
		assert_true(p.no_carrier);
		assert_int_equal(rte_eth_dev_set_link_up(p.id), 0);
		look(&watch, &p, 5, log);
		assert_false(p.no_carrier);
	}
	assert_int_equal(size, 0);
	assert_int_equal(rte_eth_dev_set_link_down(p.id), 0);
	look(&watch, &p, 6, log);
	assert_non_null(strstr(said, "no carrier: look at the cable"));
	told = size;
	look(&watch, &p, 100, log);
	assert_int_equal(size, told);
	assert_int_equal(rte_eth_dev_set_link_up(p.id), 0);
	look(&watch, &p, 1, log);
	assert_non_null(strstr(said + told, "the carrier is back"));
	told = size;
	look(&watch, &p, 100, log);
	assert_int_equal(size, told);
	rte_openlog_stream(NULL);
	fclose(log);
	free(said);
	tokd_port_close(&p);
	rte_ring_free(ring);
}

/* The others would use their slower way to send, for packets that never come. */
FIXTURE_TEST(only_devices_that_free_when_asked_get_packets_in_place)
{
	static const struct {
		const char *driver;
		enum tokd_zc_kind kind;
	} cases[] = {{"net_tap", TOKD_ZC_COPIES}, {"net_ring", TOKD_ZC_NO},
		{"net_ice", TOKD_ZC_DMA}, {"net_iavf", TOKD_ZC_DMA}, {"mlx5_pci", TOKD_ZC_NO},
		{"mlx5_auxiliary", TOKD_ZC_NO}, {"net_cn10k", TOKD_ZC_NO},
		{"net_virtio", TOKD_ZC_NO}};
	struct rte_eth_dev_info info;

	assert_int_equal(rte_eth_dev_info_get(fx->w.port, &info), 0);
	for (uint32_t i = 0; i < RTE_DIM(cases); i++) {
		info.driver_name = cases[i].driver;
		assert_int_equal(tokd_port_zero_copy(&info), cases[i].kind);
	}
}

static struct tokd_port
port_as_asked(void)
{
	return (struct tokd_port){
		.rx_desc = (uint16_t)fx->opt.rx_desc, .tx_desc = (uint16_t)fx->opt.tx_desc};
}

/* As a driver does when the main lcore sets up the queue of another worker. */
FIXTURE_TEST(mbufs_that_set_up_leaves_in_a_cache_go_back)
{
	const struct rte_mempool_cache *cache = rte_mempool_default_cache(fx_pool, rte_lcore_id());
	const struct tokd_port p = port_as_asked();

	rte_pktmbuf_free(rte_pktmbuf_alloc(fx_pool));
	assert_true(cache->len > 0);
	assert_int_equal(tokd_worker_bound_held(&fx->w, &p), 0);
	assert_int_equal(cache->len, 0);
}

/* Queues longer than --rxd and --txd; frames of several mbufs. */
FIXTURE_TEST(mbufs_that_a_driver_or_a_long_frame_takes_are_not_for_early_packets)
{
	const uint32_t held_max = fx->w.held_max;
	const uint32_t frames = TOKD_BURST + FRAGMENTS * RTE_LIBRTE_IP_FRAG_MAX_FRAG;
	struct tokd_port p = port_as_asked();

	p.tx_desc += 7;
	p.rx_desc += 5;
	assert_int_equal(tokd_worker_bound_held(&fx->w, &p), 0);
	assert_int_equal(fx->w.held_max, held_max - 12);
	p = port_as_asked();
	fx->w.mtu = 18000; /* in mbufs of 9100 bytes */
	assert_int_equal(tokd_worker_bound_held(&fx->w, &p), 0);
	assert_int_equal(fx->w.held_max, held_max - frames);
}

/* Whether they are more than was asked for is known before the worker's tables are made. */
FIXTURE_TEST(mbufs_that_are_too_few_for_the_drivers_queues_are_refused)
{
	struct tokd_worker w = {.pool = fx_pool,
		.terms = fx->w.terms,
		.mtu = fx->w.mtu,
		.opt = &fx->opt,
		.node = SOCKET_ID_ANY};
	struct tokd_port p = port_as_asked();

	p.tx_desc += fx->w.held_max - TOKD_WIRE_WINDOW;
	assert_int_equal(tokd_worker_bound_held(&fx->w, &p), 0);
	assert_int_equal(fx->w.held_max, TOKD_WIRE_WINDOW);
	p.tx_desc++;
	assert_int_equal(tokd_worker_bound_held(&fx->w, &p), -EINVAL);
	assert_int_equal(tokd_worker_init(&w, &p), -EINVAL);
	assert_null(w.streams);
}
