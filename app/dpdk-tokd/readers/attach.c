/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include <monotonic.h>

#include "attach.h"
#include "log.h"

#define LISTENER UINT32_MAX /* epoll data; others are connection indices */
#define EVENTS_MAX 16
#define HANDSHAKE_MS 1 /* between checks of a worker's answer */
#define WATCH_MS 100   /* between checks of the rings, at most */
#define ACCEPT_PAUSE_MS 1000
#define REFUSE_PAUSE_MS 10  /* while connections cannot even be refused */
#define REFUSED_LOG_MS 1000 /* between log lines about refused connections */
#define CONNS (TOKD_CONNS_MAX + TOKD_REFUSED_MAX)

static void
enter(struct tokd_conn *c, enum tokd_conn_state state)
{
	c->state = state;
	c->since_ms = monotonic_ms();
}

static void
close_conn(struct tokd_conn *c)
{
	if (c->fd >= 0)
		close(c->fd); /* which takes it out of epoll */
	c->fd = -1;
}

static void refuse(struct tokd_attach *a, struct tokd_conn *c, const char *fmt, ...)
	__rte_format_printf(3, 4);

/* Sends the reason and closes. A reader that the workers know goes to LEAVING, others to FREE. */
static void
refuse(struct tokd_attach *a, struct tokd_conn *c, const char *fmt, ...)
{
	char reason[sizeof(((struct tokd_attach_rep *)0)->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	TOKD_LOG(
		control, WARNING, "reader of pid %d, uid %u refused: %s\n", c->pid, c->uid, reason);
	tokd_attach_say(c->fd, reason);
	close_conn(c);
	a->counts.refused++;
	if (c->state == TOKD_CONN_JOINING) {
		tokd_reader_leave(a, c);
		enter(c, TOKD_CONN_LEAVING);
	} else {
		tokd_reader_release(a, c);
		enter(c, TOKD_CONN_FREE);
	}
}

static void
disconnect(struct tokd_attach *a, struct tokd_conn *c)
{
	close_conn(c);
	if (c->state == TOKD_CONN_TAPPING) { /* unknown to the workers */
		tokd_reader_release(a, c);
		enter(c, TOKD_CONN_FREE);
		return;
	}
	tokd_reader_leave(a, c);
	enter(c, TOKD_CONN_LEAVING);
}

/* Not while the owner's readers are refused. Returns 0, or -errno with *reason. */
static int
is_welcome(struct tokd_attach *a, struct tokd_conn *c, const char **reason)
{
	static char text[sizeof(((struct tokd_attach_rep *)0)->message)];
	uint64_t wait_ms;

	c->owner = tokd_drops_owner(c->pid, c->uid);
	wait_ms = tokd_drops_wait(a, c->owner, monotonic_ms(), &c->drops);
	if (wait_ms == 0)
		return 0;
	snprintf(text, sizeof(text),
		"readers of this user and control group kept a ring full (%u dropped): read "
		"faster, and try again in %" PRIu64 " ms",
		c->drops, wait_ms);
	*reason = text;
	a->counts.backed_off++;
	return -EAGAIN;
}

/* A valid request of either mode. Returns 0, or -errno with *reason. */
static int
admit(struct tokd_attach *a, struct tokd_conn *c, uint32_t mode, const char **reason)
{
	int rc;

	if (mode == TOKD_MODE_READER) {
		rc = is_welcome(a, c, reason);
		if (rc == 0)
			rc = tokd_reader_join(a, c, reason);
		if (rc == 0)
			enter(c, TOKD_CONN_JOINING);
		return rc;
	}
	rc = tokd_tap_welcome(a, c, reason);
	if (rc == 0) {
		a->counts.taps_attached++;
		enter(c, TOKD_CONN_TAPPING);
		TOKD_LOG(control, NOTICE, "tap %u (pid %d, uid %u) attached\n", c->slot, c->pid,
			c->uid);
	}
	return rc;
}

static void
read_request(struct tokd_attach *a, struct tokd_conn *c)
{
	struct tokd_attach_req req = {0};
	/* MSG_TRUNC: the length that was sent. The kernel discards descriptors sent along. */
	ssize_t n = recv(c->fd, &req, sizeof(req), MSG_DONTWAIT | MSG_TRUNC);
	const char *reason;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_conn(c);
		enter(c, TOKD_CONN_FREE);
	} else if (n != sizeof(req)) {
		refuse(a, c, "attach request of %zd bytes: must have %zu", n, sizeof(req));
	} else if (req.magic != TOKD_ATTACH_MAGIC) {
		refuse(a, c, "not an attach request: magic 0x%08x, must be 0x%08x", req.magic,
			TOKD_ATTACH_MAGIC);
	} else if (req.version != TOKD_RING_VERSION) {
		refuse(a, c, "ring version %u is not supported: use %u", req.version,
			TOKD_RING_VERSION);
	} else if ((req.mode != TOKD_MODE_READER && req.mode != TOKD_MODE_TAP) ||
		   req.reserved != 0) {
		refuse(a, c, "mode %u, reserved %u: must be %d (reader) or %d (tap), and 0",
			req.mode, req.reserved, TOKD_MODE_READER, TOKD_MODE_TAP);
	} else if (admit(a, c, req.mode, &reason) != 0) {
		refuse(a, c, "%s", reason);
	}
}

/* After its request a reader only closes. */
static void
read_end(struct tokd_attach *a, struct tokd_conn *c)
{
	const bool tap = c->state == TOKD_CONN_TAPPING;
	const char *kind = tap ? "tap" : "reader";
	char byte;
	ssize_t n = recv(c->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		TOKD_LOG(control, WARNING,
			"%s %u (pid %d) sent %zd bytes after its request: detached\n", kind,
			c->slot, c->pid, n);
		tokd_attach_say(c->fd, "it sent bytes after its request");
	} else {
		TOKD_LOG(control, NOTICE, "%s %u (pid %d) detached\n", kind, c->slot, c->pid);
	}
	if (tap)
		a->counts.taps_detached++;
	else if (c->state == TOKD_CONN_READING) /* a JOINING one was not attached yet */
		a->counts.detached++;
	disconnect(a, c);
}

/* Stop watching the listener: epoll would report a waiting connection again and again. */
static void
pause_accept(struct tokd_attach *a, uint32_t ms)
{
	epoll_ctl(a->epoll, EPOLL_CTL_DEL, a->socket.fd, NULL);
	a->accept_again_ms = monotonic_ms() + ms;
}

static struct tokd_conn *
free_conn(struct tokd_attach *a)
{
	for (uint32_t i = 0; i < CONNS; i++) {
		if (a->conn[i].state == TOKD_CONN_FREE)
			return &a->conn[i];
	}
	return NULL;
}

/* Sends the reason and an end of file, and waits for the peer to close. */
static void
refuse_extra(struct tokd_attach *a, struct tokd_conn *c)
{
	tokd_attach_say(c->fd, "too many connections at once: try again");
	shutdown(c->fd, SHUT_WR);
	enter(c, TOKD_CONN_REFUSED);
	a->counts.refused++;
	a->n_refused++;
}

/* Discards what it sends. */
static void
wait_for_end(struct tokd_conn *c)
{
	char byte;
	ssize_t n = recv(c->fd, &byte, sizeof(byte), MSG_DONTWAIT | MSG_TRUNC);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	close_conn(c);
	enter(c, TOKD_CONN_FREE);
}

static void
log_refused(struct tokd_attach *a, uint64_t now)
{
	if (a->n_refused == 0 || now < a->refused_log_ms)
		return;
	TOKD_LOG(control, WARNING,
		"control socket: %u connections refused: the limit is %u; close some\n",
		a->n_refused, TOKD_CONNS_MAX);
	a->n_refused = 0;
	a->refused_log_ms = now + REFUSED_LOG_MS;
}

static void
accept_one(struct tokd_attach *a)
{
	struct epoll_event ev = {.events = EPOLLIN};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	struct tokd_conn *c = free_conn(a);
	int fd;

	if (c == NULL) {
		pause_accept(a, REFUSE_PAUSE_MS);
		return;
	}
	fd = accept4(a->socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
			return;
		TOKD_LOG(control, ERR,
			"control socket: accept: %s; retrying in %d ms; if the limit of open files "
			"is reached, raise LimitNOFILE or ulimit -n\n",
			strerror(errno), ACCEPT_PAUSE_MS);
		pause_accept(a, ACCEPT_PAUSE_MS);
		return;
	}
	ev.data.u32 = (uint32_t)(c - a->conn);
	if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		TOKD_LOG(control, ERR,
			"control socket: cannot watch a connection (epoll_ctl): %s\n",
			strerror(errno));
		close(fd);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len);
	*c = (struct tokd_conn){.fd = fd, .cursor_fd = -1, .pid = peer.pid, .uid = peer.uid};
	if (c < a->conn + TOKD_CONNS_MAX)
		enter(c, TOKD_CONN_CONNECTED);
	else
		refuse_extra(a, c);
}

