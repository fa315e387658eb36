/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames and the network between clients and appliance. A bit error changes one bit, which a
 * checksum must catch; or bits of the text or ids, with the UDP checksum as if it had not noticed:
 * then the CRC32C must.
 */
#include <netinet/in.h>
#include <string.h>

#include <rte_udp.h>

#include "sim.h"

#define SPOILT_BITS 3

struct ipv4_headers {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};
struct ipv6_headers {
	struct rte_ether_hdr eth;
	struct rte_ipv6_hdr ip;
	struct rte_udp_hdr udp;
};
static_assert(sizeof(struct ipv4_headers) == 42, "as on the wire");
static_assert(sizeof(struct ipv6_headers) == 62, "as on the wire");

static bool
is_six(uint32_t ip)
{
	return ip >> 16 == SIX_IP >> 16;
}

/* 2001:db8::/32; the third byte of `ip` is a subnet, a /64. The appliance is at 2001:db8::1. */
struct tokd_addr
network_six(uint32_t ip)
{
	return (struct tokd_addr){
		.word = {RTE_BE32(0x20010db8), rte_cpu_to_be_32(is_six(ip) ? ip >> 8 & 0xff : 0), 0,
			rte_cpu_to_be_32(is_six(ip) ? ip : 1)}};
}

struct rte_ether_addr
frame_mac(uint32_t ip)
{
	return (struct rte_ether_addr){
		{2, 0, (uint8_t)(ip >> 24), (uint8_t)(ip >> 16), (uint8_t)(ip >> 8), (uint8_t)ip}};
}

static bool
frame_is_six(const struct packet *p)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)p->bytes;

	return eth->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV6);
}

uint32_t
frame_headers(const struct packet *p)
{
	return frame_is_six(p) ? sizeof(struct ipv6_headers) : sizeof(struct ipv4_headers);
}

void
frame_seal(struct packet *p)
{
	struct ipv4_headers *h = (struct ipv4_headers *)p->bytes;
	struct ipv6_headers *h6 = (struct ipv6_headers *)p->bytes;

	if (frame_is_six(p)) {
		h6->udp.dgram_cksum = 0;
		h6->udp.dgram_cksum = rte_ipv6_udptcp_cksum(&h6->ip, &h6->udp);
		return;
	}
	h->ip.hdr_checksum = 0;
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	h->udp.dgram_cksum = 0;
	h->udp.dgram_cksum = rte_ipv4_udptcp_cksum(&h->ip, &h->udp);
}

static struct rte_udp_hdr *
put_ipv4(struct packet *p, uint32_t ip, uint32_t len)
{
	struct ipv4_headers *h = (struct ipv4_headers *)p->bytes;

	h->ip = (struct rte_ipv4_hdr){.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(sizeof(h->ip) + len)),
		.time_to_live = 64,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = rte_cpu_to_be_32(ip),
		.dst_addr = RTE_BE32(SERVER_IP)};
	return &h->udp;
}

static struct rte_udp_hdr *
put_ipv6(struct packet *p, uint32_t ip, uint32_t len)
{
	struct ipv6_headers *h = (struct ipv6_headers *)p->bytes;
	const struct tokd_addr from = network_six(ip), to = network_six(SERVER_IP);

	h->ip = (struct rte_ipv6_hdr){.vtc_flow = RTE_BE32(0x60000000),
		.payload_len = rte_cpu_to_be_16((uint16_t)len),
		.proto = IPPROTO_UDP,
		.hop_limits = 64};
	memcpy(&h->ip.src_addr, from.byte, sizeof(from));
	memcpy(&h->ip.dst_addr, to.byte, sizeof(to));
	return &h->udp;
}

struct packet *
frame_make(struct world *w, uint32_t ip, uint16_t port, const void *head, uint32_t head_len,
	const void *body, uint32_t body_len)
{
	struct packet *p = packet_take(w);
	const uint32_t len = sizeof(struct rte_udp_hdr) + head_len + body_len;
	struct rte_udp_hdr *udp;
	uint8_t *payload;

	*(struct rte_ether_hdr *)p->bytes = (struct rte_ether_hdr){.dst_addr = frame_mac(SERVER_IP),
		.src_addr = frame_mac(ip),
		.ether_type =
			is_six(ip) ? RTE_BE16(RTE_ETHER_TYPE_IPV6) : RTE_BE16(RTE_ETHER_TYPE_IPV4)};
	udp = is_six(ip) ? put_ipv6(p, ip, len) : put_ipv4(p, ip, len);
	*udp = (struct rte_udp_hdr){.src_port = rte_cpu_to_be_16(port),
		.dst_port = RTE_BE16(TOKD_WIRE_PORT),
		.dgram_len = rte_cpu_to_be_16((uint16_t)len)};
	payload = (uint8_t *)(udp + 1);
	memcpy(payload, head, head_len);
	if (body_len > 0)
		memcpy(payload + head_len, body, body_len);
	p->len = (uint32_t)(payload - p->bytes) + head_len + body_len;
	frame_seal(p);
	return p;
}

