/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages below the stream: what each lets through, drops, or answers. */
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include "frames6.h"

static struct frame
good_frame(void)
{

	return make_frame(data_request(1, 0, 0, "hello", 5, 0));
}

static void
expect_drop(struct rte_mbuf *m, enum tokd_counter reason)
{
	uint64_t before = fx->w.counter[reason];

	receive(m);
	expect_nothing();
	expect_count(reason, before + 1);
	expect_count(C_STREAMS_OPENED, 0);
}

FIXTURE_TEST(ether_drops_what_is_not_for_us)
{
	struct frame f = good_frame();

	f.eth->dst_addr.addr_bytes[5] ^= 1;
	expect_drop(f.m, C_DROP_ETHER);
	f = good_frame();
	f.eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_LLDP);
	expect_drop(f.m, C_DROP_ETHER);
	f = good_frame();
	f.eth->src_addr.addr_bytes[0] |= 1;
	expect_drop(f.m, C_DROP_ETHER);
	f = good_frame();
	memset(&f.eth->dst_addr, 0xff, 6); /* IPv4 broadcast */
	expect_drop(f.m, C_DROP_ETHER);
	expect_drop(raw_frame("thirteen byte", 13), C_DROP_ETHER);
}

static struct rte_mbuf *
arp_request(struct rte_arp_hdr *arp)
{
	struct {
		struct rte_ether_hdr eth;
		struct rte_arp_hdr arp;
	} __attribute__((packed, aligned(2))) bytes = {0};

	memset(&bytes.eth.dst_addr, 0xff, 6);
	bytes.eth.src_addr = (struct rte_ether_addr){{2, 0, 0, 0, 0, 2}};
	bytes.eth.ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP);
	bytes.arp = *arp;
	return raw_frame(&bytes, sizeof(bytes));
}

static struct rte_arp_hdr
good_arp(void)
{
	return (struct rte_arp_hdr){.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = 6,
		.arp_plen = 4,
		.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
		.arp_data = {.arp_sha = {{2, 0, 0, 0, 0, 2}},
			.arp_sip = RTE_BE32(RTE_IPV4(10, 0, 0, 2)),
			.arp_tip = fx->w.ip}};
}

FIXTURE_TEST(arp_answers_for_our_address)
{
	struct rte_arp_hdr asked = good_arp(), *arp;
	struct rte_ether_hdr *eth;
	struct rte_mbuf *m;

	receive(arp_request(&asked));
	m = expect_frame();
	eth = rte_pktmbuf_mtod(m, struct rte_ether_hdr *);
	arp = (struct rte_arp_hdr *)(eth + 1);
	assert_memory_equal(&eth->dst_addr, &asked.arp_data.arp_sha, 6);
	assert_memory_equal(&eth->src_addr, &fx->w.mac, 6);
	assert_int_equal(arp->arp_opcode, RTE_BE16(RTE_ARP_OP_REPLY));
	assert_memory_equal(&arp->arp_data.arp_sha, &fx->w.mac, 6);
	assert_int_equal(arp->arp_data.arp_sip, fx->w.ip);
	assert_memory_equal(&arp->arp_data.arp_tha, &asked.arp_data.arp_sha, 6);
	assert_int_equal(arp->arp_data.arp_tip, asked.arp_data.arp_sip);
	rte_pktmbuf_free(m);
	expect_count(C_ARP_REPLIES, 1);
	expect_count(C_TX_PACKETS, 1);
}

FIXTURE_TEST(arp_drops_what_is_malformed_or_not_ours)
{
	struct rte_arp_hdr arp = good_arp();
	struct rte_mbuf *m = arp_request(&arp);

	rte_pktmbuf_trim(m, 1);
	expect_drop(m, C_DROP_ARP);
	arp.arp_data.arp_tip ^= 1;
	expect_drop(arp_request(&arp), C_DROP_ARP);
	arp = good_arp();
	arp.arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
	expect_drop(arp_request(&arp), C_DROP_ARP);
	arp = good_arp();
	arp.arp_hlen = 8;
	expect_drop(arp_request(&arp), C_DROP_ARP);
}

