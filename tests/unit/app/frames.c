/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames in, replies and records out. */
#include <netinet/in.h>
#include <stdlib.h>

#include "fixture.h"
#include "datapath/stream/cookie.h"

#define CLIENT_IP RTE_IPV4(10, 0, 0, 2)
#define CLIENT_PORT 40000
static const struct rte_ether_addr client_mac = {{2, 0, 0, 0, 0, 2}};

uint32_t
crc32c_of(const void *p, uint32_t n)
{
	return tokd_crc32c(0, p, n);
}

struct request
data_request(uint64_t stream, uint32_t packet, uint32_t offset, const void *text, uint32_t n,
	uint16_t flags)
{
	return (struct request){
		.req = {.magic = TOKD_WIRE_MAGIC,
			.version = TOKD_WIRE_VERSION,
			.type = TOKD_DATA,
			.flags = flags | (packet == 0 ? TOKD_F_FIRST : 0),
			.epoch = EPOCH,
			.stream_id = stream,
			.packet = packet,
			.length = n,
			.offset = offset},
		.text = text,
		.n = n,
	};
}

struct request
poll_request(uint64_t stream, uint32_t ids_ack, uint32_t ids_end)
{
	struct request r = data_request(stream, 1, 0, NULL, 0, 0);

	r.req.type = TOKD_POLL;
	r.req.packet = 0;
	r.req.ids_ack = ids_ack;
	r.req.ids_end = ids_end;
	return r;
}

uint32_t
text_packets(uint32_t n, uint32_t cut)
{
	return n == 0 ? 1 : (n + cut - 1) / cut;
}

struct request
text_packet(uint64_t stream, const void *text, uint32_t n, uint32_t cut, uint16_t flags,
	uint32_t packet)
{
	uint32_t offset = packet * cut;
	bool last = packet + 1 == text_packets(n, cut);
	struct request r = data_request(stream, packet, offset, (const uint8_t *)text + offset,
		RTE_MIN(cut, n - offset), flags | (last ? TOKD_F_LAST : 0));

	if (last)
		r.req.text_crc = crc32c_of(text, n);
	return r;
}

uint32_t
send_text(uint64_t stream, const void *text, uint32_t n, uint32_t cut, uint16_t flags)
{
	uint32_t packets = text_packets(n, cut);

	for (uint32_t i = 0; i < packets; i++) {
		send_request(text_packet(stream, text, n, cut, flags, i));
		if (i % 64 == 63)
			run();
	}
	return packets;
}

struct rte_mbuf *
raw_frame(const void *bytes, uint32_t n)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fx_pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), bytes, n);
	return m;
}

struct rte_mbuf *
cut_frame(struct rte_mbuf *m, uint32_t first, uint32_t cut)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t n = rte_pktmbuf_data_len(m);
	struct rte_mbuf *head = raw_frame(bytes, RTE_MIN(first, n));

	for (uint32_t at = first; at < n; at += cut)
		assert_int_equal(
			rte_pktmbuf_chain(head, raw_frame(bytes + at, RTE_MIN(cut, n - at))), 0);
	rte_pktmbuf_free(m);
	return head;
}

void
seal_frame(struct frame *f)
{
	f->ip->hdr_checksum = 0;
	f->ip->hdr_checksum = rte_ipv4_cksum(f->ip);
	f->udp->dgram_cksum = 0;
	f->udp->dgram_cksum = rte_ipv4_udptcp_cksum(f->ip, f->udp);
}

uint64_t
cookie_of(struct request r)
{
	const struct tokd_peer peer = {
		.addr = tokd_addr_v4(rte_cpu_to_be_32(r.ip != 0 ? r.ip : CLIENT_IP)),
		.mac = client_mac,
		.port = rte_cpu_to_be_16(r.port != 0 ? r.port : CLIENT_PORT)};

	return tokd_cookie_make(&fx->w, &peer);
}