static void
check_conn(struct tokd_attach *a, struct tokd_conn *c, uint64_t now)
{
	uint32_t missing;
	int rc;

	switch (c->state) {
	case TOKD_CONN_CONNECTED:
		if (now - c->since_ms > TOKD_REQUEST_MS)
			refuse(a, c, "no attach request within %d ms", TOKD_REQUEST_MS);
		break;
	case TOKD_CONN_JOINING:
		if (!tokd_reader_in_state(a, c, TOKD_READER_ACTIVE, &missing)) {
			if (now - c->since_ms > TOKD_JOIN_MS)
				refuse(a, c, "worker %u did not let the reader join within %d ms",
					missing, TOKD_JOIN_MS);
			break;
		}
		rc = tokd_reader_welcome(a, c);
		if (rc != 0) {
			refuse(a, c, "cannot send the reply: %s", strerror(-rc));
			break;
		}
		a->counts.attached++;
		enter(c, TOKD_CONN_READING);
		TOKD_LOG(control, NOTICE, "reader %u (pid %d, uid %u) attached\n", c->slot, c->pid,
			c->uid);
		break;
	case TOKD_CONN_LEAVING:
		if (tokd_reader_in_state(a, c, TOKD_READER_FREE, &missing)) {
			tokd_reader_release(a, c);
			enter(c, TOKD_CONN_FREE);
		}
		break;
	case TOKD_CONN_REFUSED:
		if (now - c->since_ms > TOKD_REFUSED_MS) {
			close_conn(c);
			enter(c, TOKD_CONN_FREE);
		}
		break;
	default:
		break;
	}
}

