/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in several mbuf segments: as a driver delivers jumbo frames, and as fragments become. */
#include <netinet/in.h>

#include "fixture.h"
#include "control/tables/tables.h"
#include "datapath/net/net_frag.h"
#include "frames6.h"

#define HEADERS (14 + 20 + 8 + sizeof(struct tokd_req))
#define TEXT 3000

static uint8_t text[TEXT];

static struct request
whole_text(uint64_t stream)
{
	struct request r;

	make_text(text, TEXT, 7);
	r = data_request(stream, 0, 0, text, TEXT, TOKD_F_LAST);
	r.req.text_crc = crc32c_of(text, TEXT);
	return r;
}

FIXTURE_TEST(segments_of_any_size_are_fed_where_they_lie)
{
	static const uint32_t first[] = {HEADERS, HEADERS + 1, HEADERS + 5, 200, 3000};
	static const uint32_t cut[] = {100, 333, 1000, 2999, 5000};
	uint64_t stream = 1;

	for (uint32_t i = 0; i < RTE_DIM(first); i++) {
		for (uint32_t j = 0; j < RTE_DIM(cut); j++, stream++) {
			struct request r = whole_text(stream);

			receive(cut_frame(make_frame(r).m, first[i], cut[j]));
			assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
			expect_text(stream, text, TEXT);
		}
	}
	/* And an early one, which is held. */
	for (uint32_t p = 3; p-- > 0;) {
		struct request r = text_packet(stream, text, TEXT, 1000, 0, p);

		put(cut_frame(make_frame(r).m, HEADERS, 300));
	}
	run();
	drain();
	expect_text(stream, text, TEXT);
	expect_count(C_DROP_SEGMENTS, 0);
}

/* What a switch has appended to a frame may be longer than its last segment. */
FIXTURE_TEST(segments_of_a_trailer_are_let_go)
{
	for (uint64_t stream = 1; stream <= 4; stream++) {
		struct request r = whole_text(stream);
		struct rte_mbuf *m = cut_frame(
			stream % 2 ? make_frame(r).m : frame6(r), 200, stream <= 2 ? TEXT : 100);

		assert_int_equal(rte_pktmbuf_chain(m, cut_frame(raw_frame(text, 14), 5, 5)), 0);
		receive(m);
		assert_int_equal(drain(), 1);
		expect_text(stream, text, TEXT);
	}
	expect_count(C_DROP_IP_HEADER, 0);
}

/* The bound is one on what the pool has to give, so it counts mbufs, not packets. */
FIXTURE_TEST(segments_that_are_held_count_each)
{
	static const uint32_t taken[] = {4, 8, 8, 10}; /* the third packet would make it 12 */

	make_text(text, TEXT, 7);
	fx->w.held_max = 10;
	for (uint32_t i = 0; i < RTE_DIM(taken); i++) {
		struct frame f = make_frame(text_packet(1, text, TEXT, 500, 0, 1 + i));

		put(cut_frame(f.m, HEADERS + 200, i < 3 ? 100 : 300)); /* 4 segments, then 2 */
		run();
		assert_int_equal(fx->w.n_held, taken[i]);
	}
	expect_count(C_DROP_HELD, 1);
	assert_int_equal(rte_mempool_in_use_count(fx_pool) - rte_ring_count(fx_tx), 10);
	for (uint32_t p = 0; p < text_packets(TEXT, 500); p++)
		send_request(text_packet(1, text, TEXT, 500, 0, p));
	run();
	assert_int_equal(fx->w.n_held, 0);
	drain();
	expect_text(1, text, TEXT);
}

FIXTURE_TEST(segments_must_have_the_headers_in_the_first)
{
	struct request r = whole_text(1);

	receive(cut_frame(make_frame(r).m, HEADERS - 1, 5000));
	expect_count(C_DROP_SEGMENTS, 1);
	receive(cut_frame(make_frame(r).m, 14 + 20, 5000));
	expect_count(C_DROP_SEGMENTS, 2);
	receive(cut_frame(make_frame(r).m, 14 + 19, 5000));
	expect_count(C_DROP_IP_HEADER, 1);
	receive(cut_frame(make_frame(r).m, 13, 5000));
	expect_count(C_DROP_ETHER, 1);
	expect_count(C_STREAMS_OPENED, 0);
	expect_nothing();
}