FIXTURE_TEST(ipv4_drops_malformed_headers)
{
	struct frame f = good_frame();

	f.ip->version_ihl = 0x65;
	expect_drop(f.m, C_DROP_IP_HEADER);
	f = good_frame();
	f.ip->version_ihl = 0x44;
	expect_drop(f.m, C_DROP_IP_HEADER);
	f = good_frame();
	f.ip->total_length = rte_cpu_to_be_16(rte_be_to_cpu_16(f.ip->total_length) + 1);
	seal_frame(&f);
	expect_drop(f.m, C_DROP_IP_HEADER);
	f = good_frame();
	f.ip->total_length = RTE_BE16(19);
	expect_drop(f.m, C_DROP_IP_HEADER);
	f = good_frame();
	rte_pktmbuf_trim(f.m, rte_pktmbuf_data_len(f.m) - 14 - 19);
	expect_drop(f.m, C_DROP_IP_HEADER);
	f = good_frame();
	f.ip->version_ihl = 0x4f; /* a header longer than the packet */
	f.ip->total_length = RTE_BE16(40);
	expect_drop(f.m, C_DROP_IP_HEADER);
}

FIXTURE_TEST(ipv4_drops_sources_that_are_no_host)
{
	static const uint32_t bad[] = {0, RTE_IPV4(127, 0, 0, 1), RTE_IPV4(224, 0, 0, 1),
		0xffffffff, RTE_IPV4(10, 0, 0, 1)};

	for (uint32_t i = 0; i < RTE_DIM(bad); i++) {
		struct frame f = good_frame();

		f.ip->src_addr = rte_cpu_to_be_32(bad[i]);
		seal_frame(&f);
		expect_drop(f.m, C_DROP_IP_HEADER);
	}
}

FIXTURE_TEST(ipv4_drops_wrong_checksum)
{
	struct frame f = good_frame();

	f.ip->hdr_checksum ^= 1;
	expect_drop(f.m, C_DROP_IP_CKSUM);
	fx->w.rx_cksum = RTE_MBUF_F_RX_IP_CKSUM_MASK;
	f = good_frame();
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_BAD;
	expect_drop(f.m, C_DROP_IP_CKSUM);
	f = good_frame();
	f.m->ol_flags = 0; /* the driver could not tell */
	f.ip->hdr_checksum ^= 1;
	expect_drop(f.m, C_DROP_IP_CKSUM);
}

FIXTURE_TEST(ipv4_drops_other_hosts_other_protocols)
{
	struct frame f = good_frame();

	f.ip->dst_addr ^= RTE_BE32(2);
	seal_frame(&f);
	expect_drop(f.m, C_DROP_IP_DST);
	f = good_frame();
	f.ip->next_proto_id = IPPROTO_TCP;
	seal_frame(&f);
	expect_drop(f.m, C_DROP_IP_PROTO);
}

FIXTURE_TEST(ipv4_options_and_frame_padding_are_skipped)
{
	struct request r = data_request(1, 0, 0, "hello", 5, TOKD_F_LAST);
	const uint32_t before = 14 + 20, after = 8 + sizeof(r.req) + 5;
	uint8_t bytes[200];
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(bytes + 14);
	struct frame f;

	r.req.text_crc = crc32c_of("hello", 5);
	f = make_frame(r);
	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes, f.eth, before);
	memset(bytes + before, 0, 4); /* a word of options: end of option list */
	memcpy(bytes + before + 4, f.udp, after);
	rte_pktmbuf_free(f.m);
	ip->version_ihl = 0x46;
	ip->total_length = rte_cpu_to_be_16((uint16_t)(24 + after));
	ip->hdr_checksum = 0;
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	receive(raw_frame(bytes, before + 4 + after + 7));
	assert_int_equal(expect_reply().rep.flags, TOKD_F_DONE);
	expect_text(1, "hello", 5);
}

