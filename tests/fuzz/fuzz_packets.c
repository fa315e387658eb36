/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames into the data plane. An input is a list of steps: a frame of each kind the appliance
 * speaks, with lengths and checksums made right unless the input says otherwise, a frame of bytes
 * as they stand, readers that come, lie and go, time that passes, a GPU that continues texts. The
 * ids of every text that comes through whole are compared with those of the same text encoded at
 * once.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_arp.h>
#include <rte_icmp.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include <crc32c.h>
#include "datapath/stream/cookie.h"
#include "fuzz.h"
#include "gpu.h"
#include "plane.h"

#define STEPS_MAX 40
#define TEXTS 4
#define OWN_TEXT_ID 1000 /* stream ids from here on bring text of the input */
#define OWN_TEXT_MAX 300
#define EPOCH 7
#define FIRST_PORT 40000 /* of clients */

static const struct rte_ether_addr client_mac = {{2, 0, 0, 0, 0, 2}};

enum how {
	HOW_IPV6 = 1 << 0,
	HOW_NO_CKSUM = 1 << 1, /* left at 0: UDP over IPv4 allows it */
	HOW_CUT = 1 << 2,      /* several segments */
	HOW_SPOIL = 1 << 3,    /* one byte is changed before the checksums are made */
	HOW_FRAGMENT = 1 << 4,
	HOW_OTHER_VLAN = 1 << 5,
	HOW_POLL = 1 << 6,
	HOW_OWN_TEXT = 1 << 7,
};

struct frame {
	uint8_t bytes[PLANE_FRAME_MAX];
	uint32_t n;
	uint32_t l3, l4; /* where those headers begin */
	bool v6;
	uint8_t proto;
};

/* Texts that streams send, and the CRC32C of each of their beginnings. */
static uint8_t text[TEXTS][PLANE_MAX_TEXT];
static uint32_t crc[TEXTS][PLANE_MAX_TEXT + 1];
/* A frame with bytes of the input's choice may carry any text under any id. */
static bool texts_known;

static void
make_texts(void)
{
	static const char *const words[] = {"hello", " world", " the", "ing", " ", "  ", "\n", "a",
		"b", " token", "1234", "'s", "\xc3\xa9", "\xe4\xb8\xad\xe6\x96\x87", "!?", "lo"};
	uint32_t seed = 1;

	for (uint32_t t = 0; t < TEXTS; t++) {
		for (uint32_t i = 0; i < PLANE_MAX_TEXT;) {
			const char *p;

			seed = seed * 1664525 + 1013904223;
			p = words[seed >> 28];
			if (t == 0) /* words */
				while (*p != '\0' && i < PLANE_MAX_TEXT)
					text[t][i++] = (uint8_t)*p++;
			else if (t == 1) /* bytes, mostly no UTF-8 */
				text[t][i++] = (uint8_t)(seed >> 24);
			else if (t == 2) /* letters that merge, without an end */
				text[t][i++] = (uint8_t) "helo"[seed >> 30];
			else /* characters of two bytes */
				for (uint32_t k = 0; k < 2; k++)
					text[t][i++] = "\xc3\xa9"[k];
		}
		for (uint32_t i = 0; i < PLANE_MAX_TEXT; i++)
			crc[t][i + 1] = tokd_crc32c(crc[t][i], &text[t][i], 1);
	}
}

static void
check_whole(const struct plane *p, const struct tokd_rec *rec, const uint32_t *ids)
{
	static uint32_t want[3 * PLANE_MAX_TEXT];
	const struct tok_vocab *v =
		p->w.terms->vocab[rec->vocab == p->w.terms->vocab[0].checksum ? 0 : 1].tok;
	const uint32_t n = rec->first + rec->count;
	struct tok_result r;

	if (!texts_known || rec->stream_id >= OWN_TEXT_ID || rec->epoch != EPOCH)
		return; /* the plain-text port has no epoch */
	r = tok_encode(
		v, NULL, text[rec->stream_id % TEXTS], rec->text_end, 0, want, RTE_DIM(want));
	MUST(r.status == TOK_OK && r.produced == n);
	MUST(memcmp(want, ids, n * sizeof(*ids)) == 0);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	planes_start();
	make_texts();
	for (uint32_t i = 0; i < 2; i++)
		plane_get(i)->whole = check_whole;
	return 0;
}

