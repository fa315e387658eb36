/* SPDX-License-Identifier: BSD-3-Clause */
#include "handshake_server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <monotonic.h>

#include "hello.h"
#include "link.h"
#include "listen.h"
#include "inside.h"

#define CONNECTIONS_MAX (TOKG_PRODUCERS_MAX + TOKG_NEWCOMERS)
#define EVENTS 32
#define LISTENERS 2 /* unix, TCP */

struct connection {
	enum { FREE, HELLO, ASKING, READY, JOINED } at;
	int fd;
	bool tcp, event;
	uint64_t id, end_ms;
	size_t moved;
	struct tokg_hello hello;
	struct tokg_welcome welcome;
	struct tokg_ready ready;
};

struct tokg_server {
	struct tokg_server_calls calls;
	void *owner;
	int epoll;
	struct tokg_listener listener[LISTENERS];
	bool listening; /* else epoll does not watch the listeners: connections wait in the backlog
			 */
	uint64_t next_id;
	struct connection c[CONNECTIONS_MAX];
};

/* FREE first: `left` may call back. */
static void
end(struct tokg_server *s, struct connection *c)
{
	const bool was_granted = c->at == READY || c->at == JOINED;

	close(c->fd);
	c->at = FREE;
	if (was_granted)
		s->calls.left(s->owner, c->id);
}

static void
refuse(int fd, struct tokg_welcome *w)
{
	size_t moved = 0;

	w->producer = TOKG_NO_PRODUCER;
	w->message[sizeof(w->message) - 1] = '\0';
	(void)tokg_link_write(fd, w, sizeof(*w), &moved);
}

static void
init_welcome(struct tokg_welcome *w)
{
	memset(w, 0, sizeof(*w));
	w->magic = TOKG_WELCOME_MAGIC;
	w->version = TOKG_VERSION;
	w->producer = TOKG_NO_PRODUCER;
}

static void
refuse_with(struct tokg_server *s, struct connection *c, const char *words, bool again)
{
	init_welcome(&c->welcome);
	c->welcome.again = again;
	snprintf(c->welcome.message, sizeof(c->welcome.message), "%.*s",
		(int)sizeof(c->welcome.message) - 1, words);
	refuse(c->fd, &c->welcome);
	end(s, c);
}

static void
send_welcome(struct tokg_server *s, struct connection *c, int fd)
{
	c->at = READY; /* from now on its end calls `left` */
	c->moved = 0;
	c->end_ms = monotonic_ms() + TOKG_READY_MS;
	/* Peers that cannot accept a 360-byte message are dropped. */
	if (tokg_link_send_fd(c->fd, &c->welcome, sizeof(c->welcome), fd) != 0)
		end(s, c);
}

static void
ask_grant(struct tokg_server *s, struct connection *c)
{
	const uint64_t id = c->id;
	int fd = -1;
	int rc;

	init_welcome(&c->welcome);
	rc = s->calls.grant(s->owner, id, &c->hello, &c->welcome, &fd);
	if (c->at != ASKING || c->id != id)
		return; /* grant dropped it */
	if (rc > 0) {
		send_welcome(s, c, fd);
	} else if (rc < 0 || monotonic_ms() >= c->end_ms) {
		c->welcome.again = rc == 0;
		refuse(c->fd, &c->welcome);
		end(s, c);
	}
}

static void
read_hello(struct tokg_server *s, struct connection *c)
{
	struct tokg_error err;
	const int rc = tokg_link_read(c->fd, &c->hello, sizeof(c->hello), &c->moved, NULL);

	if (rc < 0) {
		end(s, c);
	} else if (rc > 0 && !tokg_hello_proved(&c->hello, c->tcp, &err)) {
		refuse_with(s, c, err.text, false);
	} else if (rc > 0) {
		c->at = ASKING;
		c->end_ms = monotonic_ms() + TOKG_GRANT_MS;
		ask_grant(s, c);
	}
}

static void
read_ready(struct tokg_server *s, struct connection *c)
{
	const int rc = tokg_link_read(c->fd, &c->ready, sizeof(c->ready), &c->moved, NULL);
	size_t moved = 0;

	if (rc == 0)
		return;
	if (rc < 0 || c->ready.magic != TOKG_READY_MAGIC ||
		c->ready.producer != c->welcome.producer ||
		tokg_link_write(c->fd, &c->ready, sizeof(c->ready), &moved) != 1) {
		end(s, c);
		return;
	}
	c->at = JOINED;
	s->calls.joined(s->owner, c->id);
}

static void
step(struct tokg_server *s, struct connection *c)
{
	const bool event = c->event;

	c->event = false;
	if (event && c->at == HELLO)
		read_hello(s, c);
	else if (event && c->at == READY)
		read_ready(s, c);
	else if (event && (c->at == ASKING || c->at == JOINED) && !tokg_link_is_quiet(c->fd))
		end(s, c);
	else if (c->at == ASKING)
		ask_grant(s, c);
	if ((c->at == HELLO || c->at == READY) && monotonic_ms() >= c->end_ms) {
		if (c->at == HELLO)
			refuse_with(s, c, "no hello within 1 s", true);
		else
			end(s, c);
	}
}

