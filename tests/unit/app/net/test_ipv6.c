/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6: texts, neighbour discovery, echo, and what is dropped. */
#include <netinet/icmp6.h>
#include <netinet/in.h>

#include "frames6.h"

static const struct tokd_addr none;

/* The next frame out, which is IPv6 from us, with a right checksum; its payload in `bytes`. */
static uint32_t
next_packet6(uint8_t proto, const struct tokd_addr *to, uint8_t *bytes, uint32_t room)
{
	struct rte_mbuf *m = next_frame();
	const struct rte_ether_hdr *eth;
	const struct rte_ipv6_hdr *ip;
	uint32_t n;

	assert_non_null(m);
	assert_true(rte_pktmbuf_data_len(m) >= HEADERS6);
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	ip = (const struct rte_ipv6_hdr *)(eth + 1);
	n = rte_be_to_cpu_16(ip->payload_len);
	assert_int_equal(n + HEADERS6, rte_pktmbuf_data_len(m));
	assert_int_equal(eth->ether_type, RTE_BE16(RTE_ETHER_TYPE_IPV6));
	assert_memory_equal(&eth->src_addr, &fx->w.mac, 6);
	assert_int_equal(ip->vtc_flow, RTE_BE32(0x60000000));
	assert_int_equal(ip->proto, proto);
	assert_memory_equal(&ip->src_addr, fx->w.ip6.byte, 16);
	assert_memory_equal(&ip->dst_addr, to->byte, 16);
	/* Over a right checksum it is zero, which is written as all ones for UDP. */
	assert_int_equal(rte_ipv6_udptcp_cksum(ip, ip + 1), proto == IPPROTO_UDP ? 0xffff : 0);
	assert_true(n <= room);
	memcpy(bytes, ip + 1, n);
	rte_pktmbuf_free(m);
	return n;
}

static struct request
hello(uint64_t stream)
{
	struct request r = data_request(stream, 0, 0, "hello", 5, TOKD_F_LAST | TOKD_F_IDS);

	r.req.text_crc = crc32c_of("hello", 5);
	return r;
}

FIXTURE_TEST(ipv6_texts_are_served)
{
	struct request r = hello(1);
	uint8_t bytes[2000];
	struct tokd_rep rep;
	uint32_t ids[16], n;

	receive(frame6(r));
	n = next_packet6(IPPROTO_UDP, &client_ip6, bytes, sizeof(bytes));
	memcpy(&rep, bytes + 8, sizeof(rep));
	assert_int_equal(rep.flags, TOKD_F_DONE | TOKD_F_FIRST);
	assert_int_equal(n, 8 + sizeof(rep) + 4 * rep.count);
	assert_int_equal(whole("hello", 5, ids, 16), rep.count);
	assert_memory_equal(ids, bytes + 8 + sizeof(rep), 4 * rep.count);
	expect_text(1, "hello", 5);
	/* The same stream id from an IPv4 client is another stream. */
	ask(r);
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE | TOKD_F_FIRST);
	expect_text(1, "hello", 5);
}

static void
expect_drop6(struct rte_mbuf *m, enum tokd_counter reason)
{
	uint64_t before = fx->w.counter[reason];

	receive(m);
	expect_nothing();
	expect_count(reason, before + 1);
	expect_count(C_STREAMS_OPENED, 0);
}

static struct rte_ipv6_hdr *
ip6_of(struct rte_mbuf *m)
{
	return rte_pktmbuf_mtod_offset(m, struct rte_ipv6_hdr *, 14);
}

FIXTURE_TEST(ipv6_drops_malformed_headers_and_other_hosts)
{
	static const struct tokd_addr bad[] = {
		{.byte = {0}},
		{.byte = {[15] = 1}},
		{.byte = {0xff, 2, [15] = 1}},
		{.byte = {[10] = 0xff, 0xff, 10, 0, 0, 2}},
	};
	struct request r = hello(1);
	struct rte_mbuf *m = frame6(r);

	ip6_of(m)->vtc_flow = RTE_BE32(0x50000000);
	expect_drop6(m, C_DROP_IP_HEADER);
	m = frame6(r);
	ip6_of(m)->payload_len = rte_cpu_to_be_16(rte_be_to_cpu_16(ip6_of(m)->payload_len) + 1);
	expect_drop6(m, C_DROP_IP_HEADER);
	m = frame6(r);
	rte_pktmbuf_trim(m, rte_pktmbuf_data_len(m) - 14 - 39);
	expect_drop6(m, C_DROP_IP_HEADER);
	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		m = frame6(r);
		memcpy(&ip6_of(m)->src_addr, bad[i].byte, 16);
		expect_drop6(m, C_DROP_IP_HEADER);
	}
	m = frame6(r);
	memcpy(&ip6_of(m)->src_addr, fx->w.ip6.byte, 16);
	expect_drop6(m, C_DROP_IP_HEADER);
	m = frame6(r);
	((uint8_t *)&ip6_of(m)->dst_addr)[15] ^= 1;
	expect_drop6(m, C_DROP_IP_DST);
	/* The group is for neighbours only. */
	m = frame6(r);
	memcpy(&ip6_of(m)->dst_addr, fx->w.solicited.byte, 16);
	expect_drop6(m, C_DROP_IP_DST);
	m = frame6(r);
	ip6_of(m)->proto = IPPROTO_HOPOPTS;
	expect_drop6(m, C_DROP_IP_PROTO);
	/* Padding is no part of it. */
	m = frame6(r);
	memset(rte_pktmbuf_append(m, 9), 0xee, 9);
	receive(m);
	assert_int_equal(drain(), 1);
	expect_text(1, "hello", 5);
}