/* ---- a frame from its headers ---- */

static void *
grow(struct frame *f, uint32_t bytes)
{
	void *at = f->bytes + f->n;

	MUST(f->n + bytes <= sizeof(f->bytes));
	memset(at, 0, bytes);
	f->n += bytes;
	return at;
}

static void
begin_ether(struct frame *f, const struct plane *p, uint8_t how, uint16_t type)
{
	struct rte_ether_hdr *eth;
	uint16_t vlan = p->w.vlan;

	f->n = 0;
	f->v6 = how & HOW_IPV6;
	eth = grow(f, sizeof(*eth));
	eth->dst_addr = plane_mac;
	eth->src_addr = client_mac;
	eth->ether_type = rte_cpu_to_be_16(type);
	if (how & HOW_OTHER_VLAN)
		vlan = vlan == 0 ? PLANE_VLAN : 0;
	if (vlan != 0) {
		struct rte_vlan_hdr *tag = grow(f, sizeof(*tag));

		eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_VLAN);
		tag->vlan_tci = rte_cpu_to_be_16(vlan);
		tag->eth_proto = rte_cpu_to_be_16(type);
	}
	f->l3 = f->n;
}

static void
begin_ip(struct frame *f, const struct plane *p, uint8_t how, uint8_t proto, uint8_t source)
{
	begin_ether(f, p, how, how & HOW_IPV6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4);
	f->proto = proto;
	if (f->v6) {
		struct rte_ipv6_hdr *ip = grow(f, sizeof(*ip));

		ip->vtc_flow = RTE_BE32(0x60000000);
		ip->proto = proto;
		ip->hop_limits = 255;
		memcpy(&ip->dst_addr, plane_ip6.byte, sizeof(ip->dst_addr));
		memcpy(&ip->src_addr, plane_ip6.byte, sizeof(ip->src_addr));
		((uint8_t *)&ip->src_addr)[15] = (uint8_t)(2 + source);
	} else {
		struct rte_ipv4_hdr *ip = grow(f, sizeof(*ip));

		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->time_to_live = 64;
		ip->next_proto_id = proto;
		ip->dst_addr = RTE_BE32(PLANE_IP);
		ip->src_addr = rte_cpu_to_be_32(PLANE_IP + 1 + source);
	}
	f->l4 = f->n;
}

static void
set_lengths(struct frame *f)
{
	if (f->v6)
		((struct rte_ipv6_hdr *)(f->bytes + f->l3))->payload_len =
			rte_cpu_to_be_16((uint16_t)(f->n - f->l4));
	else
		((struct rte_ipv4_hdr *)(f->bytes + f->l3))->total_length =
			rte_cpu_to_be_16((uint16_t)(f->n - f->l3));
	if (f->proto == IPPROTO_UDP)
		((struct rte_udp_hdr *)(f->bytes + f->l4))->dgram_len =
			rte_cpu_to_be_16((uint16_t)(f->n - f->l4));
}

