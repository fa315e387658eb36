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

#define HEADERS sizeof(struct headers)
#define SPOILT_BITS 3

struct headers {
	struct rte_ether_hdr eth;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
};
static_assert(sizeof(struct headers) == 42, "as on the wire");

struct rte_ether_addr
frame_mac(uint32_t ip)
{
	return (struct rte_ether_addr){
		{2, 0, (uint8_t)(ip >> 24), (uint8_t)(ip >> 16), (uint8_t)(ip >> 8), (uint8_t)ip}};
}

void
frame_seal(struct packet *p)
{
	struct headers *h = (struct headers *)p->bytes;

	h->ip.hdr_checksum = 0;
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	h->udp.dgram_cksum = 0;
	h->udp.dgram_cksum = rte_ipv4_udptcp_cksum(&h->ip, &h->udp);
}

struct packet *
frame_make(struct world *w, uint32_t ip, uint16_t port, const void *head, uint32_t head_len,
	const void *body, uint32_t body_len)
{
	struct packet *p = packet_take(w);
	struct headers *h = (struct headers *)p->bytes;
	const uint32_t len = head_len + body_len;

	*h = (struct headers){
		.eth = {.dst_addr = frame_mac(SERVER_IP),
			.src_addr = frame_mac(ip),
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)},
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
			.total_length = rte_cpu_to_be_16((uint16_t)(20 + 8 + len)),
			.time_to_live = 64,
			.next_proto_id = IPPROTO_UDP,
			.src_addr = rte_cpu_to_be_32(ip),
			.dst_addr = RTE_BE32(SERVER_IP)},
		.udp = {.src_port = rte_cpu_to_be_16(port),
			.dst_port = RTE_BE16(TOKD_WIRE_PORT),
			.dgram_len = rte_cpu_to_be_16((uint16_t)(8 + len))},
	};
	memcpy(p->bytes + HEADERS, head, head_len);
	if (body_len > 0)
		memcpy(p->bytes + HEADERS + head_len, body, body_len);
	p->len = (uint32_t)HEADERS + len;
	frame_seal(p);
	return p;
}

/* As a kernel checks it: addresses, lengths, checksums (RFC 1122 3.2.1, 4.1.3). */
const uint8_t *
frame_payload(const struct packet *p, uint32_t ip, uint16_t port, uint32_t *len)
{
	const struct headers *h = (const struct headers *)p->bytes;
	const struct rte_ether_addr mac = frame_mac(ip);
	uint32_t total;

	if (p->len < HEADERS || !rte_is_same_ether_addr(&h->eth.dst_addr, &mac) ||
		h->eth.ether_type != RTE_BE16(RTE_ETHER_TYPE_IPV4) ||
		h->ip.version_ihl != RTE_IPV4_VHL_DEF || rte_ipv4_cksum(&h->ip) != 0 ||
		h->ip.next_proto_id != IPPROTO_UDP || h->ip.dst_addr != rte_cpu_to_be_32(ip) ||
		h->ip.src_addr != RTE_BE32(SERVER_IP))
		return NULL;
	total = rte_be_to_cpu_16(h->ip.total_length);
	if (total > p->len - sizeof(h->eth) || total < 28 ||
		rte_be_to_cpu_16(h->udp.dgram_len) != total - 20 ||
		h->udp.dst_port != rte_cpu_to_be_16(port) ||
		h->udp.src_port != RTE_BE16(TOKD_WIRE_PORT))
		return NULL;
	if (h->udp.dgram_cksum != 0 && rte_ipv4_udptcp_cksum(&h->ip, &h->udp) != 0xffff)
		return NULL;
	*len = total - 28;
	return p->bytes + HEADERS;
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
	const uint32_t from = HEADERS + sizeof(struct tokd_req);

	if (p->len <= from)
		return;
	for (uint32_t i = world_dice(w, SPOILT_BITS) + 1; i > 0; i--)
		flip(w, p, from);
	frame_seal(p);
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
		if (world_chance(w, n->late))
			at += dice_throw(&w->dice) % (n->late_by + 1);
		if (world_chance(w, n->flip))
			flip(w, p, 0);
		if (world_chance(w, n->spoil))
			spoil(w, p);
	}
	world_put(w, at, to, who, p);
}

static void
carry(struct world *w, struct packet *p, enum event_kind to, uint32_t who)
{
	const struct network_plan *n = &w->plan.network;

	if (w->now < w->cut_until || (w->calm_at == NEVER && world_chance(w, n->lose))) {
		world_trace(w, "lost", to, who, p->len);
		packet_drop(w, p);
		return;
	}
	if (w->calm_at == NEVER && world_chance(w, n->twice))
		deliver(w, copy(w, p), to, who, n->twice_by);
	deliver(w, p, to, who, 0);
}

void
network_to_appliance(struct world *w, struct packet *p)
{
	carry(w, p, TO_APPLIANCE, 0);
}

void
network_to_clients(struct world *w, struct packet *p)
{
	const struct headers *h = (const struct headers *)p->bytes;
	const uint32_t i = rte_be_to_cpu_32(h->ip.dst_addr) - SERVER_IP - 1;

	w->a.bytes_to[i >= w->plan.clients] += p->len;
	if (i >= w->plan.clients) { /* of a hostile source: nobody receives it */
		packet_drop(w, p);
		return;
	}
	carry(w, p, TO_CLIENT, i);
}