struct frame
make_frame(struct request r)
{
	uint8_t bytes[14 + 20 + 8 + sizeof(r.req) + JUMBO_TEXT] = {0};
	uint32_t payload = sizeof(r.req) + r.n;
	struct tokd_req req = r.req;
	struct frame f;

	if (fx->validated && req.cookie == 0)
		req.cookie = cookie_of(r);

	f.m = raw_frame(bytes, 14 + 20 + 8 + payload);
	f.eth = rte_pktmbuf_mtod(f.m, struct rte_ether_hdr *);
	f.ip = (struct rte_ipv4_hdr *)(f.eth + 1);
	f.udp = (struct rte_udp_hdr *)(f.ip + 1);
	f.payload = (uint8_t *)(f.udp + 1);
	f.eth->dst_addr = fx->w.mac;
	f.eth->src_addr = client_mac;
	f.eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	f.ip->version_ihl = RTE_IPV4_VHL_DEF;
	f.ip->total_length = rte_cpu_to_be_16((uint16_t)(20 + 8 + payload));
	f.ip->time_to_live = 64;
	f.ip->next_proto_id = IPPROTO_UDP;
	f.ip->src_addr = rte_cpu_to_be_32(r.ip != 0 ? r.ip : CLIENT_IP);
	f.ip->dst_addr = fx->w.ip;
	f.udp->src_port = rte_cpu_to_be_16(r.port != 0 ? r.port : CLIENT_PORT);
	f.udp->dst_port = fx->w.udp_port;
	f.udp->dgram_len = rte_cpu_to_be_16((uint16_t)(8 + payload));
	memcpy(f.payload, &req, sizeof(req));
	if (r.n > 0)
		memcpy(f.payload + sizeof(r.req), r.text, r.n);
	seal_frame(&f);
	return f;
}

void
send_request(struct request r)
{
	put(make_frame(r).m);
}

void
ask(struct request r)
{
	send_request(r);
	run();
}

void
ask_text(uint64_t stream, const void *text, uint32_t n, uint32_t cut, uint16_t flags)
{
	send_text(stream, text, n, cut, flags);
	run();
}

bool
next_reply(struct reply *r)
{
	struct rte_mbuf *m = next_frame();
	const struct rte_ether_hdr *eth;
	const struct rte_ipv4_hdr *ip;
	const struct rte_udp_hdr *udp;
	size_t each;

	if (m == NULL)
		return false;
	assert_true(rte_pktmbuf_data_len(m) >= 42 + sizeof(r->rep));
	eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	ip = (const struct rte_ipv4_hdr *)(eth + 1);
	udp = (const struct rte_udp_hdr *)(ip + 1);
	assert_memory_equal(&eth->dst_addr, &client_mac, 6);
	assert_memory_equal(&eth->src_addr, &fx->w.mac, 6);
	assert_int_equal(rte_ipv4_cksum(ip), 0);
	assert_int_equal(rte_ipv4_udptcp_cksum(ip, udp), 0xffff);
	assert_int_equal(ip->src_addr, fx->w.ip);
	assert_int_equal(udp->src_port, fx->w.udp_port);
	assert_int_equal(rte_be_to_cpu_16(ip->total_length) + 14, rte_pktmbuf_data_len(m));
	r->frame_bytes = rte_pktmbuf_data_len(m);
	r->udp_payload = rte_be_to_cpu_16(udp->dgram_len) - 8u;
	memcpy(&r->rep, udp + 1, sizeof(r->rep));
	assert_int_equal(r->rep.magic, TOKD_WIRE_MAGIC);
	assert_true(r->rep.version == TOKD_WIRE_VERSION || r->rep.reason == TOKD_R_VERSION);
	assert_int_equal(r->rep.type, TOKD_REPLY);
	assert_int_equal(r->rep.vocab, fx->w.terms->vocab[fx->vocab].checksum);
	each = r->rep.flags & (TOKD_F_DECODE | TOKD_F_GENERATE) ? 1
	       : r->rep.flags & TOKD_F_SHORT			? sizeof(uint16_t)
								: sizeof(uint32_t);
	assert_int_equal(r->udp_payload, sizeof(r->rep) + each * r->rep.count);
	assert_true(each * r->rep.count <= TOKD_WIRE_PAYLOAD);
	memset(r->ids, 0, sizeof(r->ids));
	for (uint32_t i = 0; i < r->rep.count; i++)
		memcpy(&r->ids[i], (const uint8_t *)(udp + 1) + sizeof(r->rep) + each * i, each);
	rte_pktmbuf_free(m);
	return true;
}

struct reply
expect_reply(void)
{
	struct reply r;

	assert_true(next_reply(&r));
	expect_nothing();
	return r;
}

void
expect_nothing(void)
{
	assert_int_equal(drain(), 0);
}

void
expect_fail(enum tokd_reason reason)
{
	struct reply r = expect_reply();

	assert_int_equal(r.rep.flags, TOKD_F_FAIL);
	assert_int_equal(r.rep.reason, reason);
	assert_int_equal(r.rep.count, 0);
}

void
expect_refusal(struct request r, enum tokd_reason reason)
{
	ask(r);
	expect_fail(reason);
}

void
expect_count(enum tokd_counter c, uint64_t n)
{
	if (fx->w.counter[c] != n)
		print_error("%s: %lu\n", tokd_counter_info[c].name, fx->w.counter[c]);
	assert_int_equal(fx->w.counter[c], n);
}

