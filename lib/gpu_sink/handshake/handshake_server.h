/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent's end of the handshake: accepts, reads hellos, answers, and watches granted
 * connections. One thread, which never blocks here. A peer that is slow, silent or invalid delays
 * nobody else, and is refused or dropped in time. The owner's `grant` decides what a hello gets.
 *
 *   accept ─▶ hello ─▶ grant ─▶ welcome ─▶ ready ─▶ ready ─▶ joined ─▶ end of connection ─▶ left
 *               1 s     5 s                  2 s
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handshake.h"
#include "peer.h"

#define TOKG_HELLO_MS 1000 /* from accept to a whole hello */
#define TOKG_GRANT_MS 5000 /* as long as grant says "not yet" */
#define TOKG_READY_MS 2000 /* from welcome to ready */
#define TOKG_NEWCOMERS 16  /* connections that have not joined yet; more are not accepted */

struct tokg_server;

/*
 * Each connection has an id that is never reused. All are called from tokg_server_poll (`left` from
 * tokg_server_drop too), on its thread.
 */
struct tokg_server_calls {
	/*
	 * A well-formed hello: magic and version match, the transport fits the socket, resume is
	 * below TOKG_PRODUCERS_MAX or TOKG_NO_PRODUCER, n_vocabs is in range. grant checks producer
	 * slot, epoch, vocabularies and ids. `w` has magic, version and NO_PRODUCER set, all else
	 * 0.
	 *
	 *   1: granted: `w` is filled, `*fd` is the region's descriptor (shm, cuda; still the
	 *      owner's) or -1 (verbs). The producer slot's former connection may be dropped here.
	 *   0: not yet (a producer slot is about to be free): called again each turn, and refused
	 *      with w->message after TOKG_GRANT_MS.
	 *  -1: refused; w->message says why.
	 */
	int (*grant)(void *owner, uint64_t id, const struct tokg_hello *hello,
		struct tokg_welcome *w, int *fd);
	/* Both sides are ready: the producer posts from now on. */
	void (*joined)(void *owner, uint64_t id);
	/* A granted connection has ended, joined or not. */
	void (*left)(void *owner, uint64_t id);
	/* Cannot accept for lack of descriptors; called once until it can again. Or NULL. */
	void (*starved)(void *owner, const struct tokg_error *err);
};

struct tokg_server_config {
	const char *path; /* unix socket for shm and cuda; NULL: none */
	uint32_t mode;	  /* its permissions */
	const char *host; /* TCP, for verbs: address or name; "": all addresses; NULL: none */
	uint16_t port;	  /* 0: TOKG_TCP_PORT */
	struct tokg_server_calls calls;
	void *owner;
};

/*
 * NULL and `err`. Replaces a socket file that no process serves. It is an error if one does, or if
 * the file is not a socket.
 */
struct tokg_server *tokg_server_open(const struct tokg_server_config *c, struct tokg_error *err);
/* Closes all connections without calling `left`; removes the socket file if it is still ours. */
void tokg_server_close(struct tokg_server *s);

/* Readable when tokg_server_poll has something to do: for the owner's own poll. */
int tokg_server_fd(const struct tokg_server *s);
/* Never blocks. Call at least every 100 ms: it enforces the time limits. */
void tokg_server_poll(struct tokg_server *s);
/* Ends a connection; calls `left` if it was granted. Does nothing for an id that is gone. */
void tokg_server_drop(struct tokg_server *s, uint64_t id);