/* Over what the frame holds, whatever its length fields have become. */
static uint16_t
l4_sum(const struct frame *f)
{
	const uint32_t len = f->n - f->l4, addresses = f->v6 ? 32 : 8;
	const uint32_t last = rte_cpu_to_be_32(f->proto), n = rte_cpu_to_be_32(len);
	uint32_t sum = rte_raw_cksum(f->bytes + f->l4, len);

	if (f->proto != IPPROTO_ICMP) {
		sum += rte_raw_cksum(f->bytes + f->l4 - addresses, addresses);
		sum += rte_raw_cksum(&last, sizeof(last)) + rte_raw_cksum(&n, sizeof(n));
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

static void
seal(struct frame *f, uint8_t how)
{
	static const struct {
		uint8_t proto, at;
	} sums[] = {{IPPROTO_UDP, 6}, {IPPROTO_ICMP, 2}, {IPPROTO_ICMPV6, 2}};

	if (!f->v6) {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(f->bytes + f->l3);

		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	for (uint32_t i = 0; i < RTE_DIM(sums) && !(how & HOW_NO_CKSUM); i++) {
		uint16_t sum;

		if (f->proto != sums[i].proto)
			continue;
		memset(f->bytes + f->l4 + sums[i].at, 0, sizeof(sum));
		sum = l4_sum(f);
		memcpy(f->bytes + f->l4 + sums[i].at, &sum, sizeof(sum));
	}
}

/* ---- and onto the wire ---- */

static void
put_bytes(struct plane *p, struct input *in, uint8_t how, const uint8_t *bytes, uint32_t n)
{
	struct rte_mbuf *m;
	uint32_t first = n, cut = 0;

	if (how & HOW_CUT) {
		first = (uint32_t)input_take(in, 1);
		cut = 1 + 4 * (uint32_t)input_take(in, 1);
	}
	m = plane_frame(bytes, n, first, n / 16 > cut && cut != 0 ? n / 16 : cut);
	if (m != NULL && p->w.rx_cksum != 0)
		m->ol_flags |= (uint64_t)input_take(in, 2) &
			       (RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK |
				       RTE_MBUF_F_RX_VLAN_STRIPPED);
	plane_put(p, m);
}

/* In two parts that the appliance has to put together, the second one first if `turned`. */
static void
put_fragments(struct plane *p, struct input *in, struct frame *f, uint8_t how)
{
	const uint32_t len = f->n - f->l4, at = 8 * (1 + (uint32_t)input_take(in, 1));
	const uint8_t choice = (uint8_t)input_take(in, 1);
	struct frame part;

	if (at >= len) {
		put_bytes(p, in, how, f->bytes, f->n);
		return;
	}
	for (uint32_t i = 0; i < 2; i++) {
		const bool second = (i == 1) != (bool)(choice & 1);
		const uint32_t from = second ? at : 0, n = second ? len - at : at;
		const uint16_t where = (uint16_t)(from | !second);

		if (choice & 2 && i == 1)
			break; /* the other one never comes */
		part = *f;
		part.n = f->l4;
		if (f->v6) {
			struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(part.bytes + part.l3);
			uint8_t *ext = grow(&part, RTE_IPV6_FRAG_HDR_SIZE);

			ext[0] = ip->proto;
			ext[2] = (uint8_t)(where >> 8);
			ext[3] = (uint8_t)where;
			ext[7] = choice >> 4;
			ip->proto = IPPROTO_FRAGMENT;
			memcpy(grow(&part, n), f->bytes + f->l4 + from, n);
			ip->payload_len = rte_cpu_to_be_16((uint16_t)(part.n - part.l4));
		} else {
			struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(part.bytes + part.l3);

			memcpy(grow(&part, n), f->bytes + f->l4 + from, n);
			ip->packet_id = choice >> 4;
			ip->fragment_offset = rte_cpu_to_be_16(
				(uint16_t)(from / 8 | (second ? 0 : RTE_IPV4_HDR_MF_FLAG)));
			ip->total_length = rte_cpu_to_be_16((uint16_t)(part.n - part.l3));
			ip->hdr_checksum = 0;
			ip->hdr_checksum = rte_ipv4_cksum(ip);
		}
		put_bytes(p, in, how, part.bytes, part.n);
	}
}

static void
put_frame(struct plane *p, struct input *in, struct frame *f, uint8_t how)
{
	set_lengths(f);
	if (how & HOW_SPOIL) {
		const uint32_t at = (uint32_t)input_take(in, 1);
		const uint8_t change = (uint8_t)input_take(in, 1);

		f->bytes[at % f->n] ^= change;
		texts_known = false;
	}
	seal(f, how);
	if (how & HOW_FRAGMENT)
		put_fragments(p, in, f, how);
	else
		put_bytes(p, in, how, f->bytes, f->n);
}

/* ---- the steps ---- */

static void
add_udp(struct frame *f, uint16_t to, uint8_t source)
{
	struct rte_udp_hdr *udp = grow(f, sizeof(*udp));

	udp->src_port = rte_cpu_to_be_16(FIRST_PORT + source);
	udp->dst_port = rte_cpu_to_be_16(to);
}

static void
data_text(struct input *in, struct tokd_req *req, uint8_t bits, const uint8_t **bytes)
{
	static const uint16_t cuts[] = {1, 3, 16, 40, 80, 150, 300, 3000};
	const uint32_t t = req->stream_id % TEXTS, cut = cuts[req->stream_id / 2 % RTE_DIM(cuts)];
	uint32_t end;

	req->offset = req->packet * cut;
	req->length = bits & 1 ? cut * (bits >> 3) / 31 : cut;
	end = req->offset + req->length;
	if (end > PLANE_MAX_TEXT) {
		*bytes = text[t];
		return; /* too long, as the appliance is to find out */
	}
	*bytes = text[t] + req->offset;
	if (bits & 1)
		req->text_crc = crc[t][end];
}

static void
own_text(struct input *in, struct tokd_req *req, const uint8_t **bytes)
{
	req->stream_id += OWN_TEXT_ID;
	req->packet = 0;
	req->flags |= TOKD_F_LAST;
	req->length = input_bytes(in, (uint32_t)input_take(in, 2) % OWN_TEXT_MAX, bytes);
	req->text_crc = tokd_crc32c(0, *bytes, req->length);
}

/* What a client gets that asks without one. */
static uint64_t
cookie_of(const struct plane *p, uint8_t how, uint8_t source)
{
	struct tokd_peer peer = {.addr = plane_ip6,
		.mac = client_mac,
		.port = rte_cpu_to_be_16(FIRST_PORT + source)};

	if (how & HOW_IPV6)
		peer.addr.byte[15] = (uint8_t)(2 + source);
	else
		peer.addr = tokd_addr_v4(rte_cpu_to_be_32(PLANE_IP + 1 + source));
	return tokd_cookie_make(&p->w, &peer);
}

static void
put_request(struct plane *p, struct input *in, uint8_t how, uint8_t who, uint8_t packet,
	uint8_t bits, uint8_t ack)
{
	const uint32_t checksum[] = {
		0, p->w.terms->vocab[1].checksum, 0, p->w.terms->vocab[0].checksum ^ (who >> 7)};
	static const uint32_t longest[] = {
		0, 0, 1, TOKD_WIRE_REPLY_LEAST, 1232, 1439, 1440, UINT32_MAX};
	const bool generates = who >> 6 == 2;
	const uint8_t *bytes = NULL;
	struct tokd_req req = {.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = how & HOW_POLL ? TOKD_POLL : TOKD_DATA,
		.epoch = EPOCH,
		.vocab = checksum[who >> 6],
		.stream_id = who & 15};
	struct frame f;

	if (how & HOW_POLL) {
		req.ids_ack = packet * 4u;
		req.ids_end = bits * 8u;
		req.flags = generates ? TOKD_F_CANCEL : 0;
	} else {
		req.packet = packet;
		req.flags = (uint16_t)(bits & (TOKD_F_IDS | TOKD_F_STREAM | TOKD_F_SHORT |
						      TOKD_F_DECODE)) |
			    (bits & 1 ? TOKD_F_LAST : 0) | (generates ? TOKD_F_GENERATE : 0);
		if (generates) {
			req.flags |= who & 1 ? TOKD_F_IDS | TOKD_F_SKIP_SPECIAL : TOKD_F_IDS;
			req.limit = (bits & 1) << 2 * (bits >> 3 & 7);
			req.cookie = cookie_of(p, how, who >> 4 & 3);
		}
		req.ids_ack = ack * 8u;
		req.reply_max = longest[(who ^ packet) % RTE_DIM(longest)];
		if (how & HOW_OWN_TEXT)
			own_text(in, &req, &bytes);
		else
			data_text(in, &req, bits, &bytes);
		req.flags |= req.packet == 0 ? TOKD_F_FIRST : 0;
	}
	begin_ip(&f, p, how, IPPROTO_UDP, who >> 4 & 3);
	add_udp(&f, TOKD_WIRE_PORT, who >> 4 & 3);
	memcpy(grow(&f, sizeof(req)), &req, sizeof(req));
	if (req.length > 0)
		memcpy(grow(&f, req.length), bytes, req.length);
	put_frame(p, in, &f, how);
}

/* `n` packets of a text that follow each other, or a POLL. */
static void
step_request(struct plane *p, struct input *in, uint32_t n)
{
	const uint8_t how = (uint8_t)input_take(in, 1), who = (uint8_t)input_take(in, 1);
	const uint8_t packet = (uint8_t)input_take(in, 1), bits = (uint8_t)input_take(in, 1);
	const uint8_t ack = how & HOW_POLL ? 0 : (uint8_t)input_take(in, 1);

	for (uint32_t i = 0; i < n; i++)
		put_request(p, in, how, who, (uint8_t)(packet + i), bits, ack);
}

/* To the plain-text port; or to that of the protocol, of which it need not be. */
static void
step_plain_text(struct plane *p, struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1);
	const uint8_t *bytes;
	struct frame f;
	uint32_t n;

	n = input_bytes(in, (uint32_t)input_take(in, 2) % OWN_TEXT_MAX, &bytes);
	begin_ip(&f, p, how, IPPROTO_UDP, 0);
	add_udp(&f, how & HOW_POLL ? TOKD_WIRE_PORT : PLANE_TEXT_PORT, 0);
	memcpy(grow(&f, n), bytes, n);
	put_frame(p, in, &f, how);
}

/* ICMP and ICMPv6: echo requests, neighbour solicitations, and whatever the input makes of them. */
static void
step_icmp(struct plane *p, struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1), kind = (uint8_t)input_take(in, 1);
	const bool v6 = how & HOW_IPV6;
	const uint8_t *bytes;
	struct frame f;
	uint8_t *hdr;
	uint32_t n;

	begin_ip(&f, p, how, v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP, kind >> 4 & 3);
	hdr = grow(&f, 8);
	hdr[0] = v6 ? (kind & 1 ? 135 : 128) : 8;
	if (v6 && (kind & 1)) {
		memcpy(grow(&f, sizeof(plane_ip6)), plane_ip6.byte, sizeof(plane_ip6));
		if (kind & 2) { /* to the group of neighbours */
			const struct tokd_addr group = tokd_addr_solicited(&plane_ip6);
			const struct rte_ether_addr mac = tokd_addr_group_mac(&group);

			memcpy(f.bytes, &mac, sizeof(mac));
			memcpy(f.bytes + f.l3 + 24, group.byte, sizeof(group));
		}
		if (kind & 4) /* who looks for a duplicate has no address yet */
			memset(f.bytes + f.l3 + 8, 0, sizeof(plane_ip6));
	}
	n = input_bytes(in, (uint32_t)input_take(in, 1), &bytes);
	memcpy(grow(&f, n), bytes, n);
	put_frame(p, in, &f, how);
}

static void
step_arp(struct plane *p, struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1), kind = (uint8_t)input_take(in, 1);
	struct rte_arp_hdr *arp;
	struct frame f;

	begin_ether(&f, p, how, RTE_ETHER_TYPE_ARP);
	if (kind & 1)
		memset(f.bytes, 0xff, RTE_ETHER_ADDR_LEN);
	arp = grow(&f, sizeof(*arp));
	*arp = (struct rte_arp_hdr){.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
		.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
		.arp_hlen = RTE_ETHER_ADDR_LEN,
		.arp_plen = sizeof(rte_be32_t),
		.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
		.arp_data = {.arp_sha = {{2, 0, 0, 0, 0, 2}},
			.arp_sip = RTE_BE32(PLANE_IP + 1),
			.arp_tip = RTE_BE32(PLANE_IP)}};
	grow(&f, (kind >> 1) % 32); /* padding */
	if (how & HOW_SPOIL) {
		const uint32_t at = (uint32_t)input_take(in, 1);

		f.bytes[at % f.n] ^= (uint8_t)input_take(in, 1);
	}
	put_bytes(p, in, how, f.bytes, f.n);
}

