/* SPDX-License-Identifier: BSD-3-Clause */
/* --allow: who is served, and what is dropped before anything is done with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>

#include "frames6.h"
#include "control/net_allow_open.h"
#include "options/allow.h"

#define IN RTE_IPV4(10, 1, 2, 3)
#define OUT RTE_IPV4(10, 2, 0, 1)

static struct tokd_allow allow;

static void
allow_only(const char *text)
{
	tokd_allow_close(&allow);
	assert_int_equal(tokd_allow_open(&allow, text, SOCKET_ID_ANY), 0);
	fx->w.allow = &allow;
}

static struct request
hello_from(uint64_t stream, uint32_t ip)
{
	struct request r = data_request(stream, 0, 0, "hello", 5, TOKD_F_LAST);

	r.req.text_crc = crc32c_of("hello", 5);
	r.ip = ip;
	return r;
}

FIXTURE_TEST(allow_serves_those_on_the_list_in_every_place_of_a_burst)
{
	uint64_t bytes;

	allow_only("10.1.0.0/16,192.0.2.7");
	for (uint64_t i = 0; i < 8; i++) {
		const struct request r = hello_from(i, i % 2 == 0 ? IN
						       : i == 7	  ? RTE_IPV4(192u, 0, 2, 7)
								  : OUT);

		put(make_frame(r).m);
	}
	run();
	expect_count(C_DROP_SOURCE, 3);
	expect_count(C_RX_PACKETS, 8);
	expect_count(C_STREAMS_DONE, 5);
	bytes = fx->w.counter[C_RX_BYTES];
	assert_true(bytes > 0 && bytes % 8 == 0); /* all of one length: none is left out */
	assert_int_equal(drain(), 5);
}

FIXTURE_TEST(allow_looks_behind_a_vlan_tag)
{
	const uint32_t from[] = {OUT, IN};

	allow_only("10.1.0.0/16");
	fx->w.vlan = 100;
	for (uint64_t i = 0; i < 2; i++) {
		const struct request r = hello_from(i, from[i]);
		struct rte_mbuf *m = make_frame(r).m;

		m->vlan_tci = 100;
		assert_int_equal(rte_vlan_insert(&m), 0);
		m->vlan_tci = 0;
		put(m);
	}
	run();
	expect_count(C_DROP_SOURCE, 1);
	expect_count(C_STREAMS_DONE, 1);
	drain();
}

FIXTURE_TEST(allow_of_one_family_refuses_the_other)
{
	struct request r = hello_from(1, 0);

	allow_only("10.0.0.0/8");
	receive(frame6(r));
	expect_count(C_DROP_SOURCE, 1);
	allow_only("2001:db8::/32");
	receive(make_frame(r).m);
	expect_count(C_DROP_SOURCE, 2);
	expect_nothing();
}

FIXTURE_TEST(allow_of_ipv6_passes_neighbours_who_ask_for_our_address)
{
	static const struct tokd_addr none;
	const struct tokd_addr router = {.byte = {0xfe, 0x80, [15] = 9}};
	const uint8_t bytes[24] = {135}; /* a solicitation, malformed: it came to net_icmp6.c */
	struct request r = hello_from(1, 0);

	allow_only("fd00::/64");
	put(packet6(&router, &fx->w.ip6, IPPROTO_ICMPV6, 255, bytes, sizeof(bytes), 2));
	receive(packet6(&none, &fx->w.ip6, IPPROTO_ICMPV6, 255, bytes, sizeof(bytes), 2));
	expect_count(C_DROP_SOURCE, 0);
	put(packet6(&router, &fx->w.ip6, IPPROTO_UDP, 64, bytes, sizeof(bytes), 6));
	receive(frame6(r));
	expect_count(C_DROP_SOURCE, 2);
	expect_nothing();
}

FIXTURE_TEST(allow_leaves_what_has_no_ip_header_to_its_stages)
{
	const uint8_t zeros[60] = {0};
	struct rte_mbuf *m = make_frame(hello_from(1, OUT)).m;

	allow_only("10.1.0.0/16");
	rte_pktmbuf_trim(m, (uint16_t)(rte_pktmbuf_data_len(m) - 30));
	put(m);
	put(raw_frame(zeros, 10));
	receive(raw_frame(zeros, sizeof(zeros)));
	expect_count(C_DROP_SOURCE, 0);
	expect_count(C_DROP_IP_HEADER, 1);
	expect_count(C_DROP_ETHER, 2);
}

static void
expect_refused(const char *text, const char *why)
{
	struct tokd_prefix *all;
	struct opt_error err = {""};
	uint32_t n;

	assert_false(tokd_allow_read(text, &all, &n, &err));
	assert_null(all);
	assert_non_null(strstr(err.text, why));
}

TEST(allow_reads_prefixes_and_files)
{
	char path[] = "/tmp/tokd-allow-XXXXXX";
	FILE *f = fdopen(mkstemp(path), "w");
	char text[64], why[96];
	struct tokd_prefix *all;
	struct opt_error err = {""};
	uint32_t n;

	fputs("# the cluster\n10.1.0.0/16\n\n\t2001:db8::/33  # and this\n", f);
	fflush(f);
	snprintf(text, sizeof(text), "192.0.2.1,%s", path);
	assert_true(tokd_allow_read(text, &all, &n, &err));
	assert_int_equal(n, 3);
	assert_false(all[0].v6);
	assert_int_equal(all[0].bits, 32);
	assert_int_equal(all[0].word[0], RTE_IPV4(192u, 0, 2, 1));
	assert_int_equal(all[1].bits, 16);
	assert_true(all[2].v6);
	assert_int_equal(all[2].bits, 33);
	assert_int_equal(all[2].word[0], 0x20010db8);
	free(all);

	fputs("10.1.0.1/16\n", f);
	fclose(f);
	snprintf(why, sizeof(why), "%s line 5: 10.1.0.1/16: the address has bits beyond", path);
	expect_refused(path, why);
	unlink(path);
	expect_refused(path, "No such file");
	expect_refused("10.0.0.0/33", "neither an address nor a prefix");
	expect_refused("2001:db8::1/64", "bits beyond the prefix");
	expect_refused("1.2.3", "neither");
	expect_refused("10.0.0.1,,10.0.0.2", "neither");
}