static void
drop_overdue(struct tokd_attach *a)
{
	for (uint32_t w = 0; w < a->n_rings; w++) {
		struct tokd_conn *c = tokd_reader_overdue(a, w);
		char reason[sizeof(((struct tokd_attach_rep *)0)->message)];

		if (c == NULL)
			continue;
		snprintf(reason, sizeof(reason),
			"it kept the token ring of worker %u full for %u ms of %u s: read faster, or "
			"raise --ring-size or --reader-timeout",
			w, tokd_reader_hold_ms(a, c), TOKD_HOLD_WINDOW_MS / 1000);
		TOKD_LOG(control, WARNING, "reader %u (pid %d) dropped: %s\n", c->slot, c->pid,
			reason);
		tokd_attach_say(c->fd, reason);
		a->counts.dropped++;
		tokd_drops_add(a, c->owner, monotonic_ms());
		disconnect(a, c);
	}
}

static void
listen_again(struct tokd_attach *a)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};

	if (a->accept_again_ms == 0 || monotonic_ms() < a->accept_again_ms)
		return;
	if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->socket.fd, &ev) == 0)
		a->accept_again_ms = 0;
}

void
tokd_attach_poll(struct tokd_attach *a)
{
	struct epoll_event ev[EVENTS_MAX];
	int n = epoll_wait(a->epoll, ev, EVENTS_MAX, 0);
	uint64_t now;

	pthread_mutex_lock(&a->lock);
	listen_again(a);
	for (int i = 0; i < n; i++) {
		struct tokd_conn *c;

		if (ev[i].data.u32 == LISTENER) {
			accept_one(a);
			continue;
		}
		c = &a->conn[ev[i].data.u32];
		if (c->state == TOKD_CONN_CONNECTED)
			read_request(a, c);
		else if (c->state == TOKD_CONN_JOINING || c->state == TOKD_CONN_READING ||
			 c->state == TOKD_CONN_TAPPING)
			read_end(a, c);
		else if (c->state == TOKD_CONN_REFUSED)
			wait_for_end(c);
	}
	now = monotonic_ms(); /* after any since_ms set above */
	for (uint32_t i = 0; i < CONNS; i++)
		check_conn(a, &a->conn[i], now);
	log_refused(a, now);
	drop_overdue(a);
	pthread_mutex_unlock(&a->lock);
}

