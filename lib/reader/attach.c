/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "reader.h"

#define MS_NS UINT64_C(1000000)
#define BACKLOG_PAUSE_MS 2 /* between attempts to connect while the backlog is full */
#define FDS_MAX (1 + TOKD_RINGS_MAX)

int
reader_fail(struct tokr_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return code;
}

static int
fail_connect(struct tokr_error *e, const char *path)
{
	const char *remedy = "is it the --socket of a dpdk-tokd?";

	e->sys_errno = errno;
	if (errno == ENOENT)
		remedy = "is dpdk-tokd running, with this --socket?";
	else if (errno == ECONNREFUSED)
		remedy = "its dpdk-tokd has ended: start it again";
	else if (errno == EACCES)
		remedy = "give this user's group access by --socket-group and --socket-mode";
	return reader_fail(e, TOKR_SYSTEM, "%s: %s: %s", path, strerror(errno), remedy);
}

static int
fail_errno(struct tokr_error *e, const char *path, const char *what)
{
	e->sys_errno = errno;
	return reader_fail(e, TOKR_SYSTEM, "%s: %s: %s", path, what, strerror(errno));
}

void
reader_message(const struct tokd_attach_rep *rep, char *text, size_t room)
{
	size_t n = strnlen(rep->message, sizeof(rep->message));

	n = n < room ? n : room - 1;
	for (size_t i = 0; i < n; i++) /* printable only */
		text[i] = rep->message[i] >= ' ' && rep->message[i] <= '~' ? rep->message[i] : '?';
	text[n] = '\0';
}

/* Waits for the answer. 0 or enum tokr_result. */
static int
wait_readable(struct tokr *r, uint64_t deadline_ns, const char *path, struct tokr_error *e)
{
	for (;;) {
		struct pollfd p = {.fd = r->fd, .events = POLLIN};
		uint64_t now = monotonic_ns();
		/* Rounded up: 0 ms would spin during the last millisecond. */
		uint64_t left = now < deadline_ns ? (deadline_ns - now + MS_NS - 1) / MS_NS : 0;
		int n = poll(&p, 1, (int)left);

		if (n > 0)
			return 0;
		if (n == 0 && left == 0)
			return reader_fail(e, TOKR_TIMEOUT,
				"%s: no answer to the attach request in time: is it the --socket "
				"of a running dpdk-tokd?",
				path);
		if (n < 0 && (errno != EINTR || r->interruptible))
			return fail_errno(e, path, "poll");
	}
}

/* Non-blocking: a server that does not accept must not block this call. */
static int
connect_to(struct tokr *r, const char *path, uint64_t deadline_ns, struct tokr_error *e)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(addr.sun_path)) {
		e->sys_errno = ENAMETOOLONG;
		return reader_fail(e, TOKR_SYSTEM,
			"%.100s...: longer than %zu bytes: is it the --socket of a dpdk-tokd?",
			path, sizeof(addr.sun_path) - 1);
	}
	strcpy(addr.sun_path, path);
	r->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (r->fd < 0)
		return fail_errno(e, path, "socket");
	while (connect(r->fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0) {
		if (errno != EAGAIN && errno != EINTR)
			return fail_connect(e, path);
		if (monotonic_ns() >= deadline_ns)
			return reader_fail(
				e, TOKR_TIMEOUT, "%s: does not accept connections in time", path);
		if (poll(NULL, 0, BACKLOG_PAUSE_MS) < 0 && r->interruptible)
			return fail_errno(e, path, "connect");
	}
	return 0;
}

/*
 * A peer that closed with the request unread makes Linux report that once, before what it sent
 * (sock_error() in __skb_try_recv_datagram()).
 */
static ssize_t
receive(int fd, struct msghdr *msg)
{
	ssize_t n = recvmsg(fd, msg, MSG_CMSG_CLOEXEC);

	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(fd, msg, MSG_CMSG_CLOEXEC);
	return n;
}

/* The answer and its descriptors, which the caller closes in any case. */
static int
take_answer(int fd, const char *path, struct tokd_attach_rep *rep, int *fds, uint32_t *n_fds,
	struct tokr_error *e)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	} control;
	struct iovec iov = {rep, sizeof(*rep)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = receive(fd, &msg);

	if (n < 0)
		return fail_errno(e, path, "recvmsg");
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c != NULL; c = CMSG_NXTHDR(&msg, c)) {
		size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		/* One message of at most FDS_MAX is all that fits `control`. */
		memcpy(fds, CMSG_DATA(c), got * sizeof(int));
		*n_fds = (uint32_t)got;
	}
	if (n == 0)
		return reader_fail(e, TOKR_GONE,
			"%s: closed without an answer: try again, or see the log of dpdk-tokd",
			path);
	if (n != sizeof(*rep) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
		return reader_fail(e, TOKR_INVALID,
			"%s: invalid attach reply of %zd bytes and %u descriptors", path, n,
			*n_fds);
	return 0;
}