static struct connection *
free_connection(struct tokg_server *s)
{
	struct connection *found = NULL;
	uint32_t newcomers = 0;

	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
		if (s->c[i].at == FREE)
			found = &s->c[i];
		else
			newcomers += s->c[i].at != JOINED;
	}
	return newcomers < TOKG_NEWCOMERS ? found : NULL;
}

/*
 * Stops listening while connections are full: a refusal would cost a reconnecting producer its
 * epoch, and epoll would report a waiting connection again and again.
 */
static bool
listen_to(struct tokg_server *s, bool on, struct tokg_error *err)
{
	if (s->listening == on)
		return true;
	for (uint32_t i = 0; i < LISTENERS; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};

		if (s->listener[i].fd < 0)
			continue;
		/* EEXIST, ENOENT: an earlier attempt failed half way. */
		if (epoll_ctl(s->epoll, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->listener[i].fd,
			    &e) != 0 &&
			errno != EEXIST && errno != ENOENT)
			return tokg_wrong(err,
				"listening for producers (epoll_ctl): %s: see "
				"fs.epoll.max_user_watches",
				strerror(errno));
	}
	s->listening = on;
	return true;
}

/* Descriptors are per process: one paused listener pauses both. */
static bool
is_paused(const struct tokg_server *s)
{
	return tokg_listen_is_paused(&s->listener[0]) || tokg_listen_is_paused(&s->listener[1]);
}

/* One per poll and listener: many new connections must not delay the others. */
static void
accept_one(struct tokg_server *s, uint32_t which)
{
	struct connection *c = free_connection(s);
	struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP};
	struct tokg_error err;
	int fd;

	if (c == NULL)
		return;
	fd = tokg_listen_accept(&s->listener[which], &err);
	if (err.text[0] != '\0' && s->calls.starved != NULL)
		s->calls.starved(s->owner, &err);
	if (fd < 0)
		return;
	e.data.u32 = LISTENERS + (uint32_t)(c - s->c);
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) {
		close(fd);
		return;
	}
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	c->tcp = which == 1;
	c->id = ++s->next_id;
	c->at = HELLO;
	c->end_ms = monotonic_ms() + TOKG_HELLO_MS;
	if (c->tcp)
		tokg_link_tcp(fd);
}

int
tokg_server_fd(const struct tokg_server *s)
{
	return s->epoll;
}

void
tokg_server_poll(struct tokg_server *s)
{
	struct epoll_event e[EVENTS];
	const int n = epoll_wait(s->epoll, e, EVENTS, 0);
	bool pending[LISTENERS] = {false};
	struct tokg_error err;

	for (int i = 0; i < n; i++) {
		if (e[i].data.u32 < LISTENERS)
			pending[e[i].data.u32] = true;
		else
			s->c[e[i].data.u32 - LISTENERS].event = true;
	}
	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->c[i].at != FREE)
			step(s, &s->c[i]);
	/* After ended connections have freed their entries. */
	for (uint32_t i = 0; i < LISTENERS; i++)
		if (pending[i])
			accept_one(s, i);
	(void)listen_to(s, free_connection(s) != NULL && !is_paused(s), &err);
}

void
tokg_server_drop(struct tokg_server *s, uint64_t id)
{
	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->c[i].at != FREE && s->c[i].id == id)
			end(s, &s->c[i]);
}

static bool
open_listeners(struct tokg_server *s, const struct tokg_server_config *c, struct tokg_error *err)
{
	if (c->path != NULL &&
		!tokg_listen_unix(&s->listener[0], c->path, SOCK_STREAM, c->mode, err))
		return false;
	if (c->host != NULL && !tokg_listen_tcp(&s->listener[1], c->host,
				       c->port != 0 ? c->port : TOKG_TCP_PORT, err))
		return false;
	return listen_to(s, true, err);
}

struct tokg_server *
tokg_server_open(const struct tokg_server_config *c, struct tokg_error *err)
{
	struct tokg_server *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		tokg_wrong(err, "cannot allocate the table of connections");
		return NULL;
	}
	s->calls = c->calls;
	s->owner = c->owner;
	for (uint32_t i = 0; i < LISTENERS; i++)
		s->listener[i].fd = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		tokg_wrong(err,
			"listening for producers (epoll_create): %s: raise LimitNOFILE or ulimit "
			"-n",
			strerror(errno));
	else if (open_listeners(s, c, err))
		return s;
	tokg_server_close(s);
	return NULL;
}

void
tokg_server_close(struct tokg_server *s)
{
	if (s == NULL)
		return;
	for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
		if (s->c[i].at != FREE)
			close(s->c[i].fd);
	for (uint32_t i = 0; i < LISTENERS; i++)
		tokg_listen_close(&s->listener[i]);
	if (s->epoll >= 0)
		close(s->epoll);
	free(s);
}
