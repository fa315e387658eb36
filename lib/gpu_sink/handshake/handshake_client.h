/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The producer's end of the handshake, in steps that never block: one thread may recover several
 * workers. Set-up only.
 */
#pragma once

#include <sys/socket.h>

#include "handshake.h"
#include "peer.h"

/* The agent's addresses. Resolving a name may block: once, at set-up. */
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
		TOKG_DIAL_GRANTED, /* the caller prepares, then calls tokg_dial_ready */
		TOKG_DIAL_READY,
		TOKG_DIAL_ANSWER,
		TOKG_DIAL_DONE,
	} at;
	int fd;		  /* -1: none */
	int region_fd;	  /* from the welcome; -1: none. Closed by tokg_dial_end or the caller */
	bool final;	  /* the agent refused for good, or is invalid: do not retry */
	uint32_t address; /* index in where->addr */
	size_t moved;	  /* bytes of the current message */
	struct tokg_hello hello;
	struct tokg_welcome welcome;
	struct tokg_ready ready;
};

void tokg_dial_init(struct tokg_dial *d);
/* The next step connects. The caller has filled d->hello. */
void tokg_dial_begin(struct tokg_dial *d);
/*
 * As far as possible without blocking. 1: GRANTED (the welcome is validated, except region_fd), or
 * DONE; 0: not yet; below 0 and `err`.
 */
int tokg_dial_step(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err);
void tokg_dial_ready(struct tokg_dial *d);
/* As tokg_dial_step, but only until connected: 1. */
int tokg_dial_connect(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err);
/* Sleep until the next step can progress, at most `ms`. */
void tokg_dial_wait(const struct tokg_dial *d, int ms);
/* Closes all descriptors. */
void tokg_dial_end(struct tokg_dial *d);
