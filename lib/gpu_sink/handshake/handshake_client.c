/* SPDX-License-Identifier: BSD-3-Clause */
#include "handshake_client.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "hello.h"
#include "link.h"
#include "inside.h"

#define CONNECT_PAUSE_MS 2

bool
tokg_target_resolve(struct tokg_target *t, struct tokg_error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
	struct addrinfo *list;
	char port[8];
	int rc;

	if (t->kind != TOKG_VERBS || t->n_at > 0)
		return true;
	snprintf(port, sizeof(port), "%u", t->port);
	rc = getaddrinfo(t->address, port, &hints, &list);
	if (rc != 0)
		return tokg_wrong(
			err, "GPU agent at %s port %s: %s", t->address, port, gai_strerror(rc));
	for (const struct addrinfo *a = list; a != NULL && t->n_at < TOKG_ADDRESSES;
		a = a->ai_next) {
		memcpy(&t->at[t->n_at], a->ai_addr, a->ai_addrlen);
		t->at_len[t->n_at++] = a->ai_addrlen;
	}
	freeaddrinfo(list);
	return true;
}

static bool
where_host(struct tokg_where *w, const struct tokg_target *t, struct tokg_error *err)
{
	struct tokg_target known = *t;

	if (!tokg_target_resolve(&known, err))
		return false;
	snprintf(w->name, sizeof(w->name), "GPU agent at %s port %u", t->address, t->port);
	w->n = known.n_at;
	memcpy(w->len, known.at_len, sizeof(w->len));
	memcpy(w->addr, known.at, sizeof(w->addr));
	return true;
}

bool
tokg_where_resolve(struct tokg_where *w, const struct tokg_target *t, struct tokg_error *err)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	memset(w, 0, sizeof(*w));
	if (t->kind == TOKG_VERBS)
		return where_host(w, t, err);
	static_assert(sizeof(un.sun_path) >= sizeof(t->address), "the path must fit");
	memcpy(un.sun_path, t->address, sizeof(t->address));
	snprintf(w->name, sizeof(w->name), "GPU agent at %s", t->address);
	memcpy(&w->addr[0], &un, sizeof(un));
	w->len[0] = sizeof(un);
	w->n = 1;
	return true;
}

void
tokg_dial_init(struct tokg_dial *d)
{
	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->region_fd = -1;
}

void
tokg_dial_end(struct tokg_dial *d)
{
	if (d->fd >= 0)
		close(d->fd);
	if (d->region_fd >= 0)
		close(d->region_fd);
	d->fd = -1;
	d->region_fd = -1;
	d->at = TOKG_DIAL_IDLE;
}

void
tokg_dial_begin(struct tokg_dial *d)
{
	tokg_dial_end(d);
	d->at = TOKG_DIAL_CONNECT;
	d->final = false;
	d->address = 0;
	d->moved = 0;
}

static int
lost(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err, const char *what)
{
	tokg_wrong(err, "%s: %s: %s", w->name, what, strerror(errno));
	return -1;
}

/* The agent's answer is invalid: do not retry. */
static int
refused(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	const struct tokg_error words = *err;

	d->final = true;
	tokg_wrong(err, "%s: %.200s", w->name, words.text);
	return -1;
}

static const char *
hint(int error)
{
	switch (error) {
	case EACCES:
		return "its --socket-mode does not let this user in: connect";
	case EPERM:
		return "forbidden by a firewall, or by the unit without IPAddressAllow: connect";
	case EPROTOTYPE:
		return "that is the subscribers' socket, use that of --listen: connect";
	default:
		return "is tokd-gpu running there? connect";
	}
}

/* 0 if the backlog is full (unix) or the connection is in progress (TCP). */
static int
step_connect(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	const struct sockaddr *a = (const struct sockaddr *)&w->addr[d->address];

	if (d->fd < 0)
		d->fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return lost(d, w, err, "socket");
	if (connect(d->fd, a, w->len[d->address]) == 0 || errno == EISCONN) {
		if (a->sa_family != AF_UNIX)
			tokg_link_tcp(d->fd);
		d->at = TOKG_DIAL_HELLO;
		d->moved = 0;
		return 1;
	}
	if (errno == EAGAIN || errno == EINPROGRESS || errno == EALREADY || errno == EINTR)
		return 0;
	if (d->address + 1 < w->n) {
		close(d->fd);
		d->fd = -1;
		d->address++;
		return 0;
	}
	return lost(d, w, err, hint(errno));
}

