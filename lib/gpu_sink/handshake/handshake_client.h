/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's end of the handshake, in steps that never block: a worker's recovery may run
 * beside others' work. Set-up only.
 */
#ifndef TOKG_HANDSHAKE_CLIENT_H
#define TOKG_HANDSHAKE_CLIENT_H

#include <sys/socket.h>

#include "handshake.h"
#include "peer.h"

/* The agent's addresses. Resolving a name takes what it takes: once, at set-up. */
struct tokg_where {
	char name[160]; /* for messages */
	uint32_t n;
	socklen_t len[TOKG_ADDRESSES];
	struct sockaddr_storage addr[TOKG_ADDRESSES];
};
bool tokg_where_resolve(struct tokg_where *w, const struct tokg_target *t, struct tokg_error *err);

struct tokg_dial {
	enum {
		TOKG_DIAL_IDLE,
		TOKG_DIAL_CONNECT,
		TOKG_DIAL_HELLO,
		TOKG_DIAL_WELCOME,
		TOKG_DIAL_ADMITTED, /* the caller makes ready, then tokg_dial_ready */
		TOKG_DIAL_READY,
		TOKG_DIAL_ANSWER,
		TOKG_DIAL_DONE,
	} at;
	int fd;	       /* -1: none */
	int region_fd; /* came with the welcome; -1: none. Closed by tokg_dial_end or the caller */
	bool final;    /* it failed by the agent's last word or lie: asking again is of no use */
	uint32_t address; /* index in where->addr */
	size_t moved;	  /* bytes of the message under way */
	struct tokg_hello hello;
	struct tokg_welcome welcome;
	struct tokg_ready ready;
};

void tokg_dial_init(struct tokg_dial *d);
/* 0; the next step connects. d->hello is the caller's to fill before. */
void tokg_dial_begin(struct tokg_dial *d);
/*
 * As far as it goes now. 1: ADMITTED (the welcome is proved but for region_fd), or DONE; 0: not
 * yet; below 0 and `err`.
 */
int tokg_dial_step(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err);
void tokg_dial_ready(struct tokg_dial *d);
/* As tokg_dial_step, but no further than to the connection: 1. */
int tokg_dial_connect(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err);
/* Sleep until a step is worth it, at most `ms`. */
void tokg_dial_wait(const struct tokg_dial *d, int ms);
/* Closes all it has. */
void tokg_dial_end(struct tokg_dial *d);

#endif
