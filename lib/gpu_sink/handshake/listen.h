/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's listening sockets: made, taken over from a dead process, removed. Set-up only. */
#ifndef TOKG_LISTEN_H
#define TOKG_LISTEN_H

#include <sys/types.h>
#include <sys/un.h>

#include "peer.h"

struct tokg_listener {
	int fd; /* non-blocking; -1: none */
	struct sockaddr_un un;
	dev_t dev; /* of the socket file: what is removed at the end is ours */
	ino_t ino;
	uint64_t rests_ms; /* until then nobody is taken: there were no descriptors */
	bool said;	   /* so, since the last one that was taken */
};

/* `type`: SOCK_STREAM or SOCK_SEQPACKET. */
bool tokg_listen_unix(
	struct tokg_listener *l, const char *path, int type, uint32_t mode, struct tokg_error *err);
/* `host`: an address or a name; "": all addresses of this host. */
bool tokg_listen_tcp(
	struct tokg_listener *l, const char *host, uint16_t port, struct tokg_error *err);
/*
 * The next connection, non-blocking; -1: none. Where the system has no descriptor or memory for one
 * the listener rests for a second, as it would be readable at once again, for ever; `err` has the
 * words the first time, and is empty otherwise.
 */
int tokg_listen_take(struct tokg_listener *l, struct tokg_error *err);
/* Do not poll it now. */
bool tokg_listen_rests(const struct tokg_listener *l);
void tokg_listen_end(struct tokg_listener *l);

#endif
