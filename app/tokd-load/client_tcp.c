/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode tcp, for the baseline, on one connection: a text after its length, its ids after their
 * number, both little-endian u32. Texts are sent without waiting for ids, and answered in the same
 * order.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "client.h"

#define LENGTH 4
#define TEXTS_AT_ONCE 64 /* per call */

/* A text that is not answered yet. */
struct place {
	struct job *job; /* NULL: no longer awaited */
	const struct slice *slice;
	uint8_t length[LENGTH];
};

struct tcp {
	int fd;
	bool broken;	     /* the order of answers is lost */
	bool goes_on;	     /* open loop: a late answer keeps its place until it arrives */
	struct place *place; /* a ring of client.n_jobs */
	uint32_t first, count;
	uint32_t unsent; /* the last `unsent` places; `written` bytes of the first are sent */
	size_t written;
	uint8_t *got;
	size_t room, have;
};

static struct place *
place_of(const struct client *c, uint32_t i)
{
	return &c->tcp->place[(c->tcp->first + i) % c->n_jobs];
}

static void
put_length(uint8_t at[LENGTH], uint32_t v)
{
	for (int i = 0; i < LENGTH; i++)
		at[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t
get_length(const uint8_t at[LENGTH])
{
	return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static int
open_tcp(struct client *c, const struct options *o)
{
	int size = CLIENT_SOCKET_BUFFER, at_once = 1;
	struct tcp *t = c->tcp = calloc(1, sizeof(*t));

	if (t == NULL)
		goto no_memory;
	t->fd = -1;
	t->goes_on = o->rate > 0;
	t->room = LENGTH + sizeof(uint32_t) * (size_t)c->max_ids;
	if (t->room < CLIENT_DATAGRAM_MAX)
		t->room = CLIENT_DATAGRAM_MAX;
	t->got = malloc(t->room);
	t->place = calloc(c->n_jobs, sizeof(*t->place));
	if (t->got == NULL || t->place == NULL)
		goto no_memory;
	t->fd = client_socket(o, SOCK_STREAM, 0);
	if (t->fd < 0) {
		perror("tokd-load: socket");
		return -1;
	}
	/* SO_RCVBUFFORCE (root) exceeds the system's limit. */
	if (setsockopt(t->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) != 0)
		setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(t->fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		setsockopt(t->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof(at_once));
	return 0;
no_memory:
	perror("tokd-load");
	return -1;
}

static void
close_tcp(struct client *c)
{
	if (c->tcp == NULL)
		return;
	if (c->tcp->fd >= 0)
		close(c->tcp->fd);
	free(c->tcp->got);
	free(c->tcp->place);
	free(c->tcp);
}

static const char *
send_tcp(struct client *c, struct job *job)
{
	struct tcp *t = c->tcp;
	struct place *place = place_of(c, t->count);

	if (t->broken)
		return "the connection failed";
	if (t->count == c->n_jobs)
		return "not sent"; /* texts that are no longer awaited are still in flight */
	*place = (struct place){.job = job, .slice = job->slice};
	put_length(place->length, job->slice->text_len);
	t->count++;
	t->unsent++;
	return NULL;
}

/* The unsent lengths and texts, without the first `written` bytes. */
static int
gather(const struct client *c, struct iovec *part)
{
	const struct tcp *t = c->tcp;
	size_t skip = t->written;
	int n = 0;

	for (uint32_t i = 0; i < t->unsent && i < TEXTS_AT_ONCE; i++) {
		struct place *place = place_of(c, t->count - t->unsent + i);
		size_t ahead = skip < LENGTH ? skip : LENGTH;

		part[n++] = (struct iovec){place->length + ahead, LENGTH - ahead};
		skip -= ahead;
		part[n++] = (struct iovec){(void *)(uintptr_t)(place->slice->text + skip),
			place->slice->text_len - skip};
		skip = 0;
	}
	return n;
}

static void
flush_tcp(struct client *c)
{
	struct tcp *t = c->tcp;

	while (t->unsent > 0 && !t->broken) {
		struct iovec part[2 * TEXTS_AT_ONCE];
		const struct msghdr message = {
			.msg_iov = part, .msg_iovlen = (size_t)gather(c, part)};
		ssize_t n = sendmsg(t->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0) {
			t->broken = errno != EAGAIN && errno != EINTR;
			return;
		}
		for (t->written += (size_t)n; t->unsent > 0; t->unsent--) {
			size_t whole =
				LENGTH + (size_t)place_of(c, t->count - t->unsent)->slice->text_len;

			if (t->written < whole)
				break;
			t->written -= whole;
		}
	}
}

/* Fail all requests in flight. */
static uint32_t
fail(struct client *c, struct job *done[CLIENT_BURST])
{
	struct tcp *t = c->tcp;
	uint32_t n = 0;

	for (; t->count > 0 && n < CLIENT_BURST; t->count--) {
		struct job *job = place_of(c, 0)->job;

		t->first = (t->first + 1) % c->n_jobs;
		if (job == NULL)
			continue;
		job->failure = "the connection failed";
		done[n++] = job;
	}
	return n;
}

/* Take complete answers from `got`; move the rest to its front. */
static uint32_t
take_answers(struct client *c, struct job *done[CLIENT_BURST])
{
	struct tcp *t = c->tcp;
	size_t at = 0;
	uint32_t n = 0;

	while (n < CLIENT_BURST && t->have - at >= LENGTH) {
		size_t length = get_length(t->got + at);
		struct job *job;

		/* More ids than any text has, or an answer without a text. */
		if (length > t->room - LENGTH || t->count == t->unsent) {
			t->broken = true;
			break;
		}
		if (t->have - at - LENGTH < length)
			break;
		job = place_of(c, 0)->job;
		t->first = (t->first + 1) % c->n_jobs;
		t->count--;
		if (job != NULL) {
			client_take_ids(c, job, t->got + at + LENGTH, length);
			done[n++] = job;
		}
		at += LENGTH + length;
	}
	t->have -= at;
	if (at > 0 && t->have > 0)
		memmove(t->got, t->got + at, t->have);
	return n;
}

static uint32_t
poll_tcp(struct client *c, struct job *done[CLIENT_BURST])
{
	struct tcp *t = c->tcp;
	uint32_t found;

	if (t->unsent > 0)
		flush_tcp(c);
	if (!t->broken && t->have < t->room) {
		ssize_t n = recv(t->fd, t->got + t->have, t->room - t->have, MSG_DONTWAIT);

		if (n > 0)
			t->have += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			t->broken = true;
	}
	/* Take what arrived before the end of the connection. */
	found = t->have >= LENGTH ? take_answers(c, done) : 0;
	return t->broken && found == 0 ? fail(c, done) : found;
}

static void
give_up_tcp(struct client *c, struct job *job)
{
	c->tcp->broken = c->tcp->broken || !c->tcp->goes_on;
	for (uint32_t i = 0; i < c->tcp->count; i++) {
		struct place *place = place_of(c, i);

		if (place->job == job) {
			place->job = NULL;
			return;
		}
	}
}

const struct client_mode client_tcp = {
	open_tcp, close_tcp, send_tcp, flush_tcp, poll_tcp, give_up_tcp};