static void
step_raw(struct plane *p, struct input *in)
{
	const uint8_t how = (uint8_t)input_take(in, 1);
	const uint8_t *bytes;
	const uint32_t n = input_bytes(in, (uint32_t)input_take(in, 2) % PLANE_FRAME_MAX, &bytes);

	texts_known = false;
	put_bytes(p, in, how, bytes, n);
}

/* A reader joins, leaves, or writes anything into its cursor. */
static void
step_reader(struct plane *p, struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1);
	const uint32_t i = what & 1;
	struct tokd_reader *rd = &p->w.ring.reader[i];

	switch (what >> 1 & 7) {
	case 0:
		if (rd->state == TOKD_READER_FREE) {
			rd->cursor = &p->cursor[i];
			p->cursor[i] = 0;
			rd->state = TOKD_READER_JOIN;
		}
		break;
	case 1:
		if (rd->state == TOKD_READER_ACTIVE)
			rd->state = TOKD_READER_LEAVE;
		break;
	case 2:
		p->cursor[i] = p->w.ring.head;
		break;
	case 3:
		p->cursor[i] = p->w.ring.tail + 16 * input_take(in, 1);
		break;
	case 4:
		p->cursor[i] = input_take(in, 8);
		break;
	default:
		p->cursor[i] = p->w.ring.head - 256 * input_take(in, 1);
		break;
	}
	tokd_ring_readers(&p->w.ring);
}

