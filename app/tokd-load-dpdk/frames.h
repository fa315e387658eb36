/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds and parses frames: Ethernet, IPv4, UDP, and ARP in both directions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_ether.h>
#include <rte_mbuf.h>

#include <tokd/client_engine.h>

struct frames {
	struct rte_mempool *pool;
	struct rte_ether_addr mac, peer; /* peer: zero until it answers ARP */
	uint32_t ip, server_ip;		 /* network byte order */
	uint16_t server_port;		 /* network byte order */
	uint16_t first_port, n_ports;	 /* of the clients */
	uint32_t n_addresses;		 /* from `ip` on: the clients take them in turn */
	uint16_t packet_id;		 /* IPv4's identification */
};

/* NULL: no mbuf is free. */
struct rte_mbuf *frames_request(
	struct frames *f, uint32_t client, const struct tokd_packet *packet);
struct rte_mbuf *frames_arp_request(const struct frames *f);

enum frame_kind {
	FRAME_REPLY, /* from the appliance to a client */
	FRAME_ARP,   /* handled; the mbuf may now be the answer */
	FRAME_OTHER, /* anything else, or a wrong length or checksum */
};

struct frame {
	const void *datagram;
	size_t len;
	uint32_t client;
	bool answer; /* FRAME_ARP: send this mbuf */
};

enum frame_kind frames_take(struct frames *f, struct rte_mbuf *m, struct frame *frame);
