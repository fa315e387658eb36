/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: polls the worker's sink, and handles its results. */
#include <assert.h>

#include <rte_cycles.h>

#include "gpu_sink.h"
#include "datapath/stream/gpu_text.h"

/* The sink's counters have the same order. */
static_assert(C_SINK_TEXTS_CPU - C_SINK_SLOTS + 1 == TOKG_C_COUNT, "a counter is missing");
static_assert(C_SINK_DONE - C_SINK_SLOTS == TOKG_C_DONE, "counters in another order");
static_assert(C_SINK_NO_OUTPUT - C_SINK_SLOTS == TOKG_C_NO_OUTPUT, "counters in another order");

void
tokd_sink_poll(struct tokd_worker *w, bool idle)
{
	struct tokd_sink *s = w->sink;
	/* Acquire: after the control thread's last use. */
	const uint32_t state = atomic_load_explicit(&s->state, memory_order_acquire);

	if (w->gpu_texts != NULL)
		w->gpu_texts->here = state == TOKD_SINK_LOST && w->ring.shed != NULL;
	/* Another agent knows nothing of the answers that were under way. */
	s->answers.lost = state == TOKD_SINK_LOST;
	if (s->answers.lost)
		tokg_sink_cut(s->sink);
	if (state != TOKD_SINK_RUNNING)
		return;
	/* Posts carry this time: read it after their records were published. */
	if (!tokg_sink_poll(s->sink, w->ring.head, rte_rdtsc(), idle))
		atomic_store_explicit(&s->state, TOKD_SINK_BROKEN, memory_order_release);
}

void
tokd_sink_count(struct tokd_worker *w)
{
	memcpy(&w->counter[C_SINK_SLOTS], tokg_sink_counters(w->sink->sink),
		TOKG_C_COUNT * sizeof(w->counter[0]));
}

bool
tokd_sink_is_overdue(const struct tokd_worker *w, uint64_t now)
{
	return w->ring.shed != NULL && tokd_reader_is_overdue(&w->ring.reader[TOKD_READER_SINK],
					       w->tsc_hz / 1000 * w->ring.hold_ms, now);
}

void
tokd_sink_check_hold(struct tokd_worker *w, uint64_t now)
{
	struct tokd_sink *s = w->sink;

	if (!tokd_sink_is_overdue(w, now) ||
		atomic_load_explicit(&s->state, memory_order_relaxed) != TOKD_SINK_RUNNING)
		return;
	tokg_sink_give_up(s->sink);
	atomic_store_explicit(&s->state, TOKD_SINK_BROKEN, memory_order_release);
}

bool
tokd_sink_shed(void *worker)
{
	struct tokd_worker *w = worker;
	struct tokd_sink *s = w->sink;

	/* Acquire: its transport is closed, so nothing reads the ring any more. */
	if (atomic_load_explicit(&s->state, memory_order_acquire) != TOKD_SINK_LOST)
		return false;
	tokg_sink_shed(s->sink, w->ring.head, w->counter[C_RECORDS], w->ring.serial);
	if (w->gpu_texts != NULL)
		tokd_gpu_texts_shed(w);
	return true;
}

/* A text that is complete has no open stream: only the counter shows its failure. */
void
tokd_sink_failed(void *worker, uint64_t serial, enum tokg_status status)
{
	struct tokd_worker *w = worker;
	struct tokd_stream *s = tokd_stream_of_serial(w->streams, serial);

	atomic_store_explicit(&w->sink->last_status, (uint32_t)status, memory_order_relaxed);
	if (s == NULL)
		return;
	if (s->lane != 0) /* which the sink has back */
		tokd_generate_ended(w, s->lane - 1u, serial, TOKG_END_LOST);
	else
		tokd_stream_fail(w, s, TOKD_R_SINK);
}

void
tokd_sink_done(void *worker, uint64_t t_post, uint64_t now)
{
	struct tokd_worker *w = worker;

	tokd_histogram_add(&w->time[T_POSTED_TO_DONE], now - t_post);
}
