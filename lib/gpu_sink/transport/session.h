/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A transport's producer slot at the agent: obtained at set-up, and again after the connection
 * breaks. Three calls do what differs between transports. Set-up only.
 *
 *   prepare ─▶ hello ... welcome ─▶ admit ─▶ ready ... ready ─▶ connected
 *      │ failed at any point: undo
 */
#pragma once

#include "handshake/handshake_client.h"
#include "transport.h"

#define TOKG_RECONNECT_MS 3000	   /* to get the producer slot back; the agent keeps it for 1 s */
#define TOKG_RECONNECT_PAUSE_MS 20 /* between attempts */

struct tokg_session_calls {
	/* Before the hello. NULL: nothing to do. */
	bool (*prepare)(struct tokg_transport *t, struct tokg_hello *h, struct tokg_error *err);
	/* After the welcome is validated; t's geometry, producer and epochs are set. */
	bool (*admit)(struct tokg_transport *t, const struct tokg_welcome *w, int region_fd,
		struct tokg_error *err);
	/* Undoes prepare and admit. NULL: nothing to do. */
	void (*undo)(struct tokg_transport *t);
};

struct tokg_session {
	const struct tokg_session_calls *calls;
	struct tokg_where where;
	struct tokg_dial dial;
	struct tokg_hello hello;	 /* as it will be sent */
	uint32_t text_vocab, text_flags; /* of struct tokg_source */
	bool under_way;			 /* reconnecting */
	uint64_t give_up_ms, not_before_ms;
};

/* The name is resolved. The caller then fills hello.qp in `prepare`, if it has one. */
bool tokg_session_init(struct tokg_session *s, const struct tokg_session_calls *calls,
	const struct tokg_target *target, const struct tokg_source *source, struct tokg_error *err);
/*
 * Connects, within `timeout_ms`, to see whether an agent listens: for transports whose preparation
 * is expensive.
 */
bool tokg_session_answered(struct tokg_session *s, uint32_t timeout_ms, struct tokg_error *err);
/* The first handshake; takes `timeout_ms` at most. */
bool tokg_session_open(struct tokg_session *s, struct tokg_transport *t, uint32_t timeout_ms,
	struct tokg_error *err);
/* As tokg_transport_ops.reconnect, without the tickets. */
int tokg_session_again(struct tokg_session *s, struct tokg_transport *t, struct tokg_error *err);
void tokg_session_end(struct tokg_session *s, struct tokg_transport *t);