static struct frame
icmp_frame(uint32_t n)
{
	struct frame f = good_frame();
	struct rte_icmp_hdr *icmp = (struct rte_icmp_hdr *)f.udp;

	rte_pktmbuf_trim(f.m, rte_pktmbuf_data_len(f.m) - 34 - (uint16_t)n);
	f.ip->next_proto_id = IPPROTO_ICMP;
	f.ip->total_length = rte_cpu_to_be_16((uint16_t)(20 + n));
	f.ip->hdr_checksum = 0;
	f.ip->hdr_checksum = rte_ipv4_cksum(f.ip);
	if (n >= sizeof(*icmp)) {
		*icmp = (struct rte_icmp_hdr){
			.icmp_type = ICMP_ECHO, .icmp_ident = 7, .icmp_seq_nb = 9};
		icmp->icmp_cksum = (uint16_t)~rte_raw_cksum(icmp, n);
	}
	return f;
}

FIXTURE_TEST(icmp_echo_is_answered)
{
	for (uint32_t n = 8; n < 50; n++) { /* odd and even lengths */
		struct frame f = icmp_frame(n);
		struct rte_icmp_hdr *icmp;
		struct rte_mbuf *m;

		receive(f.m);
		m = expect_frame();
		assert_int_equal(rte_pktmbuf_data_len(m), 34 + n);
		f.ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, 14);
		icmp = (struct rte_icmp_hdr *)(f.ip + 1);
		assert_int_equal(icmp->icmp_type, ICMP_ECHOREPLY);
		assert_int_equal(icmp->icmp_ident, 7);
		assert_int_equal(icmp->icmp_seq_nb, 9);
		assert_int_equal(rte_raw_cksum(icmp, n), 0xffff);
		assert_int_equal(rte_ipv4_cksum(f.ip), 0);
		assert_int_equal(f.ip->src_addr, fx->w.ip);
		assert_int_equal(f.ip->dst_addr, RTE_BE32(RTE_IPV4(10, 0, 0, 2)));
		rte_pktmbuf_free(m);
	}
	expect_count(C_ICMP_REPLIES, 42);
}

FIXTURE_TEST(arp_and_echo_are_left_to_a_kernel_that_has_our_address)
{
	struct rte_arp_hdr asked = good_arp();

	fx->w.kernel_answers = true;
	put(arp_request(&asked));
	receive(icmp_frame(8).m);
	expect_count(C_LEFT_TO_KERNEL, 2);
	expect_count(C_TX_PACKETS, 0);
}

FIXTURE_TEST(icmp_drops_all_else)
{
	struct frame f = icmp_frame(7);

	expect_drop(f.m, C_DROP_ICMP);
	f = icmp_frame(24); /* a source route to a host of its choice */
	memmove((uint8_t *)f.udp + 4, f.udp, 20);
	f.ip->version_ihl = 0x46;
	memcpy(f.udp, (const uint8_t[]){131, 4, 4, 0}, 4);
	((struct rte_icmp_hdr *)((uint8_t *)f.udp + 4))->icmp_cksum = 0;
	((struct rte_icmp_hdr *)((uint8_t *)f.udp + 4))->icmp_cksum =
		(uint16_t)~rte_raw_cksum((uint8_t *)f.udp + 4, 20);
	f.ip->hdr_checksum = 0;
	f.ip->hdr_checksum = rte_ipv4_cksum(f.ip);
	expect_drop(f.m, C_DROP_ICMP);
	f = icmp_frame(20);
	((struct rte_icmp_hdr *)f.udp)->icmp_cksum ^= 1;
	expect_drop(f.m, C_DROP_ICMP);
	f = icmp_frame(20);
	((struct rte_icmp_hdr *)f.udp)->icmp_type = ICMP_ECHOREPLY;
	((struct rte_icmp_hdr *)f.udp)->icmp_cksum = 0;
	((struct rte_icmp_hdr *)f.udp)->icmp_cksum = (uint16_t)~rte_raw_cksum(f.udp, 20);
	expect_drop(f.m, C_DROP_ICMP);
}