FIXTURE_TEST(segments_of_a_refused_request_are_let_go)
{
	struct request r = whole_text(1);
	struct reply reply;

	r.req.vocab = 1;
	receive(cut_frame(make_frame(r).m, HEADERS, 100));
	reply = expect_reply();
	assert_int_equal(reply.rep.reason, TOKD_R_VOCAB);
	assert_int_equal(reply.udp_payload, sizeof(reply.rep));
}

/* ---- fragments ---- */

/* The part [from, to) of the payload of an IPv4 frame, as a fragment. */
static struct rte_mbuf *
fragment(const struct frame *f, uint32_t from, uint32_t to, uint16_t id, bool more)
{
	uint32_t payload = rte_be_to_cpu_16(f->ip->total_length) - 20u;
	uint8_t bytes[14 + 20 + 4000];
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14);

	to = RTE_MIN(to, payload);
	memcpy(bytes, f->eth, 14 + 20);
	memcpy(bytes + 14 + 20, (const uint8_t *)f->udp + from, to - from);
	ip->packet_id = rte_cpu_to_be_16(id);
	ip->fragment_offset =
		rte_cpu_to_be_16((uint16_t)(from / 8 | (more ? RTE_IPV4_HDR_MF_FLAG : 0)));
	ip->total_length = rte_cpu_to_be_16((uint16_t)(20 + to - from));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return raw_frame(bytes, 14 + 20 + to - from);
}

#define PART 800 /* a multiple of 8 */
#define PARTS 4	 /* of 8 + 64 + 3000 bytes */

FIXTURE_TEST(fragments_in_any_order_make_the_datagram)
{
	static const uint8_t order[][PARTS] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};

	for (uint16_t i = 0; i < RTE_DIM(order); i++) {
		struct frame f = make_frame(whole_text(i));

		for (uint32_t p = 0; p < PARTS; p++) {
			uint32_t at = order[i][p] * PART;

			expect_count(C_RX_REASSEMBLED, i);
			receive(fragment(&f, at, at + PART, i, order[i][p] + 1 < PARTS));
		}
		rte_pktmbuf_free(f.m);
		expect_count(C_RX_REASSEMBLED, i + 1);
		assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
		expect_text(i, text, TEXT);
	}
	expect_count(C_RX_FRAGMENTS, PARTS * RTE_DIM(order));
	expect_count(C_DROP_IP_FRAGMENT, 0);
}

FIXTURE_TEST(fragments_of_ipv6_make_the_datagram)
{
	struct request r = whole_text(1);
	struct rte_mbuf *m = frame6(r);

	for (uint32_t p = PARTS; p-- > 0;)
		receive(fragment6(m, p * PART, (p + 1) * PART, 77, p + 1 < PARTS));
	rte_pktmbuf_free(m);
	expect_count(C_RX_REASSEMBLED, 1);
	expect_count(C_DROP_IP_FRAGMENT, 0);
	assert_int_equal(drain(), 1);
	expect_text(1, text, TEXT);
	receive(frame6_short_fragment());
	expect_count(C_DROP_IP_FRAGMENT, 1);
}

/* RFC 6946: an atomic fragment. */
FIXTURE_TEST(fragments_of_ipv6_that_are_all_need_no_others)
{
	struct tokd_frags *table = fx->w.frags;

	for (uint64_t i = 0; i < 2; i++) {
		struct request r = whole_text(i);
		struct rte_mbuf *m = frame6(r);

		put(fragment6(m, 0, rte_pktmbuf_pkt_len(m) - HEADERS6, 7, false));
		rte_pktmbuf_free(m);
		run();
		drain();
		expect_text(i, text, TEXT);
		fx->w.frags = NULL; /* and no table */
	}
	fx->w.frags = table;
	expect_count(C_STREAMS_DONE, 2);
	expect_count(C_RX_FRAGMENTS, 0);
}