int
tokd_attach_wait_ms(const struct tokd_attach *a)
{
	int wait = (int)a->reader_timeout_ms / 4;

	wait = RTE_MAX(HANDSHAKE_MS, wait);
	wait = RTE_MIN(WATCH_MS, wait);

	for (uint32_t i = 0; i < TOKD_CONNS_MAX; i++) {
		if (a->conn[i].state == TOKD_CONN_JOINING || a->conn[i].state == TOKD_CONN_LEAVING)
			wait = HANDSHAKE_MS;
	}
	return wait;
}

int
tokd_attach_open(struct tokd_attach *a, const char *path, uint32_t mode, gid_t group,
	struct tokd_ring *const *ring, uint32_t n_rings, uint64_t instance,
	uint32_t reader_timeout_ms)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = LISTENER};
	int rc;

	memset(a, 0, sizeof(*a));
	a->ring = ring;
	a->n_rings = n_rings;
	a->instance = instance;
	a->reader_timeout_ms = reader_timeout_ms;
	a->tsc_per_ms = rte_get_tsc_hz() / 1000;
	for (uint32_t w = 0; w < n_rings; w++)
		ring[w]->hold_ms = reader_timeout_ms;
	rc = tokd_socket_open(&a->socket, path, mode, group);
	if (rc != 0)
		return rc;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (a->epoll < 0 || epoll_ctl(a->epoll, EPOLL_CTL_ADD, a->socket.fd, &ev) != 0) {
		rc = -errno;
		TOKD_LOG(control, ERR, "control socket %s: epoll: %s\n", path, strerror(-rc));
		if (a->epoll >= 0)
			close(a->epoll);
		tokd_socket_close(&a->socket);
		return rc;
	}
	pthread_mutex_init(&a->lock, NULL);
	return 0;
}

void
tokd_attach_close(struct tokd_attach *a)
{
	/* First: a reader that attaches again must not reach this process. */
	tokd_socket_close(&a->socket);
	for (uint32_t i = 0; i < CONNS; i++) {
		struct tokd_conn *c = &a->conn[i];

		if (c->state == TOKD_CONN_FREE)
			continue;
		close_conn(c);
		tokd_reader_release(a, c);
	}
	close(a->epoll);
	pthread_mutex_destroy(&a->lock);
}

uint32_t
tokd_attach_list(struct tokd_attach *a, struct tokd_reader_info *info, uint32_t room,
	struct tokd_attach_counts *counts)
{
	uint64_t now = monotonic_ms();
	uint32_t n = 0;

	pthread_mutex_lock(&a->lock);
	*counts = a->counts;
	for (uint32_t slot = 0; slot < TOKD_SLOTS_MAX && n < room; slot++) {
		const struct tokd_conn *c = a->slot[slot];

		if (c == NULL)
			continue;
		info[n] = (struct tokd_reader_info){.slot = slot,
			.state = c->state,
			.pid = c->pid,
			.uid = c->uid,
			.state_ms = now - c->since_ms};
		for (uint32_t w = 0; w < a->n_rings && c->state == TOKD_CONN_READING; w++) {
			uint64_t lag = tokd_reader_lag(a, c, w);

			if (lag > info[n].lag_bytes) {
				info[n].lag_bytes = lag;
				info[n].lag_ring = w;
			}
		}
		n++;
	}
	pthread_mutex_unlock(&a->lock);
	return n;
}

void
tokd_attach_held(struct tokd_attach *a, uint64_t *held)
{
	pthread_mutex_lock(&a->lock);
	for (uint32_t w = 0; w < a->n_rings; w++) {
		held[w] = 0;
		for (uint32_t slot = 0; slot < TOKD_READERS_MAX; slot++) {
			const struct tokd_conn *c = a->slot[slot];

			if (c != NULL && c->state == TOKD_CONN_READING)
				held[w] = RTE_MAX(held[w], tokd_reader_lag(a, c, w));
		}
	}
	pthread_mutex_unlock(&a->lock);
}