static uint32_t given_back;

static void
give_back(void *buffer, void *opaque)
{
	given_back++;
}

/* The frame lies in memory of the driver, as with mlx5's mprq_en. */
static struct rte_mbuf *
attached(struct rte_mbuf *m)
{
	static struct rte_mbuf_ext_shared_info info = {.free_cb = give_back};
	static uint8_t buffer[2048];
	const uint16_t n = rte_pktmbuf_data_len(m);

	memcpy(buffer + RTE_PKTMBUF_HEADROOM, rte_pktmbuf_mtod(m, const void *), n);
	rte_mbuf_ext_refcnt_set(&info, 1);
	rte_pktmbuf_attach_extbuf(m, buffer, (rte_iova_t)buffer, sizeof(buffer), &info);
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->data_len = n;
	return m;
}

FIXTURE_TEST(answers_in_memory_of_the_driver_give_it_back)
{
	static const uint8_t echo6[20] = {128};
	struct rte_arp_hdr arp = good_arp();
	struct request r = data_request(1, 0, 0, "hello", 5, 0);
	struct rte_mbuf *m[4];

	r.req.version++;
	m[0] = arp_request(&arp);
	m[1] = icmp_frame(8).m;
	m[2] = packet6(&client_ip6, &fx->w.ip6, IPPROTO_ICMPV6, 64, echo6, sizeof(echo6), 2);
	m[3] = make_frame(r).m;
	for (uint32_t i = 0; i < RTE_DIM(m); i++) {
		const void *own = m[i]->buf_addr;

		given_back = 0;
		receive(attached(m[i]));
		assert_int_equal(drain(), 1);
		assert_int_equal(given_back, 1);
		assert_ptr_equal(m[i]->buf_addr, own);
	}
}

FIXTURE_TEST(udp_drops_wrong_length_port_checksum)
{
	struct frame f = good_frame();

	f.udp->dgram_len = RTE_BE16(7);
	seal_frame(&f);
	expect_drop(f.m, C_DROP_UDP_LENGTH);
	f = good_frame();
	f.udp->dgram_len = rte_cpu_to_be_16(rte_be_to_cpu_16(f.udp->dgram_len) + 1);
	expect_drop(f.m, C_DROP_UDP_LENGTH);
	f = icmp_frame(7); /* not even a UDP header */
	f.ip->next_proto_id = IPPROTO_UDP;
	f.ip->hdr_checksum = 0;
	f.ip->hdr_checksum = rte_ipv4_cksum(f.ip);
	expect_drop(f.m, C_DROP_UDP_LENGTH);
	f = good_frame();
	f.udp->dst_port ^= 1;
	seal_frame(&f);
	expect_drop(f.m, C_DROP_UDP_PORT);
	f = good_frame();
	f.udp->src_port = 0;
	seal_frame(&f);
	expect_drop(f.m, C_DROP_UDP_PORT);
	f = good_frame();
	f.payload[70 - 6] ^= 1;
	expect_drop(f.m, C_DROP_UDP_CKSUM);
	fx->w.rx_cksum = RTE_MBUF_F_RX_L4_CKSUM_MASK;
	f = good_frame();
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_BAD;
	expect_drop(f.m, C_DROP_UDP_CKSUM);
}