FIXTURE_TEST(fragments_never_whole_make_way_for_others)
{
	struct frame f = make_frame(whole_text(1));

	/* Many more datagrams than the table has room for, each without its end. */
	for (uint16_t id = 0; id < 10 * FRAGMENTS; id++)
		receive(fragment(&f, 0, PART, id, true));
	assert_true(rte_mempool_avail_count(fx_pool) >=
		    POOL_MBUFS - 1 - FRAGMENTS * RTE_LIBRTE_IP_FRAG_MAX_FRAG);
	assert_true(fx->w.counter[C_DROP_IP_FRAGMENT] >= 9 * FRAGMENTS);
	/* The table is full: the time that each has is short. */
	rte_delay_us_block(1000 * (TOKD_FRAG_FULL_MS + 1));
	for (uint32_t p = 0; p < PARTS; p++)
		put(fragment(&f, p * PART, (p + 1) * PART, 5000, p + 1 < PARTS));
	run();
	rte_pktmbuf_free(f.m);
	drain();
	expect_text(1, text, TEXT);
}

/* A table that drops nothing by itself, however slow the test; but if full, all that is older. */
static void
keep_fragments(void)
{
	tokd_frags_free(fx->w.frags);
	fx->w.frags = tokd_frags_create(FRAGMENTS, 0, SOCKET_ID_ANY, 1000 * fx->w.tsc_hz);
	assert_non_null(fx->w.frags);
	fx->w.frags->hurry = fx->w.tsc_hz * TOKD_FRAG_MS;
}

/* A fragment that ends beyond the 65,535 bytes of a datagram, by IPv4 and by IPv6. */
static struct rte_mbuf *
beyond(const struct frame *f)
{
	struct rte_mbuf *m = fragment(f, PART, 2 * PART, 1000, true);
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);

	ip->fragment_offset |= RTE_BE16(RTE_IPV4_HDR_OFFSET_MASK);
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	return m;
}

static struct rte_mbuf *
beyond6(const struct rte_mbuf *of)
{
	struct rte_mbuf *m = fragment6(of, PART, 2 * PART, 1000, true);

	rte_pktmbuf_mtod_offset(m, struct rte_ipv6_fragment_ext *, HEADERS6)->frag_data =
		RTE_BE16(0xffff);
	return m;
}

FIXTURE_TEST(fragments_stay_when_one_comes_that_no_datagram_has)
{
	struct request r = whole_text(1);
	struct frame f = make_frame(r);
	struct rte_mbuf *m = frame6(r);

	keep_fragments();
	for (uint16_t id = 0; id < FRAGMENTS / 2; id++)
		put(fragment(&f, 0, PART, id, true));
	run();
	put(fragment(&f, 800, 800, 1000, true));
	put(fragment6(m, 800, 800, 1000, true));
	put(beyond(&f));
	receive(beyond6(m));
	expect_count(C_DROP_IP_FRAGMENT, 4);
	for (uint32_t p = 1; p < PARTS; p++)
		put(fragment(&f, p * PART, (p + 1) * PART, 0, p + 1 < PARTS));
	run();
	expect_count(C_RX_REASSEMBLED, 1);
	drain();
	expect_text(1, text, TEXT);
	rte_pktmbuf_free(f.m);
	rte_pktmbuf_free(m);
}

/* 65,535 bytes by the header of the last fragment; options make that of the first longer. */
FIXTURE_TEST(fragments_and_options_of_more_than_a_datagram_are_dropped)
{
	const uint32_t all = UINT16_MAX - 20, part = 8184;
	uint8_t bytes[14 + 60 + 9000] = {0};
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14);
	struct frame f = make_frame(whole_text(1));

	f.udp->dgram_len = rte_cpu_to_be_16((uint16_t)all);
	for (uint32_t at = 0, n = 0; at < all; at += n) {
		const uint32_t head = at == 0 ? 60 : 20; /* end of option list */
		const bool more = all - at >= 2 * part;

		n = more ? part : all - at;
		memcpy(bytes, f.eth, 14 + 20);
		ip->version_ihl = (uint8_t)(IPVERSION << 4 | head / 4);
		ip->total_length = rte_cpu_to_be_16((uint16_t)(head + n));
		ip->fragment_offset =
			rte_cpu_to_be_16((uint16_t)(at / 8 | (more ? RTE_IPV4_HDR_MF_FLAG : 0)));
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		if (at == 0)
			memcpy(bytes + 14 + head, f.udp, sizeof(*f.udp));
		put(raw_frame(bytes, 14 + head + n));
	}
	run();
	rte_pktmbuf_free(f.m);
	expect_count(C_RX_FRAGMENTS, RTE_LIBRTE_IP_FRAG_MAX_FRAG);
	expect_count(C_RX_REASSEMBLED, 0);
	expect_count(C_DROP_IP_FRAGMENT, 1);
}

