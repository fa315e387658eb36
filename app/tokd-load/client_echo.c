/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode echo: a text goes in packets as large as those of mode tokd, by the same system calls, to a
 * server that sends each one back. The answer has arrived when all have. It measures the wire
 * alone: the slice's own ids stand for the answer's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include <tokd/wire.h>

#include "client.h"

#define PACKETS_MAX TOKD_WIRE_WINDOW
#define PACKET_MAX (sizeof(struct tokd_req) + TOKD_WIRE_PAYLOAD)

struct echo {
	int fd;
	uint32_t n, got; /* packets of the request */
	uint64_t serial; /* of the request: earlier ones' packets are ignored */
	struct tokd_req head[PACKETS_MAX];
	struct iovec out[PACKETS_MAX][2], in[PACKETS_MAX];
	struct mmsghdr tx[PACKETS_MAX], rx[PACKETS_MAX];
	uint8_t data[PACKETS_MAX][PACKET_MAX];
};

static int
open_echo(struct client *c, const struct options *o)
{
	struct echo *e = c->echo = calloc(1, sizeof(*e));

	if (e == NULL || (e->fd = client_socket(o, SOCK_DGRAM, 0)) < 0) {
		perror("tokd-load");
		return -1;
	}
	for (uint32_t i = 0; i < PACKETS_MAX; i++) {
		e->out[i][0] = (struct iovec){&e->head[i], sizeof(e->head[i])};
		e->in[i] = (struct iovec){e->data[i], sizeof(e->data[i])};
		e->tx[i].msg_hdr = (struct msghdr){.msg_iov = e->out[i], .msg_iovlen = 2};
		e->rx[i].msg_hdr = (struct msghdr){.msg_iov = &e->in[i], .msg_iovlen = 1};
	}
	return 0;
}

static void
close_echo(struct client *c)
{
	if (c->echo != NULL && c->echo->fd >= 0)
		close(c->echo->fd);
	free(c->echo);
}

static const char *
send_echo(struct client *c, struct job *job)
{
	const struct slice *s = job->slice;
	struct echo *e = c->echo;

	e->n = s->text_len == 0 ? 1 : (s->text_len + TOKD_WIRE_PAYLOAD - 1) / TOKD_WIRE_PAYLOAD;
	if (e->n > PACKETS_MAX)
		return "text exceeds 64 packets";
	e->got = 0;
	e->serial++;
	for (uint32_t i = 0; i < e->n; i++) {
		uint32_t off = i * TOKD_WIRE_PAYLOAD, left = s->text_len - off;
		uint32_t len = left < TOKD_WIRE_PAYLOAD ? left : TOKD_WIRE_PAYLOAD;

		e->head[i] = (struct tokd_req){
			.stream_id = e->serial, .packet = i, .offset = off, .length = len};
		e->out[i][1] = (struct iovec){(void *)(uintptr_t)(s->text + off), len};
	}
	for (uint32_t done = 0; done < e->n;) {
		int n = sendmmsg(e->fd, e->tx + done, e->n - done, MSG_DONTWAIT);

		if (n < 0 && errno != EINTR)
			return NULL; /* as if it were lost: it has no answer */
		done += n > 0 ? (uint32_t)n : 0;
	}
	return NULL;
}

static void
flush_echo(struct client *c)
{
	(void)c; /* send_echo() has sent it */
}

/* Is it the next packet of the request, as it was sent? None overtakes another on its way. */
static bool
is_next(const struct echo *e, const struct slice *s, const uint8_t *data, uint32_t n)
{
	const struct tokd_req *head = &e->head[e->got];

	return e->got < e->n && n == sizeof(*head) + head->length &&
	       memcmp(data, head, sizeof(*head)) == 0 &&
	       memcmp(data + sizeof(*head), s->text + head->offset, head->length) == 0;
}

static uint32_t
poll_echo(struct client *c, struct job *done[CLIENT_BURST])
{
	struct job *job = c->job;
	struct echo *e = c->echo;
	int n = recvmmsg(e->fd, e->rx, PACKETS_MAX, MSG_DONTWAIT, NULL);

	if (job->slice == NULL)
		return 0;
	for (int i = 0; i < n; i++)
		e->got += is_next(e, job->slice, e->data[i], e->rx[i].msg_len);
	if (e->got < e->n)
		return 0;
	client_take_ids(
		c, job, (const void *)job->slice->ids, sizeof(uint32_t) * job->slice->n_ids);
	done[0] = job;
	return 1;
}

static void
give_up_echo(struct client *c, struct job *job)
{
	(void)c; /* its packets are ignored by their serial number */
	(void)job;
}

const struct client_mode client_echo = {
	open_echo, close_echo, send_echo, flush_echo, poll_echo, give_up_echo};
