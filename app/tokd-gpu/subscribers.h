/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subscribers: processes that read embeddings. tokd/embeddings.h has the protocol. One thread;
 * nothing here blocks.
 *
 * One of them may be the engine that makes ids (tokd/engine.h). Its lanes end with its connection.
 *
 *   CONNECTED ── valid request ──▶ ATTACHED ── closed, died, timed out ──▶ FREE
 *       └──── refused, or no request within a second ─────────────────────▲
 */
#pragma once

#include "handshake/listen.h"
#include "delivery.h"

#define TOKG_SUBSCRIBERS_MAX 16
#define TOKG_SUBSCRIBERS_CONNS (TOKG_SUBSCRIBERS_MAX + 8) /* more wait in the backlog */
#define TOKG_SUBSCRIBE_NS 1000000000ull			  /* for the request */
/* A subscriber that blocks producers may keep one embedding for this many times the time limit,
 * if it makes progress. */
#define TOKG_SUBSCRIBER_SLOW 10

struct tokg_subscriber {
	enum { TOKG_SUBSCRIBER_FREE, TOKG_SUBSCRIBER_CONNECTED, TOKG_SUBSCRIBER_ATTACHED } state;
	int fd;
	int pid;
	_Atomic uint64_t *word; /* its cursor page */
	uint64_t cursor;	/* as last read: validated, never decreases */
	uint64_t since_ns;	/* CONNECTED: since then; ATTACHED: has blocked since then, or 0 */
	uint64_t needed;	/* ... until the cursor is here */
	uint64_t blocks_ns;	/* blocked at every check since then, or 0 */
	bool is_engine;
};

struct tokg_subscriber_counts {
	uint64_t attached, detached, refused, dropped;
};

struct tokg_subscribers {
	struct tokg_delivery *delivery;
	struct tokg_device *device;
	uint64_t engines; /* that were attached so far: the number of the last one */
	uint32_t timeout_ms;
	struct tokg_listener listener;
	int epoll;
	bool listening; /* else connections are full, and epoll does not watch the listener */
	struct tokg_subscriber subscriber[TOKG_SUBSCRIBERS_CONNS];
	struct tokg_subscriber_counts counts;
};

/* False and `err`. */
bool tokg_subscribers_open(struct tokg_subscribers *s, struct tokg_delivery *delivery,
	struct tokg_device *device, const char *path, uint32_t mode, uint32_t timeout_ms,
	struct tokg_error *err);
void tokg_subscribers_close(struct tokg_subscribers *s);

/* Readable when there is something to do on sockets. */
int tokg_subscribers_fd(const struct tokg_subscribers *s);
void tokg_subscribers_poll(struct tokg_subscribers *s, uint64_t now_ns);
/* The lowest cursor; without subscribers the delivery's head. Makes no system call. */
uint64_t tokg_subscribers_passed(struct tokg_subscribers *s);