static int
take_rings(struct tokr *r, const struct tokd_attach_rep *rep, const int *fds, uint32_t n_fds,
	struct tokr_error *e)
{
	const uint32_t cursors = r->mode == TOKR_READER;
	int rc = 0;

	if (rep->magic != TOKD_ATTACH_MAGIC || rep->version != TOKD_RING_VERSION)
		return reader_fail(e, TOKR_INVALID,
			"%s: magic 0x%x, version %u: must be 0x%x and %u", r->path, rep->magic,
			rep->version, TOKD_ATTACH_MAGIC, TOKD_RING_VERSION);
	if (rep->n_rings == 0) {
		char reason[sizeof(rep->message)];

		reader_message(rep, reason, sizeof(reason));
		return reader_fail(e, TOKR_REFUSED, "%s: refused: %s", r->path, reason);
	}
	if (rep->n_rings > TOKD_RINGS_MAX || n_fds != rep->n_rings + cursors)
		return reader_fail(e, TOKR_INVALID, "%s: %u descriptors for %u rings", r->path,
			n_fds, rep->n_rings);
	r->n_rings = rep->n_rings;
	r->instance = rep->instance;
	if (cursors)
		rc = reader_map_cursors(r, fds[0], e);
	for (uint32_t i = 0; rc == 0 && i < r->n_rings; i++)
		rc = reader_map_ring(r, i, fds[cursors + i], rep->start[i], e);
	return rc;
}

static int
attach(struct tokr *r, const char *path, uint64_t deadline_ns, struct tokr_error *e)
{
	const struct tokd_attach_req req = {.magic = TOKD_ATTACH_MAGIC,
		.version = TOKD_RING_VERSION,
		.mode = r->mode == TOKR_TAP ? TOKD_MODE_TAP : TOKD_MODE_READER};
	struct tokd_attach_rep rep;
	uint32_t n_fds = 0;
	int fds[FDS_MAX];
	int rc = connect_to(r, path, deadline_ns, e);

	if (rc != 0)
		return rc;
	strcpy(r->path, path);
	/* If the peer has closed, its refusal may still be readable. */
	if (send(r->fd, &req, sizeof(req), MSG_NOSIGNAL) != sizeof(req) && errno != EPIPE &&
		errno != ECONNRESET)
		return fail_errno(e, path, "send");
	rc = wait_readable(r, deadline_ns, path, e);
	if (rc == 0)
		rc = take_answer(r->fd, path, &rep, fds, &n_fds, e);
	if (rc == 0)
		rc = take_rings(r, &rep, fds, n_fds, e);
	for (uint32_t i = 0; i < n_fds; i++)
		close(fds[i]); /* mappings stay */
	return rc;
}

struct tokr *
tokr_attach(const char *path, int mode, int timeout_ms, struct tokr_error *error)
{
	struct tokr_error own;
	struct tokr_error *e = error != NULL ? error : &own;
	uint64_t limit = timeout_ms > 0 ? (uint64_t)timeout_ms : 0;
	struct tokr *r;

	memset(e, 0, sizeof(*e));
	if ((mode & ~TOKR_EINTR) != TOKR_READER && (mode & ~TOKR_EINTR) != TOKR_TAP) {
		reader_fail(e, TOKR_INVALID, "mode %d: must be TOKR_READER or TOKR_TAP", mode);
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL) {
		e->sys_errno = ENOMEM;
		reader_fail(e, TOKR_SYSTEM, "%.100s: cannot allocate a reader", path);
		return NULL;
	}
	r->fd = -1;
	r->mode = mode & ~TOKR_EINTR;
	r->interruptible = (mode & TOKR_EINTR) != 0;
	if (attach(r, path, monotonic_ns() + limit * MS_NS, e) == 0)
		return r;
	tokr_detach(r);
	return NULL;
}

void
tokr_part(struct tokr *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	r->gone = true;
	reader_fail(&r->error, TOKR_GONE, "%s: this reader has detached", r->path);
}

void
tokr_detach(struct tokr *r)
{
	if (r == NULL)
		return;
	if (r->fd >= 0)
		close(r->fd);
	reader_unmap(r);
	for (uint32_t i = 0; i < r->n_rings; i++)
		free(r->ring[i].held);
	free(r);
}
