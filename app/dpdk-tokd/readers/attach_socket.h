/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of the control socket: create, replace a stale one, remove. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

struct tokd_socket {
	int fd;	   /* listening, non-blocking */
	dev_t dev; /* of the socket file, to remove only our own */
	ino_t ino;
	struct sockaddr_un addr;
};

/*
 * Listen at `path` with permission `mode` and group `group` ((gid_t)-1: that of this process). A
 * socket file that no process serves is replaced. It is an error if one does, or if the file is not
 * a socket. Returns 0, or -errno with a message logged.
 */
int tokd_socket_open(struct tokd_socket *s, const char *path, uint32_t mode, gid_t group);
void tokd_socket_close(struct tokd_socket *s);