void
gather(uint64_t stream, struct text_ids *got)
{
	const struct tokd_ring *r = &fx->w.ring;
	size_t each;

	assert_int_equal(r->hdr->head, r->head);
	assert_int_equal(r->hdr->tail, r->tail);
	assert_true(fx->read_pos >= r->tail);
	while (fx->read_pos < r->head) {
		struct tokd_rec *rec = tokd_ring_at(r, fx->read_pos);
		uint32_t n_keys;

		assert_int_equal(rec->bytes % TOKD_RING_ALIGN, 0);
		assert_true(rec->bytes >= TOKD_RING_ALIGN);
		assert_true((fx->read_pos & r->mask) + rec->bytes <= r->mask + 1);
		fx->read_pos += rec->bytes;
		if (rec->kind == TOKD_REC_PAD) {
			assert_int_equal(fx->read_pos & r->mask, 0);
			continue;
		}
		if (rec->kind == TOKD_REC_BYTES)
			continue;
		assert_true(rec->kind == TOKD_REC_TOKENS || rec->kind == TOKD_REC_TEXT);
		n_keys = r->block_size == 0 || rec->kind == TOKD_REC_TEXT
				 ? 0
				 : tokd_rec_keys(rec->first, rec->count, r->block_size);
		assert_int_equal(!(rec->flags & TOKD_REC_KEYS), n_keys == 0);
		assert_int_equal(rec->bytes, tokd_rec_bytes(tokd_rec_words(rec->kind, rec->count)) +
						     tokd_rec_keys_bytes(r, n_keys));
		assert_true(rec->t_publish >= rec->t_rx);
		if (rec->stream_id != stream)
			continue;
		if (rec->kind == TOKD_REC_TEXT && got->last_flags == 1) {
			assert_int_equal(rec->serial, got->serial);
			assert_int_equal(rec->flags, 0);
			assert_int_equal(rec->first, got->answer);
			got->answer += rec->count;
			got->answers++;
			continue;
		}
		if (got->records++ == 0)
			got->serial = rec->serial;
		assert_int_equal(rec->serial, got->serial);
		assert_int_equal(!(rec->flags & TOKD_REC_FIRST), got->records != 1);
		assert_int_equal(got->last_flags + got->aborts, 0);
		assert_true(rec->count > 0 || rec->flags != 0);
		assert_true(got->n_keys + n_keys <= RTE_DIM(got->id));
		memcpy(&got->key[got->n_keys * r->key_bytes],
			RTE_PTR_ADD(rec, tokd_rec_bytes(rec->count)), n_keys * r->key_bytes);
		got->n_keys += n_keys;
		assert_int_equal(rec->first, got->n);
		assert_true(rec->epoch == EPOCH || rec->epoch == 0); /* 0: the plain-text port */
		assert_int_equal(rec->vocab, fx->w.terms->vocab[fx->vocab].checksum);
		got->first_flags += !!(rec->flags & TOKD_REC_FIRST);
		got->last_flags += !!(rec->flags & TOKD_REC_LAST);
		got->aborts += !!(rec->flags & TOKD_REC_ABORT);
		got->reason = rec->reason;
		got->text_end = rec->text_end;
		assert_true(got->n + rec->count <= RTE_DIM(got->id));
		each = rec->kind == TOKD_REC_TEXT ? 1 : sizeof(uint32_t);
		for (uint32_t i = 0; i < rec->count; i++) {
			got->id[got->n + i] = 0;
			memcpy(&got->id[got->n + i], (uint8_t *)(rec + 1) + each * i, each);
		}
		got->n += rec->count;
	}
}

void
expect_keys(const struct text_ids *got)
{
	const struct tokb_options o = tokd_block_options(&fx->opt, fx->vocab);
	uint8_t *want;
	struct tokb *k;

	if (fx->opt.block_keys == 0)
		return;
	want = calloc(got->n / o.block_size + 1, tokb_key_bytes(o.scheme));
	k = tokb_create(&o, NULL);
	assert_int_equal(got->n_keys, tokb_feed(k, got->id, got->n, want));
	assert_memory_equal(got->key, want, got->n_keys * tokb_key_bytes(o.scheme));
	tokb_free(k);
	free(want);
}

void
expect_text(uint64_t stream, const void *text, uint32_t n)
{
	struct text_ids *got = calloc(1, sizeof(*got));
	uint32_t room = 3 * n + 16, *want = calloc(room, 4), n_want;

	n_want = whole(text, n, want, room);
	gather(stream, got);
	assert_int_equal(got->first_flags, 1);
	assert_int_equal(got->last_flags, 1);
	assert_int_equal(got->aborts, 0);
	assert_int_equal(got->text_end, n);
	assert_int_equal(got->n, n_want);
	assert_memory_equal(got->id, want, 4 * n_want);
	expect_keys(got);
	free(want);
	free(got);
}
