/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_arp.h>
#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "frames.h"

#define TTL 64

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __attribute__((packed, aligned(2)));

struct arp {
	struct rte_ether_hdr ether;
	struct rte_arp_hdr arp;
} __attribute__((packed, aligned(2)));

static rte_be32_t
address_of(const struct frames *f, uint32_t client)
{
	return rte_cpu_to_be_32(rte_be_to_cpu_32(f->ip) + client % f->n_addresses);
}

struct rte_mbuf *
frames_request(struct frames *f, uint32_t client, const struct tokd_packet *p)
{
	uint16_t len = (uint16_t)(sizeof(struct headers) + sizeof(p->req) + p->len);
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);
	struct headers *h;

	if (m == NULL)
		return NULL;
	h = (struct headers *)rte_pktmbuf_append(m, len);
	h->ether = (struct rte_ether_hdr){
		.dst_addr = f->peer,
		.src_addr = f->mac,
		.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4),
	};
	h->ip = (struct rte_ipv4_hdr){
		.version_ihl = RTE_IPV4_VHL_DEF,
		.total_length = rte_cpu_to_be_16((uint16_t)(len - sizeof(h->ether))),
		.packet_id = rte_cpu_to_be_16(f->packet_id++),
		.time_to_live = TTL,
		.next_proto_id = IPPROTO_UDP,
		.src_addr = address_of(f, client),
		.dst_addr = f->server_ip,
	};
	h->ip.hdr_checksum = rte_ipv4_cksum(&h->ip);
	h->udp = (struct rte_udp_hdr){
		.src_port = rte_cpu_to_be_16((uint16_t)(f->first_port + client)),
		.dst_port = f->server_port,
		.dgram_len = rte_cpu_to_be_16((uint16_t)(sizeof(h->udp) + sizeof(p->req) + p->len)),
	};
	memcpy(h + 1, &p->req, sizeof(p->req));
	if (p->len > 0)
		memcpy((uint8_t *)(h + 1) + sizeof(p->req), p->text, p->len);
	h->udp.dgram_cksum = rte_ipv4_udptcp_cksum(&h->ip, &h->udp);
	return m;
}

struct rte_mbuf *
frames_arp_request(const struct frames *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(f->pool);
	struct arp *a;

	if (m == NULL)
		return NULL;
	a = (struct arp *)rte_pktmbuf_append(m, sizeof(*a));
	*a = (struct arp){
		.ether = {.src_addr = f->mac, .ether_type = RTE_BE16(RTE_ETHER_TYPE_ARP)},
		.arp =
			{
				.arp_hardware = RTE_BE16(RTE_ARP_HRD_ETHER),
				.arp_protocol = RTE_BE16(RTE_ETHER_TYPE_IPV4),
				.arp_hlen = RTE_ETHER_ADDR_LEN,
				.arp_plen = sizeof(uint32_t),
				.arp_opcode = RTE_BE16(RTE_ARP_OP_REQUEST),
				.arp_data =
					{
						.arp_sha = f->mac,
						.arp_sip = f->ip,
						.arp_tip = f->server_ip,
					},
			},
	};
	memset(&a->ether.dst_addr, 0xff, sizeof(a->ether.dst_addr));
	return m;
}

/* RFC 826, for the two addresses of this link. */
static enum frame_kind
take_arp(struct frames *f, struct rte_mbuf *m, struct frame *frame)
{
	struct arp *a = rte_pktmbuf_mtod(m, struct arp *);
	struct rte_arp_ipv4 *d = &a->arp.arp_data;

	if (rte_pktmbuf_data_len(m) < sizeof(*a) || d->arp_sip != f->server_ip ||
		d->arp_tip != f->ip)
		return FRAME_OTHER;
	f->peer = d->arp_sha;
	frame->answer = a->arp.arp_opcode == RTE_BE16(RTE_ARP_OP_REQUEST);
	if (frame->answer) {
		a->arp.arp_opcode = RTE_BE16(RTE_ARP_OP_REPLY);
		*d = (struct rte_arp_ipv4){
			.arp_sha = f->mac,
			.arp_sip = f->ip,
			.arp_tha = f->peer,
			.arp_tip = f->server_ip,
		};
		a->ether.dst_addr = f->peer;
		a->ether.src_addr = f->mac;
	}
	return FRAME_ARP;
}

/* A sum that includes a correct checksum is all ones. */
static bool
checksums_are_right(const struct headers *h, size_t udp_len)
{
	uint32_t sum = rte_raw_cksum(&h->udp, udp_len);

	sum += rte_ipv4_phdr_cksum(&h->ip, 0);
	sum = (sum & 0xffff) + (sum >> 16);
	return rte_raw_cksum(&h->ip, sizeof(h->ip)) == 0xffff && sum == 0xffff;
}

static enum frame_kind
take_ipv4(const struct frames *f, struct rte_mbuf *m, struct frame *frame)
{
	const struct headers *h = rte_pktmbuf_mtod(m, const struct headers *);
	uint32_t here = rte_pktmbuf_data_len(m), ip_len, udp_len, port;

	if (here < sizeof(*h) || m->nb_segs != 1 || h->ip.version_ihl != RTE_IPV4_VHL_DEF)
		return FRAME_OTHER;
	ip_len = rte_be_to_cpu_16(h->ip.total_length);
	udp_len = rte_be_to_cpu_16(h->udp.dgram_len);
	port = rte_be_to_cpu_16(h->udp.dst_port);
	if (ip_len > here - sizeof(h->ether) || udp_len != ip_len - sizeof(h->ip) ||
		udp_len < sizeof(h->udp) || h->ip.next_proto_id != IPPROTO_UDP ||
		h->ip.src_addr != f->server_ip || h->udp.src_port != f->server_port ||
		port < f->first_port || port >= (uint32_t)f->first_port + f->n_ports ||
		h->ip.dst_addr != address_of(f, port - f->first_port))
		return FRAME_OTHER;
	if (!checksums_are_right(h, udp_len))
		return FRAME_OTHER;
	frame->datagram = h + 1;
	frame->len = udp_len - sizeof(h->udp);
	frame->client = port - f->first_port;
	return FRAME_REPLY;
}

enum frame_kind
frames_take(struct frames *f, struct rte_mbuf *m, struct frame *frame)
{
	const struct rte_ether_hdr *ether = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);

	*frame = (struct frame){0};
	if (rte_pktmbuf_data_len(m) < sizeof(*ether))
		return FRAME_OTHER;
	if (ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_ARP))
		return take_arp(f, m, frame);
	if (ether->ether_type == RTE_BE16(RTE_ETHER_TYPE_IPV4))
		return take_ipv4(f, m, frame);
	return FRAME_OTHER;
}