static void
step(struct plane *p, struct input *in)
{
	const uint8_t what = (uint8_t)input_take(in, 1);

	switch (what & 15) {
	case 0:
		step_plain_text(p, in);
		break;
	case 1:
		step_icmp(p, in);
		break;
	case 2:
		step_arp(p, in);
		break;
	case 3:
		step_raw(p, in);
		break;
	case 4:
		step_reader(p, in);
		break;
	case 5:
		plane_run(p);
		plane_wait(p, (uint64_t)1 << (what >> 4)); /* up to half a minute */
		break;
	case 6:
		plane_starve(p);
		break;
	case 7:
		p->stop = TOKD_DRAIN;
		break;
	case 9:
		step_request(p, in, 1 + (uint32_t)input_take(in, 1) % TOKD_WIRE_WINDOW);
		break;
	case 15:
		if (p->w.sink != NULL) {
			gpu_step(&p->w, in);
			break;
		}
		/* fall through */
	default:
		step_request(p, in, 1);
		break;
	}
	if (!(what & 0x80)) /* else it is in one burst with the next */
		plane_run(p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, data + size};
	const uint8_t which = (uint8_t)input_take(&in, 1);
	struct plane *p = plane_get(which);

	texts_known = true;
	if (which & 2)
		gpu_open(&p->w);
	for (uint32_t i = 0; i < STEPS_MAX && input_more(&in); i++)
		step(p, &in);
	plane_end(p);
	return 0;
}
