/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol engine of libtokd-client, without I/O: the caller passes packets and the time. For
 * programs with their own network stack; others use client.h. One appliance, many requests, memory
 * fixed at creation, one thread at a time.
 *
 * A loop: tokd_engine_take() for each received datagram, tokd_engine_tick(), tokd_engine_packets()
 * until it returns 0, and tokd_engine_done() until it returns NULL.
 */
#ifndef TOKD_CLIENT_ENGINE_H
#define TOKD_CLIENT_ENGINE_H

#include <tokd/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tokd_engine; /* opaque */

/* As in struct tokd_client_options, without defaults. */
struct tokd_engine_config {
	uint32_t epoch; /* random */
	uint32_t vocab;
	uint32_t requests;	  /* from 1 */
	uint32_t packets;	  /* from 1 */
	uint32_t payload;	  /* from 1 */
	uint32_t reply_max;	  /* the longest reply that fits the path; 0: not known */
	uint64_t timeout_ns;	  /* from 1 */
	uint64_t rto_least_ns;	  /* from 1 */
	uint64_t first_stream_id; /* random, or 1 */
	bool no_resend;
	bool no_last_ack;
	/* Called for a request that has failed. True: it was submitted to another engine. NULL:
	 * there is no other; a text waits until the appliance is back after SHUTDOWN. */
	bool (*failed)(void *user, struct tokd_request *r);
	void *user;
};

/* A datagram to send: the header, then `len` bytes of the request's own text. */
struct tokd_packet {
	struct tokd_req req;
	const void *text; /* valid until the next call of the engine */
	uint32_t len;
};

/* Bytes of memory for an engine, aligned as by malloc(). */
TOKD_API size_t tokd_engine_bytes(const struct tokd_engine_config *config);
/* An engine in the caller's `memory`; there is nothing to close. */
TOKD_API struct tokd_engine *tokd_engine_init(
	void *memory, const struct tokd_engine_config *config);

/* See tokd_client_submit(), tokd_client_cancel(). Times are of any monotonic clock. */
TOKD_API enum tokd_status tokd_engine_submit(struct tokd_engine *e, struct tokd_request *r);
TOKD_API void tokd_engine_cancel(struct tokd_engine *e, struct tokd_request *r);
/* See tokd_client_made(). `text` is valid until the next call of the engine. */
TOKD_API bool tokd_engine_made(struct tokd_engine *e, struct tokd_request *r,
	struct tokd_made *made, const char **text, uint64_t now_ns);

/* Handles a received datagram, and validates it. */
TOKD_API void tokd_engine_take(
	struct tokd_engine *e, const void *datagram, size_t len, uint64_t now_ns);
/* Handles time-outs. Returns how many: of packets, or of their answers, that may be lost. */
TOKD_API uint32_t tokd_engine_tick(struct tokd_engine *e, uint64_t now_ns);
/* Time of the next time-out; UINT64_MAX: none. May be early, never late. */
TOKD_API uint64_t tokd_engine_next(const struct tokd_engine *e);
/* True: a POLL must be sent now. */
TOKD_API bool tokd_engine_owes(const struct tokd_engine *e);
/* Up to `max` packets to send now. */
TOKD_API uint32_t tokd_engine_packets(
	struct tokd_engine *e, struct tokd_packet *out, uint32_t max, uint64_t now_ns);
/*
 * The path takes less, or more, than the engine was made for: as in its configuration. If less,
 * texts in progress are sent again from the start.
 */
TOKD_API void tokd_engine_path(
	struct tokd_engine *e, uint32_t payload, uint32_t reply_max, uint64_t now_ns);
/* A packet of the last call could not be sent: it will be returned again. */
TOKD_API void tokd_engine_unsent(struct tokd_engine *e, const struct tokd_packet *p);

/* The next request that has finished or has new ids, or NULL. */
TOKD_API struct tokd_request *tokd_engine_done(struct tokd_engine *e);
/* It has one to give. */
TOKD_API bool tokd_engine_has_done(const struct tokd_engine *e);
/* Removes a finished request from those for tokd_engine_done(). */
TOKD_API void tokd_engine_unlist(struct tokd_engine *e, struct tokd_request *r);
/*
 * Cancels all requests; their memory is the caller's. What is owed then (tokd_engine_owes) are the
 * CANCELs of answers.
 */
TOKD_API void tokd_engine_leave(struct tokd_engine *e);
/* Ends all requests with `status` and, for TOKD_E_NET, `error`. */
TOKD_API void tokd_engine_fail_all(struct tokd_engine *e, enum tokd_status status, int error);

/* Requests in progress. Those that were cancelled are not counted. */
TOKD_API uint32_t tokd_engine_pending(const struct tokd_engine *e);
/* `sent` and `received` are 0: the caller counts them. */
TOKD_API struct tokd_client_stats tokd_engine_stats(const struct tokd_engine *e);

#ifdef __cplusplus
}
#endif

#endif
