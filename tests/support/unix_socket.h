/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets of the Unix domain, and messages with descriptors. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 72

static inline int
unix_connect(const char *path, int type)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (snprintf(at.sun_path, sizeof(at.sun_path), "%s", path) < (int)sizeof(at.sun_path) &&
		connect(s, (struct sockaddr *)&at, sizeof(at)) == 0)
		return s;
	close(s);
	return -1;
}

static inline int
unix_listen(const char *path, int type, int backlog)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (snprintf(at.sun_path, sizeof(at.sun_path), "%s", path) < (int)sizeof(at.sun_path) &&
		bind(s, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(s, backlog) == 0)
		return s;
	close(s);
	return -1;
}

union descriptors_room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

static inline ssize_t
descriptors_send(int s, const void *bytes, size_t n, const int *fds, size_t n_fds, int flags)
{
	union descriptors_room room = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)bytes, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (n_fds > 0) {
		m.msg_control = room.bytes;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	return sendmsg(s, &m, flags);
}

/* To fds, DESCRIPTORS_MAX at the most. A message that is longer than n bytes has n + 1. */
static inline ssize_t
descriptors_receive(int s, void *bytes, size_t n, int *fds, int *n_fds, int flags)
{
	union descriptors_room room;
	struct iovec iov = {bytes, n};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = room.bytes,
		.msg_controllen = sizeof(room.bytes)};
	const ssize_t got = recvmsg(s, &m, flags | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *c = got >= 0 ? CMSG_FIRSTHDR(&m) : NULL;

	*n_fds = c != NULL ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
	if (c != NULL)
		memcpy(fds, CMSG_DATA(c), (size_t)*n_fds * sizeof(int));
	return got >= 0 && m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? (ssize_t)n + 1 : got;
}
