/* SPDX-License-Identifier: BSD-3-Clause */
/* A socket and an engine. client.c: set-up; client_io.c: packets. */
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <tokd/client_engine.h>

#define RX_BURST 32
#define RX_BYTES 2048 /* a reply fits an Ethernet frame */
#define TX_BURST TOKD_WIRE_WINDOW
#define PEER_MAX 96 /* bytes of "host:port" in messages, truncated */

/* What `n_ids` counts. */
static inline const char *
client_unit(const struct tokd_request *r)
{
	return r->flags & TOKD_REQUEST_DECODE ? "bytes" : "ids";
}

struct tokd_client {
	int fd; /* connected, non-blocking */
	bool spin;
	bool wants_write; /* the send buffer is full */
	uint32_t timeout_ms;
	uint32_t vocab;	     /* requested */
	uint32_t unread_max; /* the most datagrams in the receive buffer */
	uint32_t in_a_row;   /* datagrams since it was last empty */
	uint64_t sent, received;
	struct tokd_engine *engine;
	char peer[PEER_MAX];
	char error[TOKD_ERROR_MAX];

	struct mmsghdr rx[RX_BURST], tx[TX_BURST];
	struct iovec rx_part[RX_BURST], tx_part[TX_BURST][2];
	struct tokd_packet packet[TX_BURST];
	uint8_t rx_data[RX_BURST][RX_BYTES];
};
