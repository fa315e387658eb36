/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Holders: processes that take embeddings. tokd/embeddings.h has the protocol. One thread; nothing
 * here blocks.
 *
 *   GREETING ── good request ──▶ HOLDING ── closed, died, stalled ──▶ FREE
 *       └──── refused, or silent for a second ─────────────────────────▲
 */
#ifndef TOKG_AGENT_HOLDERS_H
#define TOKG_AGENT_HOLDERS_H

#include "handshake/listen.h"
#include "delivery.h"

#define TOKG_HOLDERS_MAX 16
#define TOKG_HOLDERS_CONNS (TOKG_HOLDERS_MAX + 8) /* beyond: not accepted before one ends */
#define TOKG_HOLD_GREETING_NS 1000000000ull
/* Times the limit: as long one that is in the way may hold the same embedding, though it goes on.
 */
#define TOKG_HOLDER_SLOW 10

struct tokg_holder {
	enum { TOKG_HOLDER_FREE, TOKG_HOLDER_GREETING, TOKG_HOLDER_HOLDING } state;
	int fd;
	int pid;
	_Atomic uint64_t *word; /* its cursor page */
	uint64_t cursor;	/* as last taken: clamped, never going back */
	uint64_t since_ns;	/* of the greeting; HOLDING: in the way since then, or 0 */
	uint64_t needed;	/* ... until it has come here */
	uint64_t way_ns;	/* in the way at every look since then, or 0 */
};

struct tokg_holder_counts {
	uint64_t attached, detached, refused, dropped;
};

struct tokg_holders {
	struct tokg_delivery *delivery;
	const struct tokg_device *device;
	uint32_t timeout_ms;
	struct tokg_listener listener;
	int epoll;
	bool deaf; /* no place for a connection: the listener is not watched */
	struct tokg_holder holder[TOKG_HOLDERS_CONNS];
	struct tokg_holder_counts counts;
};

/* False and `why`. */
bool tokg_holders_open(struct tokg_holders *h, struct tokg_delivery *delivery,
	const struct tokg_device *device, const char *path, uint32_t mode, uint32_t timeout_ms,
	struct tokg_error *why);
/* All see the end of file. */
void tokg_holders_close(struct tokg_holders *h);

/* Readable when there is something to do on sockets. */
int tokg_holders_fd(const struct tokg_holders *h);
void tokg_holders_turn(struct tokg_holders *h, uint64_t now_ns);
/* How far all of them are: the delivery's head, where there is none. Hot enough: no system call. */
uint64_t tokg_holders_passed(struct tokg_holders *h);

#endif
