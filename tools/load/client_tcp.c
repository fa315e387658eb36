/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode tcp, for the baseline: a text after its number of bytes, its ids after theirs, both numbers
 * little-endian u32. TCP sends again by itself; what does not come at all ends the connection, as
 * nothing tells a late answer from the next one's.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "client.h"

#define LENGTH 4

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

/* Length and text in one call, so that they leave together. */
static bool
send_text(const struct client *c, const struct slice *slice, uint64_t since)
{
	uint8_t length[LENGTH];
	size_t sent = 0, whole = LENGTH + (size_t)slice->text_len;

	put_length(length, slice->text_len);
	while (sent < whole) {
		size_t ahead = sent < LENGTH ? sent : LENGTH;
		struct iovec parts[] = {{length + ahead, LENGTH - ahead},
			{(void *)(uintptr_t)(slice->text + (sent - ahead)),
				slice->text_len - (sent - ahead)}};
		const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
		ssize_t n = sendmsg(c->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if ((errno != EAGAIN && errno != EINTR) || spin(since, c->timeout_ns))
			return false;
	}
	return true;
}

/* Bytes of ids, or -1. One recv() takes all that is there: it seldom takes a second. */
static int64_t
receive_ids(const struct client *c, uint64_t since)
{
	size_t have = 0;

	for (;;) {
		ssize_t n = recv(c->fd, c->got + have, c->room - have, MSG_DONTWAIT);

		if (n > 0) {
			have += (size_t)n;
			if (have < LENGTH)
				continue;
			if (get_length(c->got) > c->room - LENGTH)
				return -1;
			if (have >= LENGTH + (size_t)get_length(c->got))
				break;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR) ||
			   spin(since, c->timeout_ns)) {
			return -1;
		}
	}
	return have == LENGTH + (size_t)get_length(c->got) ? (int64_t)(have - LENGTH) : -1;
}

void
client_tcp(struct client *c, const struct slice *slice, struct answer *answer)
{
	uint64_t since = now_ns();
	int64_t n = -1;

	*answer = (struct answer){.failure = "the connection failed"};
	if (!c->broken && send_text(c, slice, since))
		n = receive_ids(c, since);
	c->broken = n < 0;
	if (c->broken)
		return;
	answer->n_ids = (uint32_t)n / 4;
	answer->failure = n % 4 != 0 || answer->n_ids > c->max_ids ? "odd answer" : NULL;
	if (answer->failure == NULL)
		memcpy(c->ids, c->got + LENGTH, (size_t)n);
}