FIXTURE_TEST(udp_without_checksum_and_offloaded_checksums_pass)
{
	struct frame f = good_frame();

	f.udp->dgram_cksum = 0;
	receive(f.m);
	expect_count(C_STREAMS_OPENED, 1);
	fx->w.rx_cksum = RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK;
	f = good_frame();
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	f.udp->dgram_cksum = 0x1234; /* the driver has looked, we do not again */
	receive(f.m);
	expect_count(C_RX_DUPLICATE, 1);
	f = good_frame(); /* it never left the machine, so nobody has computed them */
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_NONE | RTE_MBUF_F_RX_L4_CKSUM_NONE;
	f.ip->hdr_checksum ^= 1;
	f.udp->dgram_cksum ^= 1;
	receive(f.m);
	expect_count(C_RX_DUPLICATE, 2);
}

FIXTURE_TEST(checksums_that_the_device_does_not_verify_are_verified_here)
{
	struct frame f = good_frame();

	fx->w.rx_cksum = RTE_MBUF_F_RX_L4_CKSUM_MASK; /* as with net_virtio */
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	f.ip->hdr_checksum ^= 1;
	expect_drop(f.m, C_DROP_IP_CKSUM);
	fx->w.rx_cksum = RTE_MBUF_F_RX_IP_CKSUM_MASK;
	f = good_frame();
	f.m->ol_flags = RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	f.udp->dgram_cksum ^= 1;
	expect_drop(f.m, C_DROP_UDP_CKSUM);
	fx->w.rx_cksum = RTE_MBUF_F_RX_L4_CKSUM_MASK;
	f = good_frame();
	f.m->ol_flags = RTE_MBUF_F_RX_L4_CKSUM_NONE;
	f.udp->dgram_cksum ^= 1;
	receive(f.m);
	expect_count(C_STREAMS_OPENED, 1);
}

FIXTURE_TEST(tx_offload_leaves_checksums_to_the_driver)
{
	static const uint64_t computes[] = {RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_UDP_CKSUM,
		RTE_MBUF_F_TX_IP_CKSUM, RTE_MBUF_F_TX_UDP_CKSUM};

	for (uint32_t i = 0; i < RTE_DIM(computes); i++) {
		const struct rte_ipv4_hdr *ip;
		const struct rte_udp_hdr *udp;
		struct rte_mbuf *m;

		fx->w.tx_cksum = computes[i];
		ask(poll_request(5, 0, 0));
		m = expect_frame();
		ip = rte_pktmbuf_mtod_offset(m, const struct rte_ipv4_hdr *, 14);
		udp = (const struct rte_udp_hdr *)(ip + 1);
		assert_int_equal(m->ol_flags, computes[i] | RTE_MBUF_F_TX_IPV4);
		assert_int_equal(m->l2_len, 14);
		assert_int_equal(m->l3_len, 20);
		if (computes[i] & RTE_MBUF_F_TX_IP_CKSUM)
			assert_int_equal(ip->hdr_checksum, 0);
		else
			assert_int_equal(rte_ipv4_cksum(ip), 0);
		if (computes[i] & RTE_MBUF_F_TX_UDP_CKSUM)
			assert_int_equal(udp->dgram_cksum, rte_ipv4_phdr_cksum(ip, m->ol_flags));
		else
			assert_int_equal(rte_ipv4_udptcp_cksum(ip, udp), 0xffff);
		rte_pktmbuf_free(m);
	}
}

FIXTURE_TEST(tx_that_is_full_drops_and_counts)
{
	struct rte_arp_hdr arp = good_arp();
	void *nothing;

	/* Fill the ring behind the port with what is no frame. */
	while (rte_ring_free_count(fx_tx) > 3)
		assert_int_equal(rte_ring_enqueue(fx_tx, NULL), 0);
	for (uint32_t i = 0; i < 10; i++)
		put(arp_request(&arp));
	run();
	expect_count(C_TX_PACKETS, 3);
	expect_count(C_TX_FULL, 7);
	expect_count(C_TX_BYTES, 3 * 42);
	while (rte_ring_count(fx_tx) > 3)
		rte_ring_dequeue(fx_tx, &nothing);
	assert_int_equal(drain(), 3);
}
