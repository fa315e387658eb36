/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mode plain, for the baseline: one datagram of text, one datagram of ids. Nothing in the answer
 * says which text it is for, so after sending again, stale answers are waited out.
 */
#include <string.h>
#include <sys/socket.h>

#include "client.h"

static void
wait_out(const struct client *c)
{
	uint64_t quiet_since = now_ns();

	while (!spin(quiet_since, 2 * c->timeout_ns)) {
		if (recv(c->fd, c->got, CLIENT_DATAGRAM_MAX, MSG_DONTWAIT) >= 0)
			quiet_since = now_ns();
	}
}

void
client_plain(struct client *c, const struct slice *slice, struct answer *answer)
{
	ssize_t n;

	*answer = (struct answer){.failure = "no answer"};
	if (slice->text_len > CLIENT_DATAGRAM_MAX) {
		answer->failure = "text exceeds a datagram";
		return;
	}
	for (uint32_t try = 0; try < CLIENT_TRIES; try++) {
		uint64_t sent;

		answer->retransmits = try;
		/* A full socket buffer is a loss like any other. */
		(void)send(c->fd, slice->text, slice->text_len, 0);
		sent = now_ns();
		do {
			n = recv(c->fd, c->got, CLIENT_DATAGRAM_MAX, MSG_DONTWAIT);
		} while (n < 0 && !spin(sent, c->timeout_ns));
		if (n < 0)
			continue;
		answer->n_ids = (uint32_t)n / 4;
		answer->failure = n % 4 != 0 || answer->n_ids > c->max_ids ? "odd answer" : NULL;
		if (answer->failure == NULL)
			memcpy(c->ids, c->got, (size_t)n);
		break;
	}
	if (answer->retransmits > 0)
		wait_out(c);
}
