/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's end of the handshake: listens, reads hellos, answers, and watches the connections of
 * those that were let in. One thread, which never blocks in here; whoever is slow, silent or lies
 * holds up nobody else and is refused or dropped in time. What a hello asks for is decided by the
 * owner's `grant`.
 *
 *   accept ─▶ hello ─▶ grant ─▶ welcome ─▶ ready ─▶ ready ─▶ joined ─▶ end of connection ─▶ left
 *               1 s     5 s                  2 s
 */
#ifndef TOKG_HANDSHAKE_SERVER_H
#define TOKG_HANDSHAKE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "handshake.h"
#include "peer.h"

#define TOKG_HELLO_MS 1000 /* from accept to a whole hello */
#define TOKG_GRANT_MS 5000 /* as long as grant says "not yet" */
#define TOKG_READY_MS 2000 /* from welcome to ready */
#define TOKG_NEWCOMERS                                                                             \
	16 /* connections at once that have not joined yet; more are not accepted                  \
	    */

struct tokg_server;

/*
 * A connection is known by an id that is never used again. All are called out of tokg_server_turn
 * (left: out of tokg_server_drop too), by its thread.
 */
struct tokg_server_calls {
	/*
	 * A hello, right in its form: magic, version, transport fits the socket it came by, resume
	 * below TOKG_PRODUCERS_MAX or TOKG_NO_PRODUCER, n_vocabs in range. Whether its place,
	 * epoch, vocabularies and ids are, is for grant to say. `w` comes with magic, version and
	 * NO_PRODUCER set, all else 0.
	 *
	 *   1: let in: all of `w` is filled (producer too), and `*fd` is the region's memfd (shm,
	 *      cuda; stays the owner's) or stays -1 (verbs). A connection that had the place before
	 *      may be dropped from here.
	 *   0: not yet (a place is about to be free): asked again every turn, and refused with
	 *      w->message after TOKG_GRANT_MS.
	 *  -1: refused; w->message says why.
	 */
	int (*grant)(void *owner, uint64_t id, const struct tokg_hello *hello,
		struct tokg_welcome *w, int *fd);
	/* The producer is ready, and was told that we are: from now on it posts. */
	void (*joined)(void *owner, uint64_t id);
	/* One that was let in (grant: 1), joined or not, is gone. */
	void (*left)(void *owner, uint64_t id);
	/* Nobody can be taken, for want of descriptors; said once, until somebody is. Or NULL. */
	void (*starved)(void *owner, const struct tokg_error *why);
};

struct tokg_server_config {
	const char *path; /* unix socket for shm and cuda; NULL: none */
	uint32_t mode;	  /* its permissions */
	const char *host; /* TCP, for verbs: an address or a name; "": all; NULL: none */
	uint16_t port;	  /* 0: TOKG_TCP_PORT */
	struct tokg_server_calls calls;
	void *owner;
};

/*
 * NULL and `why`. A socket file that nobody answers on is replaced; one that somebody answers on,
 * or a file that is no socket, is refused.
 */
struct tokg_server *tokg_server_open(const struct tokg_server_config *c, struct tokg_error *why);
/* Ends all connections without calling `left`, and removes the socket file if it is still ours. */
void tokg_server_close(struct tokg_server *s);

/* Readable when tokg_server_turn has something to do: for the owner's own poll. */
int tokg_server_fd(const struct tokg_server *s);
/* Does what there is to do, without blocking. Call it at least every 100 ms: it keeps the limits.
 */
void tokg_server_turn(struct tokg_server *s);
/* End a connection: `left` is called for one that was let in. An id that is gone: nothing. */
void tokg_server_drop(struct tokg_server *s, uint64_t id);

#endif
