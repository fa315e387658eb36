/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol engine below libtokd-client, without I/O: packets go in, packets come out, and the
 * caller says what time it is. For those who have a network stack of their own; all others use
 * client.h. One appliance, many requests, memory fixed at creation, one thread at a time.
 *
 * A turn: tokd_engine_take() for each datagram that came, tokd_engine_tick(), then
 * tokd_engine_packets() until it gives none, and tokd_engine_done() until it gives NULL.
 */
#ifndef TOKD_CLIENT_ENGINE_H
#define TOKD_CLIENT_ENGINE_H

#include <tokd/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tokd_engine; /* opaque */

/* As in struct tokd_client_options, but with nothing left to a default. */
struct tokd_engine_config {
	uint32_t epoch; /* random */
	uint32_t vocab;
	uint32_t requests;	  /* from 1 */
	uint32_t packets;	  /* from 1 */
	uint32_t payload;	  /* from 1 */
	uint64_t timeout_ns;	  /* from 1 */
	uint64_t rto_least_ns;	  /* from 1 */
	uint64_t first_stream_id; /* random, or 1 */
	bool no_resend;
	bool no_last_ack;
};

/* A datagram to send: the header, then `len` bytes of the request's own text. */
struct tokd_packet {
	struct tokd_req req;
	const void *text; /* valid until the next call of the engine */
	uint32_t len;
};

/* Bytes of memory that an engine needs, aligned as malloc() does. */
TOKD_API size_t tokd_engine_bytes(const struct tokd_engine_config *config);
/* An engine in `memory`, which stays the caller's and is simply let go of at the end. */
TOKD_API struct tokd_engine *tokd_engine_init(
	void *memory, const struct tokd_engine_config *config);

/* See tokd_client_submit(), tokd_client_cancel(). Times are of any clock that only goes forward. */
TOKD_API enum tokd_status tokd_engine_submit(struct tokd_engine *e, struct tokd_request *r);
TOKD_API void tokd_engine_cancel(struct tokd_engine *e, struct tokd_request *r);

/* A datagram has come. Nothing in it is trusted. */
TOKD_API void tokd_engine_take(
	struct tokd_engine *e, const void *datagram, size_t len, uint64_t now_ns);
/* Do what is due. */
TOKD_API void tokd_engine_tick(struct tokd_engine *e, uint64_t now_ns);
/* When something is due next; UINT64_MAX: never. May be early, never late. */
TOKD_API uint64_t tokd_engine_next(const struct tokd_engine *e);
/* Up to `max` packets to send now. */
TOKD_API uint32_t tokd_engine_packets(
	struct tokd_engine *e, struct tokd_packet *out, uint32_t max, uint64_t now_ns);
/* This one, of the latest call, could not be sent: it will be given out again. */
TOKD_API void tokd_engine_unsent(struct tokd_engine *e, const struct tokd_packet *p);

/* The next request that finished or has new ids, or NULL. */
TOKD_API struct tokd_request *tokd_engine_done(struct tokd_engine *e);
/* Keep one that finished from being given out by tokd_engine_done(). */
TOKD_API void tokd_engine_unlist(struct tokd_engine *e, struct tokd_request *r);
/* All requests under way end with `status` and, for TOKD_E_NET, `error`. */
TOKD_API void tokd_engine_fail_all(struct tokd_engine *e, enum tokd_status status, int error);

/* Requests under way. */
TOKD_API uint32_t tokd_engine_pending(const struct tokd_engine *e);
/* `sent` and `received` are left at 0: the caller knows. */
TOKD_API struct tokd_client_stats tokd_engine_stats(const struct tokd_engine *e);

#ifdef __cplusplus
}
#endif

#endif