static int
step_read(struct tokg_dial *d, const struct tokg_where *w, void *to, size_t bytes, int *fd,
	struct tokg_error *err)
{
	const int rc = tokg_link_read(d->fd, to, bytes, &d->moved, fd);

	if (rc >= 0)
		return rc;
	if (errno == EBADMSG) {
		tokg_wrong(err, "sent unexpected descriptors");
		return refused(d, w, err);
	}
	return lost(d, w, err, "closed during the handshake");
}

static int
step_write(struct tokg_dial *d, const struct tokg_where *w, const void *from, size_t bytes,
	struct tokg_error *err)
{
	const int rc = tokg_link_write(d->fd, from, bytes, &d->moved);

	/* If the peer has closed, its reason may still be readable. */
	if (rc < 0 && (errno == EPIPE || errno == ECONNRESET))
		return 1;
	return rc >= 0 ? rc : lost(d, w, err, "send");
}

static int
step_welcome(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	const bool wants_fd = d->hello.transport != TOKG_VERBS;
	const int rc = step_read(d, w, &d->welcome, sizeof(d->welcome), &d->region_fd, err);

	if (rc <= 0)
		return rc;
	if (!tokg_welcome_proved(&d->hello, &d->welcome, err)) {
		refused(d, w, err);
		d->final = d->welcome.magic != TOKG_WELCOME_MAGIC || d->welcome.again != 1;
		return -1;
	}
	if ((d->region_fd >= 0) != wants_fd) {
		tokg_wrong(err, wants_fd ? "granted a producer slot, but sent no memory"
					 : "sent a descriptor, which verbs does not use");
		return refused(d, w, err);
	}
	d->at = TOKG_DIAL_GRANTED;
	return 1;
}

static int
step_answer(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	const int rc = step_read(d, w, &d->ready, sizeof(d->ready), NULL, err);

	if (rc <= 0)
		return rc;
	if (d->ready.magic != TOKG_READY_MAGIC || d->ready.producer != d->welcome.producer) {
		tokg_wrong(err, "ready with magic 0x%x for producer %u: must be 0x%x for %u",
			d->ready.magic, d->ready.producer, TOKG_READY_MAGIC, d->welcome.producer);
		return refused(d, w, err);
	}
	d->at = TOKG_DIAL_DONE;
	return 1;
}

static int
step_once(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	int rc;

	switch (d->at) {
	case TOKG_DIAL_CONNECT:
		return step_connect(d, w, err);
	case TOKG_DIAL_WELCOME:
		return step_welcome(d, w, err);
	case TOKG_DIAL_ANSWER:
		return step_answer(d, w, err);
	case TOKG_DIAL_HELLO:
		rc = step_write(d, w, &d->hello, sizeof(d->hello), err);
		break;
	default:
		rc = step_write(d, w, &d->ready, sizeof(d->ready), err);
		break;
	}
	if (rc == 1) {
		d->at = d->at == TOKG_DIAL_HELLO ? TOKG_DIAL_WELCOME : TOKG_DIAL_ANSWER;
		d->moved = 0;
	}
	return rc;
}

int
tokg_dial_step(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	while (d->at != TOKG_DIAL_GRANTED && d->at != TOKG_DIAL_DONE) {
		const int rc = step_once(d, w, err);

		if (rc <= 0)
			return rc;
	}
	return 1;
}

int
tokg_dial_connect(struct tokg_dial *d, const struct tokg_where *w, struct tokg_error *err)
{
	return d->at == TOKG_DIAL_CONNECT ? step_connect(d, w, err) : 1;
}

void
tokg_dial_ready(struct tokg_dial *d)
{
	d->ready.magic = TOKG_READY_MAGIC;
	d->ready.producer = d->welcome.producer;
	d->moved = 0;
	d->at = TOKG_DIAL_READY;
}

void
tokg_dial_wait(const struct tokg_dial *d, int ms)
{
	const bool reads = d->at == TOKG_DIAL_WELCOME || d->at == TOKG_DIAL_ANSWER;
	struct pollfd p = {.fd = d->fd, .events = reads ? POLLIN : POLLOUT};

	/* poll() reports a unix socket as ready while the backlog is full. */
	if (d->at == TOKG_DIAL_CONNECT)
		poll(NULL, 0, ms < CONNECT_PAUSE_MS ? ms : CONNECT_PAUSE_MS);
	else
		poll(&p, 1, ms);
}