FIXTURE_TEST(ipv6_checksum_is_demanded)
{
	struct request r = hello(1);
	struct rte_mbuf *m = frame6(r);
	struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, HEADERS6);

	udp->dgram_cksum = 0;
	expect_drop6(m, C_DROP_UDP_CKSUM);
	m = frame6(r);
	udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, HEADERS6);
	udp->dgram_cksum ^= 1;
	expect_drop6(m, C_DROP_UDP_CKSUM);
}

FIXTURE_TEST(ipv6_tx_offload_leaves_the_checksum_to_the_driver)
{
	struct request r = hello(1);
	const struct rte_ipv6_hdr *ip;
	const struct rte_udp_hdr *udp;
	struct rte_mbuf *m;

	fx->w.tx_cksum = RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM;
	receive(frame6(r));
	m = expect_frame();
	ip = ip6_of(m);
	udp = (const struct rte_udp_hdr *)(ip + 1);
	assert_int_equal(m->ol_flags, RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_UDP_CKSUM);
	assert_int_equal(m->l2_len, 14);
	assert_int_equal(m->l3_len, 40);
	assert_int_equal(udp->dgram_cksum, rte_ipv6_phdr_cksum(ip, m->ol_flags));
	rte_pktmbuf_free(m);
}

/* Its header has no checksum: a device that does those of IPv4 headers alone does none of it. */
FIXTURE_TEST(ipv6_checksums_are_ours_where_the_device_does_those_of_ipv4_headers)
{
	struct request r = hello(1);
	struct rte_udp_hdr *udp;
	struct rte_mbuf *m;

	fx->w.rx_cksum = RTE_MBUF_F_RX_IP_CKSUM_MASK;
	fx->w.tx_cksum = RTE_MBUF_F_TX_IP_CKSUM;
	m = frame6(r);
	udp = rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, HEADERS6);
	udp->dgram_cksum ^= 1;
	m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_GOOD; /* nobody asked for it */
	expect_drop6(m, C_DROP_UDP_CKSUM);
	receive(frame6(r));
	m = expect_frame();
	assert_int_equal(m->ol_flags, 0);
	assert_int_equal(rte_ipv6_udptcp_cksum(ip6_of(m), ip6_of(m) + 1), 0xffff);
	rte_pktmbuf_free(m);
}

struct solicitation {
	struct nd_neighbor_solicit ns;
	uint8_t option, words;
	uint8_t mac[6];
	uint8_t more[16];
};

static struct solicitation
solicitation(void)
{
	struct solicitation s = {
		.ns.nd_ns_hdr.icmp6_type = ND_NEIGHBOR_SOLICIT,
		.option = ND_OPT_SOURCE_LINKADDR,
		.words = 1,
		.mac = {2, 0, 0, 0, 0, 2},
		.more = {14, 2}, /* a nonce, RFC 3971 5.3.2 */
	};

	memcpy(&s.ns.nd_ns_target, fx->w.ip6.byte, 16);
	return s;
}

static struct rte_mbuf *
solicit(const struct tokd_addr *src, const struct tokd_addr *dst, uint8_t hop_limit,
	const struct solicitation *s, uint32_t n)
{
	return packet6(
		src, dst, IPPROTO_ICMPV6, hop_limit, s, n, offsetof(struct icmp6_hdr, icmp6_cksum));
}

FIXTURE_TEST(ipv6_neighbours_are_answered)
{
	static const uint32_t sizes[] = {24, 32, 48}; /* without option, with one, with two */
	static const struct tokd_addr all_nodes = {.byte = {0xff, 2, [15] = 1}};
	struct solicitation s = solicitation();
	struct nd_neighbor_advert na;
	uint8_t bytes[64];

	for (uint32_t i = 0; i < 2 * RTE_DIM(sizes); i++) {
		/* To the group, as at first, and to us, as when it makes sure. */
		receive(solicit(
			&client_ip6, i % 2 ? &fx->w.ip6 : &fx->w.solicited, 255, &s, sizes[i / 2]));
		assert_int_equal(
			next_packet6(IPPROTO_ICMPV6, &client_ip6, bytes, sizeof(bytes)), 32);
		memcpy(&na, bytes, sizeof(na));
		assert_int_equal(na.nd_na_type, ND_NEIGHBOR_ADVERT);
		assert_int_equal(
			na.nd_na_flags_reserved, ND_NA_FLAG_SOLICITED | ND_NA_FLAG_OVERRIDE);
		assert_memory_equal(&na.nd_na_target, fx->w.ip6.byte, 16);
		assert_int_equal(bytes[24], ND_OPT_TARGET_LINKADDR);
		assert_int_equal(bytes[25], 1);
		assert_memory_equal(bytes + 26, &fx->w.mac, 6);
	}
	/* One that wants our address for itself. */
	receive(solicit(&none, &fx->w.solicited, 255, &s, 24));
	next_packet6(IPPROTO_ICMPV6, &all_nodes, bytes, sizeof(bytes));
	memcpy(&na, bytes, sizeof(na));
	assert_int_equal(na.nd_na_flags_reserved, ND_NA_FLAG_OVERRIDE);
	expect_count(C_ND_REPLIES, 2 * RTE_DIM(sizes) + 1);
}

