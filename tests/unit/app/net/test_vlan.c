/* SPDX-License-Identifier: BSD-3-Clause */
/* 802.1Q: our VLAN and no other. */
#include "fixture.h"

#define OURS 100

static struct request
hello(uint64_t stream)
{
	struct request r = data_request(stream, 0, 0, "hello", 5, TOKD_F_LAST);

	r.req.text_crc = crc32c_of("hello", 5);
	return r;
}

static struct rte_mbuf *
tagged(uint64_t stream, uint16_t tci)
{
	struct rte_mbuf *m = make_frame(hello(stream)).m;

	m->vlan_tci = tci;
	assert_int_equal(rte_vlan_insert(&m), 0);
	m->vlan_tci = 0;
	return m;
}

FIXTURE_TEST(vlan_of_ours_is_served_and_answered_with_its_tag)
{
	const struct rte_vlan_hdr *tag;
	const struct rte_ether_hdr *eth;
	struct rte_mbuf *m;

	fx->w.vlan = OURS;
	receive(tagged(1, 5 << 13 | OURS));
	m = expect_frame();
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	tag = (const struct rte_vlan_hdr *)(eth + 1);
	assert_int_equal(eth->ether_type, RTE_BE16(RTE_ETHER_TYPE_VLAN));
	assert_int_equal(tag->vlan_tci, RTE_BE16(OURS));
	assert_int_equal(tag->eth_proto, RTE_BE16(RTE_ETHER_TYPE_IPV4));
	rte_pktmbuf_free(m);
	expect_text(1, "hello", 5);
	/* VLAN 0 is a priority and no VLAN. */
	fx->w.vlan = 0;
	receive(tagged(2, 3 << 13));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
}

FIXTURE_TEST(vlan_of_others_is_dropped)
{
	struct rte_mbuf *m;

	receive(tagged(1, OURS));
	expect_count(C_DROP_VLAN, 1);
	fx->w.vlan = OURS;
	receive(tagged(1, OURS + 1));
	expect_count(C_DROP_VLAN, 2);
	ask(hello(1));
	expect_count(C_DROP_VLAN, 3);
	m = tagged(1, OURS);
	rte_pktmbuf_trim(m, (uint16_t)(rte_pktmbuf_data_len(m) - 17));
	receive(m);
	expect_count(C_DROP_VLAN, 4);
	expect_count(C_STREAMS_OPENED, 0);
	expect_nothing();
}

FIXTURE_TEST(vlan_tag_a_driver_took_out_is_put_back)
{
	struct request r = hello(1);
	struct rte_mbuf *m = make_frame(r).m;

	fx->w.vlan = OURS;
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = OURS;
	receive(m);
	assert_int_equal(drain(), 1);
	expect_text(1, "hello", 5);
	m = make_frame(r).m;
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = OURS + 1;
	receive(m);
	expect_count(C_DROP_VLAN, 1);
}