/* RFC 1122 3.2.1, RFC 8200 3. NULL: not for us. `room`: bytes of the datagram. */
static const struct rte_udp_hdr *
check_ipv4(const struct packet *p, uint32_t ip, uint32_t *room)
{
	const struct ipv4_headers *h = (const struct ipv4_headers *)p->bytes;
	const uint32_t total = rte_be_to_cpu_16(h->ip.total_length);

	if (p->len < sizeof(*h) || h->eth.ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
		h->ip.version_ihl != RTE_IPV4_VHL_DEF || rte_ipv4_cksum(&h->ip) != 0 ||
		h->ip.next_proto_id != IPPROTO_UDP || h->ip.dst_addr != rte_cpu_to_be_32(ip) ||
		h->ip.src_addr != RTE_BE32(SERVER_IP) || total < sizeof(h->ip) + sizeof(h->udp) ||
		total > p->len - sizeof(h->eth))
		return NULL;
	*room = total - (uint32_t)sizeof(h->ip);
	if (rte_be_to_cpu_16(h->udp.dgram_len) != *room ||
		(h->udp.dgram_cksum != 0 && rte_ipv4_udptcp_cksum(&h->ip, &h->udp) != 0xffff))
		return NULL;
	return &h->udp;
}

static const struct rte_udp_hdr *
check_ipv6(const struct packet *p, uint32_t ip, uint32_t *room)
{
	const struct ipv6_headers *h = (const struct ipv6_headers *)p->bytes;
	const struct tokd_addr from = network_six(SERVER_IP), to = network_six(ip);

	*room = rte_be_to_cpu_16(h->ip.payload_len);
	if (p->len < sizeof(*h) || h->eth.ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV6) ||
		(h->ip.vtc_flow & RTE_BE32(0xf0000000)) != RTE_BE32(0x60000000) ||
		h->ip.proto != IPPROTO_UDP || memcmp(&h->ip.dst_addr, to.byte, sizeof(to)) != 0 ||
		memcmp(&h->ip.src_addr, from.byte, sizeof(from)) != 0 || *room < sizeof(h->udp) ||
		*room > p->len - sizeof(h->eth) - sizeof(h->ip))
		return NULL;
	/* RFC 8200 8.1: zero is no checksum. */
	if (rte_be_to_cpu_16(h->udp.dgram_len) != *room || h->udp.dgram_cksum == 0 ||
		rte_ipv6_udptcp_cksum(&h->ip, &h->udp) != 0xffff)
		return NULL;
	return &h->udp;
}

/* As a kernel checks it: addresses, lengths, checksums (also RFC 1122 4.1.3). */
const uint8_t *
frame_payload(const struct packet *p, uint32_t ip, uint16_t port, uint32_t *len)
{
	const struct rte_ether_hdr *eth = (const struct rte_ether_hdr *)p->bytes;
	const struct rte_ether_addr mac = frame_mac(ip);
	const struct rte_udp_hdr *udp;
	uint32_t room;

	if (!rte_is_same_ether_addr(&eth->dst_addr, &mac))
		return NULL;
	udp = is_six(ip) ? check_ipv6(p, ip, &room) : check_ipv4(p, ip, &room);
	if (udp == NULL || udp->dst_port != rte_cpu_to_be_16(port) ||
		udp->src_port != RTE_BE16(TOKD_WIRE_PORT))
		return NULL;
	*len = room - (uint32_t)sizeof(*udp);
	return (const uint8_t *)(udp + 1);
}

static void
flip(struct world *w, struct packet *p, uint32_t from)
{
	const uint32_t bit = world_dice(w, 8 * (p->len - from));

	p->bytes[from + bit / 8] ^= (uint8_t)(1 << bit % 8);
}

/* Text or ids, and a checksum that fits what came of them. */
static void
spoil(struct world *w, struct packet *p)
{
	const uint32_t from = frame_headers(p) + sizeof(struct tokd_req);

	if (p->len <= from)
		return;
	for (uint32_t i = world_dice(w, SPOILT_BITS) + 1; i > 0; i--)
		flip(w, p, from);
	frame_seal(p);
	world_fault(w, FRAMES_SPOILT);
}

