/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets of the agent: create, replace a stale file, remove. Set-up only. */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

#include "peer.h"

struct tokg_listener {
	int fd; /* non-blocking; -1: none */
	struct sockaddr_un un;
	dev_t dev; /* of the socket file, to remove only our own */
	ino_t ino;
	uint64_t paused_ms; /* accepts nothing until then, for lack of descriptors */
	bool reported;	    /* ... which was reported, since the last accept */
};

/* `type`: SOCK_STREAM or SOCK_SEQPACKET. */
bool tokg_listen_unix(
	struct tokg_listener *l, const char *path, int type, uint32_t mode, struct tokg_error *err);
/* `host`: an address or a name; "": all addresses of this host. */
bool tokg_listen_tcp(
	struct tokg_listener *l, const char *host, uint16_t port, struct tokg_error *err);
/*
 * The next connection, non-blocking; -1: none. Without descriptors or memory the listener pauses
 * for a second, because epoll would report it again at once; `err` has the reason the first time,
 * and is empty otherwise.
 */
int tokg_listen_accept(struct tokg_listener *l, struct tokg_error *err);
/* True: do not poll it now. */
bool tokg_listen_is_paused(const struct tokg_listener *l);
void tokg_listen_close(struct tokg_listener *l);
