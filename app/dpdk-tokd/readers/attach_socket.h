/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket as a file: made, taken over from a dead process, removed. */
#ifndef TOKD_ATTACH_SOCKET_H
#define TOKD_ATTACH_SOCKET_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct tokd_socket {
	int fd;	   /* listening, non-blocking */
	dev_t dev; /* of the socket file: what is removed at the end is ours */
	ino_t ino;
	struct sockaddr_un addr;
};

/*
 * Listen at `path` with permission `mode`, owned by group `group` ((gid_t)-1: that of this
 * process). A socket file that nobody answers on is replaced; one that somebody answers on,
 * or a file that is no socket, is refused. Returns 0 or -errno with a message logged.
 */
int tokd_socket_open(struct tokd_socket *s, const char *path, uint32_t mode, gid_t group);
void tokd_socket_close(struct tokd_socket *s);

#endif