static struct packet *
copy(struct world *w, const struct packet *p)
{
	struct packet *c = packet_take(w);

	c->len = p->len;
	memcpy(c->bytes, p->bytes, p->len);
	return c;
}

/* One copy of a frame on its way. */
static void
deliver(struct world *w, struct packet *p, enum event_kind to, uint32_t who, uint64_t by)
{
	const struct network_plan *n = &w->plan.network;
	uint64_t at = w->now + n->delay + dice_throw(&w->dice) % (n->jitter + by + 1);

	if (w->calm_at == NEVER) {
		if (world_chance(w, n->late)) {
			at += dice_throw(&w->dice) % (n->late_by + 1);
			world_fault(w, FRAMES_LATE);
		}
		if (world_chance(w, n->spoil))
			spoil(w, p);
		if (world_chance(w, n->flip)) {
			flip(w, p, 2 * RTE_ETHER_ADDR_LEN); /* Ethernet's CRC guards addresses */
			world_fault(w, FRAMES_FLIPPED);
		}
	}
	world_put(w, at, to, who, p);
}

static void
carry(struct world *w, struct packet *p, enum event_kind to, uint32_t who)
{
	const struct network_plan *n = &w->plan.network;

	const bool cut = w->now < w->cut_until;

	if (cut || (w->calm_at == NEVER && world_chance(w, n->lose))) {
		world_fault(w, cut ? FRAMES_CUT : FRAMES_LOST);
		world_trace(w, "lost", to, who, p->len);
		packet_drop(w, p);
		return;
	}
	if (w->calm_at == NEVER && world_chance(w, n->twice)) {
		deliver(w, copy(w, p), to, who, n->twice_by);
		world_fault(w, FRAMES_TWICE);
	}
	deliver(w, p, to, who, 0);
}

/* The time a frame occupies the link, with preamble, checksum and gap. */
static uint64_t
on_link(const struct world *w, uint64_t len)
{
	return (len + 24) * 8 * SECOND / w->plan.network.link;
}

/* Waits for the link: behind what came before, or its queue is full. */
static void
share_link(struct world *w, struct packet *p)
{
	const uint64_t wait = w->link_until > w->now ? w->link_until - w->now : 0;

	if (wait + on_link(w, p->len) >
		w->plan.network.waiting * on_link(w, RTE_ETHER_MAX_LEN - 4)) {
		world_trace(w, "no room", wait, 0, p->len);
		packet_drop(w, p);
		return;
	}
	w->link_frames++;
	w->link_wait += wait;
	w->link_until = w->now + wait + on_link(w, p->len);
	world_put(w, w->link_until + w->plan.network.delay, TO_APPLIANCE, 0, p);
}

void
network_to_appliance(struct world *w, struct packet *p)
{
	if (w->plan.network.link != 0)
		share_link(w, p);
	else
		carry(w, p, TO_APPLIANCE, 0);
}

/* Where a frame of the appliance goes; its own checksums are right. */
static uint32_t
destination(const struct packet *p, uint16_t *port)
{
	const struct ipv4_headers *h = (const struct ipv4_headers *)p->bytes;
	const struct ipv6_headers *h6 = (const struct ipv6_headers *)p->bytes;
	rte_be32_t ip = h->ip.dst_addr;

	if (frame_is_six(p))
		memcpy(&ip, RTE_PTR_ADD(&h6->ip.dst_addr, 12), sizeof(ip));
	*port = rte_be_to_cpu_16(frame_is_six(p) ? h6->udp.dst_port : h->udp.dst_port);
	return rte_be_to_cpu_32(ip);
}

void
network_to_clients(struct world *w, struct packet *p)
{
	uint16_t port;
	const uint32_t ip = destination(p, &port);
	const bool hostile = ip >> 20 == HOSTILE_IP >> 20;
	uint32_t i = 0, n = frame_headers(p);

	w->a.bytes_to[hostile] += p->len;
	while (i < w->plan.clients && (w->client[i].ip != ip || w->client[i].port != port))
		i++;
	if (hostile && p->len > n)
		attack_takes(w, ip, p->bytes + n, p->len - n);
	if (i == w->plan.clients) /* nobody is there, or not any more */
		packet_drop(w, p);
	else
		carry(w, p, TO_CLIENT, i);
}
