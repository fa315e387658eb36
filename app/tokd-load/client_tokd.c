/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode tokd: uses libtokd-client. It is polled, never sleeps, and retransmits by itself. */
#include <stdio.h>
#include <arpa/inet.h>

#include "client.h"
#include "judge.h"

static int
open_tokd(struct client *c, const struct options *o)
{
	const struct tokd_client_options options = {
		.requests = c->n_jobs,
		.first_stream_id = o->first_id,
		.rto_ms = (uint32_t)o->timeout_ms,
		/* In an open loop, --limit ends a request. */
		.timeout_ms = (uint32_t)(o->rate > 0 ? o->limit_ms : CLIENT_TRIES * o->timeout_ms),
		/* With one request at a time, omit the last acknowledgement: it is not part of the
		 * measured latency. With several, send it as any client does, because the server
		 * keeps unacknowledged results. */
		.no_last_ack = c->n_jobs == 1,
		.no_resend = true, /* each text has one stream id */
		.receive_buffer = CLIENT_SOCKET_BUFFER,
		.payload = (uint32_t)o->payload,
	};
	char host[INET_ADDRSTRLEN], error[TOKD_ERROR_MAX];

	inet_ntop(AF_INET, &o->server.sin_addr, host, sizeof(host));
	c->tokd_flags = o->stream ? TOKD_REQUEST_STREAM : 0;
	c->tokd = tokd_client_open(host, ntohs(o->server.sin_port), &options, error);
	if (c->tokd == NULL)
		fprintf(stderr, "tokd-load: %s\n", error);
	return c->tokd != NULL ? 0 : -1;
}

static void
close_tokd(struct client *c)
{
	tokd_client_close(c->tokd);
}

static const char *
send_tokd(struct client *c, struct job *job)
{
	enum tokd_status status;

	job->r = (struct tokd_request){
		.text = job->slice->text,
		.len = job->slice->text_len,
		.ids = job->ids,
		.max_ids = c->max_ids,
		.flags = c->tokd_flags,
		.user = job,
	};
	status = tokd_client_submit(c->tokd, &job->r);
	return status == TOKD_PENDING ? NULL : judge_status(status);
}

static void
flush_tokd(struct client *c)
{
	tokd_client_flush(c->tokd);
}

/* Note when the first ids arrive. With --stream the library reports it; without, a single request
 * can be inspected. */
static void
note_first(struct job *job)
{
	if (job->first_ns == 0 && job->r.n_ids > 0)
		job->first_ns = now_ns();
}

static uint32_t
poll_tokd(struct client *c, struct job *done[CLIENT_BURST])
{
	struct tokd_request *r[CLIENT_BURST];
	uint32_t given = tokd_client_poll(c->tokd, r, CLIENT_BURST), n = 0;

	for (uint32_t i = 0; i < given; i++) {
		struct job *job = r[i]->user;

		if (r[i]->status == TOKD_PENDING) {
			note_first(job);
			continue;
		}
		job->n_ids = r[i]->n_ids;
		job->retransmits = r[i]->retransmits + r[i]->asks;
		job->reason = r[i]->reason;
		job->failure = judge_status(r[i]->status);
		done[n++] = job;
	}
	if (c->n_jobs == 1 && c->job->slice != NULL && n == 0)
		note_first(c->job);
	return n;
}

static void
give_up_tokd(struct client *c, struct job *job)
{
	tokd_client_cancel(c->tokd, &job->r);
	job->retransmits = job->r.retransmits + job->r.asks;
}

const struct client_mode client_tokd = {
	open_tokd, close_tokd, send_tokd, flush_tokd, poll_tokd, give_up_tokd};
