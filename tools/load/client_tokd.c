/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode tokd: by libtokd-client, which is polled and never sleeps. */
#include "client.h"
#include "judge.h"

#define TURNS_ALONE 16

void
client_tokd(struct client *c, const struct slice *slice, struct answer *answer)
{
	struct tokd_request r = {.text = slice->text,
		.len = slice->text_len,
		.ids = c->ids,
		.max_ids = c->max_ids,
		.flags = c->flags};
	struct tokd_request *done;
	uint64_t since = 0, first_at = 0;

	tokd_client_submit(c->tokd, &r);
	tokd_client_flush(c->tokd); /* before there is anything to receive */
	/* The library reads the clock at every turn: here it is only looked at now and then. */
	for (uint32_t turn = 1;; turn++) {
		tokd_client_poll(c->tokd, &done, 1);
		if (r.status != TOKD_PENDING)
			break;
		if (first_at == 0 && r.n_ids > 0)
			first_at = now_ns();
		if (turn == TURNS_ALONE)
			since = now_ns();
		else if (turn % TURNS_ALONE == 0)
			spin(since, UINT64_MAX);
	}
	*answer = (struct answer){
		.first_at = first_at,
		.n_ids = r.n_ids,
		.retransmits = r.retransmits + r.asks,
		.reason = r.reason,
		.failure = judge_status(r.status),
	};
}
