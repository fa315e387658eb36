/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu_sink.h"
#include "housekeeping.h"
#include "wipe.h"
#include "datapath/net.h"
#include "datapath/stream/reply.h"
#include "datapath/stream/stream.h"
#include "datapath/token_ring_write.h"

/* Streams ended per call: many time-outs at once must not delay the RX queue. */
#define EXPIRE_MAX 64

static void
publish_aborts(struct tokd_worker *w)
{
	struct tokd_stream *s;

	for (uint32_t i = 0; i < EXPIRE_MAX; i++) {
		s = TAILQ_FIRST(&w->streams->aborting);
		if (s == NULL || !tokd_stream_abort(w, s))
			return;
	}
}

static bool
is_expired(const struct tokd_stream *s, uint64_t now, uint64_t ticks)
{
	/* `now` may be older than the time of a packet. */
	return s != NULL && now > s->t_active && now - s->t_active > ticks;
}

/* A time-out fails the stream; it never publishes ids that are not certain. */
static void
expire_open(struct tokd_worker *w, uint64_t now)
{
	struct tokd_streams *t = w->streams;

	for (uint32_t i = 0; i < EXPIRE_MAX; i++) {
		struct tokd_stream *s = TAILQ_FIRST(&t->open);

		if (!is_expired(s, now, t->open_ticks))
			return;
		tokd_stream_fail(w, s, TOKD_R_TIMEOUT);
	}
}

static void
expire_finished(struct tokd_worker *w, uint64_t now)
{
	struct tokd_streams *t = w->streams;

	for (uint32_t i = 0; i < EXPIRE_MAX; i++) {
		struct tokd_stream *s = TAILQ_FIRST(&t->finished);

		if (!is_expired(s, now, t->finished_ticks))
			return;
		tokd_stream_release(w, s);
	}
}

void
tokd_housekeeping(struct tokd_worker *w, uint64_t now)
{
	tokd_ring_readers(&w->ring);
	if (w->sink != NULL) {
		tokd_sink_check_hold(w, now);
		tokd_sink_count(w);
	}
	publish_aborts(w);
	expire_finished(w, now);
	expire_open(w, now);
	if (w->frags != NULL)
		tokd_frag_expire(w, now);
	if (unlikely(w->wipe))
		tokd_wipe(w, now);
}

void
tokd_shutdown(struct tokd_worker *w)
{
	struct tokd_stream *s;

	while ((s = TAILQ_FIRST(&w->streams->open)) != NULL) {
		tokd_stream_fail(w, s, TOKD_R_SHUTDOWN);
		tokd_stream_touch(w, s);
		tokd_reply_flush(w);
	}
	tokd_tx_flush(w);
	if (w->sink != NULL)
		tokd_sink_count(w);
}
