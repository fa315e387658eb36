/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEEPALIVE_S 1
#define KEEPALIVE_PROBES 3
#define UNACKED_MS 4000

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* The buffer is for one, but its padding has space for a second, which the kernel uses. */
static int
take_descriptors(struct msghdr *m, int *fd)
{
	int got[CMSG_SPACE(sizeof(int)) / sizeof(int)];
	int surplus = (m->msg_flags & MSG_CTRUNC) != 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(got, CMSG_DATA(c), n * sizeof(int));
		for (size_t i = 0; i < n; i++) {
			if (fd != NULL && *fd < 0) {
				*fd = got[i];
			} else {
				close(got[i]);
				surplus = 1;
			}
		}
	}
	if (surplus)
		errno = EBADMSG;
	return surplus ? -1 : 0;
}

/* If the peer closed with unread bytes, Linux reports that once, before what the peer sent. */
static ssize_t
receive(int s, struct msghdr *m)
{
	const ssize_t n = recvmsg(s, m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	return n < 0 && errno == ECONNRESET ? recvmsg(s, m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) : n;
}

int
tokg_link_read(int s, void *to, size_t bytes, size_t *moved, int *fd)
{
	while (*moved < bytes) {
		union control control;
		struct iovec iov = {(char *)to + *moved, bytes - *moved};
		struct msghdr m = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes)};
		const ssize_t n = receive(s, &m);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		if (take_descriptors(&m, fd) != 0)
			return -1;
		if (n == 0) {
			errno = ECONNRESET;
			return -1;
		}
		*moved += (size_t)n;
	}
	return 1;
}

int
tokg_link_write(int s, const void *from, size_t bytes, size_t *moved)
{
	while (*moved < bytes) {
		const ssize_t n = send(s, (const char *)from + *moved, bytes - *moved,
			MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		*moved += (size_t)n;
	}
	return 1;
}

int
tokg_link_send_fd(int s, const void *from, size_t bytes, int fd)
{
	union control control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)from, bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(int));
	}
	n = sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0 && (size_t)n != bytes)
		errno = EAGAIN;
	return n >= 0 && (size_t)n == bytes ? 0 : -1;
}

void
tokg_link_tcp(int s)
{
	const int on = 1, idle = KEEPALIVE_S, probes = KEEPALIVE_PROBES, unacked = UNACKED_MS;

	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(s, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(s, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof(idle));
	setsockopt(s, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(s, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked, sizeof(unacked));
}

int
tokg_link_is_quiet(int s)
{
	char byte;
	const ssize_t n = recv(s, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 && (errno == EAGAIN || errno == EINTR);
}