FIXTURE_TEST(fragments_expire_when_no_others_come)
{
	struct frame f = make_frame(whole_text(1));
	uint32_t avail;

	rte_mempool_cache_flush(NULL, fx_pool);
	avail = rte_mempool_avail_count(fx_pool);
	for (uint16_t id = 0; id < FRAGMENTS / 2; id++)
		put(fragment(&f, 0, PART, id, true));
	run();
	tokd_housekeeping(&fx->w, fx->w.t_burst + fx->w.tsc_hz / 1000 * TOKD_FRAG_MS);
	expect_count(C_DROP_IP_FRAGMENT, 0);
	assert_int_equal(rte_mempool_avail_count(fx_pool), avail - FRAGMENTS / 2);
	tokd_housekeeping(&fx->w, fx->w.t_burst + fx->w.tsc_hz / 1000 * (TOKD_FRAG_MS + 1));
	expect_count(C_DROP_IP_FRAGMENT, FRAGMENTS / 2);
	assert_int_equal(rte_mempool_avail_count(fx_pool), avail);
	rte_pktmbuf_free(f.m);
}

FIXTURE_TEST(fragments_that_lie_are_dropped)
{
	struct frame f = make_frame(whole_text(1));
	uint64_t avail;

	/* A checksum that is wrong once the packet is whole, which a device called right. */
	f.udp->dgram_cksum ^= 1;
	for (uint32_t p = 0; p < PARTS; p++) {
		struct rte_mbuf *m = fragment(&f, p * PART, (p + 1) * PART, 1, p + 1 < PARTS);

		m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
		put(m);
	}
	fx->w.rx_cksum = RTE_MBUF_F_RX_L4_CKSUM_MASK;
	run();
	expect_count(C_DROP_UDP_CKSUM, 1);
	f.udp->dgram_cksum ^= 1;

	/* Parts that overlap. */
	put(fragment(&f, 0, 1600, 2, true));
	put(fragment(&f, 800, 2400, 2, true));
	receive(fragment(&f, 2400, 4000, 2, false));
	/* More parts than a datagram may have. */
	for (uint32_t p = 0; p < 2 * RTE_LIBRTE_IP_FRAG_MAX_FRAG; p++)
		put(fragment(&f, p * 80, (p + 1) * 80, 3, true));
	run();
	/* Beyond 64 KiB, with a length that says otherwise: no access outside, no datagram. */
	for (uint32_t p = 0; p < 2; p++) {
		struct rte_mbuf *m = fragment(&f, p * PART, (p + 1) * PART, 4, p == 0);
		struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);

		if (p == 1)
			ip->fragment_offset = RTE_BE16(0x1fff);
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
		put(m);
	}
	/* A part without a byte. */
	receive(fragment(&f, 800, 800, 5, true));
	avail = rte_mempool_avail_count(fx_pool);
	assert_true(avail >= POOL_MBUFS - 1 - FRAGMENTS * RTE_LIBRTE_IP_FRAG_MAX_FRAG);
	assert_true(fx->w.counter[C_DROP_IP_FRAGMENT] > 0);
	expect_count(C_STREAMS_OPENED, 0);
	expect_nothing();
	rte_pktmbuf_free(f.m);
}

FIXTURE_TEST(fragments_are_dropped_where_none_are_taken)
{
	struct request r = whole_text(1);
	struct frame f = make_frame(r);
	struct rte_mbuf *m = frame6(r);
	struct tokd_frags *frags = fx->w.frags;

	fx->w.frags = NULL;
	put(fragment(&f, 0, PART, 1, true));
	put(fragment(&f, PART, 2 * PART, 1, false));
	receive(fragment6(m, 0, PART, 1, true));
	expect_count(C_DROP_IP_FRAGMENT, 3);
	expect_count(C_RX_FRAGMENTS, 0);
	fx->w.frags = frags;
	rte_pktmbuf_free(f.m);
	rte_pktmbuf_free(m);
}