FIXTURE_TEST(ipv6_neighbours_that_are_malformed_are_dropped)
{
	struct solicitation s = solicitation();
	struct rte_mbuf *m;

	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 254, &s, 32), C_DROP_ND);
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 23), C_DROP_ND);
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 31), C_DROP_ND);
	expect_drop6(solicit(&none, &fx->w.ip6, 255, &s, 24), C_DROP_ND);
	expect_drop6(solicit(&none, &fx->w.solicited, 255, &s, 32), C_DROP_ND);
	s.words = 0;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 32), C_DROP_ND);
	s.words = 2;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 32), C_DROP_ND);
	s = solicitation();
	s.ns.nd_ns_hdr.icmp6_code = 1;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 32), C_DROP_ND);
	s = solicitation();
	s.ns.nd_ns_target.s6_addr[15] ^= 1;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 32), C_DROP_ND);
	s = solicitation();
	s.ns.nd_ns_hdr.icmp6_type = ND_ROUTER_ADVERT;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 32), C_DROP_ICMP);
	s = solicitation();
	m = solicit(&client_ip6, &fx->w.solicited, 255, &s, 32);
	*rte_pktmbuf_mtod_offset(m, uint8_t *, HEADERS6 + 10) ^= 1;
	expect_drop6(m, C_DROP_ICMP);
	m = solicit(&client_ip6, &fx->w.solicited, 255, &s, 32);
	expect_drop6(cut_frame(m, HEADERS6 + 24, 8), C_DROP_ICMP);
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 7), C_DROP_ICMP);
	/* RFC 6980: in an atomic fragment. */
	m = solicit(&client_ip6, &fx->w.ip6, 255, &s, 32);
	expect_drop6(fragment6(m, 0, 32, 7, false), C_DROP_ND);
	rte_pktmbuf_free(m);
}

FIXTURE_TEST(ipv6_echo_is_answered)
{
	uint8_t bytes[64], sent[50] = {ICMP6_ECHO_REQUEST, 0, 0, 0, 1, 2, 3, 4, 'a', 'b'};
	const uint32_t at = offsetof(struct icmp6_hdr, icmp6_cksum);

	for (uint32_t n = 8; n < sizeof(sent); n++) {
		receive(packet6(&client_ip6, &fx->w.ip6, IPPROTO_ICMPV6, 3, sent, n, at));
		assert_int_equal(
			next_packet6(IPPROTO_ICMPV6, &client_ip6, bytes, sizeof(bytes)), n);
		assert_int_equal(bytes[0], ICMP6_ECHO_REPLY);
		assert_memory_equal(bytes + 4, sent + 4, n - 4);
	}
	expect_count(C_ICMP_REPLIES, sizeof(sent) - 8);
	expect_drop6(packet6(&none, &fx->w.ip6, IPPROTO_ICMPV6, 3, sent, 20, at), C_DROP_ICMP);
	sent[1] = 1;
	expect_drop6(
		packet6(&client_ip6, &fx->w.ip6, IPPROTO_ICMPV6, 3, sent, 20, at), C_DROP_ICMP);
}

FIXTURE_TEST(ipv6_neighbours_and_echo_are_left_to_a_kernel_that_has_our_address)
{
	const struct solicitation s = solicitation();
	const uint8_t sent[20] = {ICMP6_ECHO_REQUEST};

	fx->w.kernel_answers = true;
	expect_drop6(solicit(&client_ip6, &fx->w.solicited, 255, &s, 24), C_LEFT_TO_KERNEL);
	expect_drop6(packet6(&client_ip6, &fx->w.ip6, IPPROTO_ICMPV6, 3, sent, 20,
			     offsetof(struct icmp6_hdr, icmp6_cksum)),
		C_LEFT_TO_KERNEL);
}

FIXTURE_TEST(ipv4_and_ipv6_are_left_alone_where_not_served)
{
	struct request r = hello(1);
	struct rte_mbuf *m = frame6(r);
	struct frame f;

	fx->w.ip6 = none;
	expect_drop6(m, C_DROP_IP_DST);
	m = frame6(r); /* to :: now */
	expect_drop6(m, C_DROP_IP_DST);
	fx->w.ip = 0;
	f = make_frame(r); /* to 0.0.0.0 now */
	expect_drop6(f.m, C_DROP_IP_DST);
}
