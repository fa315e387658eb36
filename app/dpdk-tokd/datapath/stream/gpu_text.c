/* SPDX-License-Identifier: BSD-3-Clause */
#include <crc32c.h>

#include "gpu_text.h"
#include "datapath/token_ring_write.h"

#define LOOKS 8 /* at texts that came back, before a heavy source's is chosen */
#define KEPT_PER_SECOND UINT64_C(12000000000) /* bytes of text checked and copied, about */

static uint8_t *
bytes_of(const struct tokd_gpu_texts *t, const struct tokd_gpu_text *g)
{
	return t->bytes + (size_t)t->room * (uint32_t)(g - t->text);
}

static void
set_free(struct tokd_worker *w, struct tokd_gpu_text *g)
{
	struct tokd_gpu_texts *t = w->gpu_texts;

	if (unlikely(w->wipe))
		memset(bytes_of(t, g), 0, g->n);
	t->n_free++;
	g->state = TOKD_GPU_TEXT_FREE;
	STAILQ_INSERT_HEAD(&t->free, g, link);
}

void
tokd_gpu_text_begin(struct tokd_worker *w, struct tokd_stream *s, const struct tokd_vocab *vocab)
{
	struct tokd_gpu_texts *t = w->gpu_texts;
	struct tokd_gpu_text *g = STAILQ_FIRST(&t->free);

	if ((s->flags & (TOKD_F_IDS | TOKD_F_DECODE | TOKD_F_GENERATE)) ||
		vocab->checksum != t->vocab)
		return;
	if (g == NULL || t->here ||
		tokd_source_has_share(s->source->n_gpu_texts, t->n_free, t->n)) {
		w->counter[C_PIPELINE_HERE]++;
		return;
	}
	STAILQ_REMOVE_HEAD(&t->free, link);
	t->n_free--;
	s->source->n_gpu_texts++;
	*g = (struct tokd_gpu_text){.state = TOKD_GPU_TEXT_OPEN};
	s->gpu_text = g;
}

void
tokd_gpu_text_drop(struct tokd_worker *w, struct tokd_stream *s)
{
	set_free(w, s->gpu_text);
	s->source->n_gpu_texts--;
	s->gpu_text = NULL;
}

/* It is complete, and its record is reserved at `pos`. */
static void
post(struct tokd_worker *w, struct tokd_stream *s, uint64_t pos, uint64_t t_rx)
{
	struct tokd_gpu_text *g = s->gpu_text;
	struct tokd_rec *rec = tokd_ring_at(&w->ring, pos);

	*rec = (struct tokd_rec){
		.flags = TOKD_REC_FIRST | TOKD_REC_LAST,
		.stream_id = s->key.stream_id,
		.serial = s->serial,
		.t_rx = t_rx,
		.count = g->n,
		.vocab = s->vocab,
		.epoch = s->key.epoch,
		.reason = (uint32_t)(g - w->gpu_texts->text),
		.text_end = s->text_end,
	};
	memcpy(rec + 1, bytes_of(w->gpu_texts, g), g->n);
	tokd_ring_publish(&w->ring, pos, TOKD_REC_BYTES);
	tokd_count_record(w);
	tokd_histogram_add(&w->time[T_WIRE_TO_RING], rec->t_publish - t_rx);
	s->published = s->uncounted = true;
	s->t_last = rec->t_publish;
	s->source->n_gpu_texts--;
	s->gpu_text = NULL;
	g->state = TOKD_GPU_TEXT_POSTED;
	g->addr = s->key.addr;
	g->stream_id = s->key.stream_id;
	g->serial = s->serial;
	g->t_open = s->t_open;
	g->t_rx = t_rx;
	g->epoch = s->key.epoch;
	g->crc = s->text_crc;
}

/* There is room for them. As feeding: space in the ring comes before any change. */
static enum tokd_feed
keep(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *text, uint32_t n, bool last,
	uint32_t want, uint64_t t_rx)
{
	struct tokd_gpu_text *g = s->gpu_text;
	const uint32_t crc = tokd_crc32c(s->text_crc, text, n);
	const uint64_t ticks = 1 + n * w->tsc_hz / KEPT_PER_SECOND;
	uint64_t pos = 0;

	if (last) {
		pos = tokd_ring_reserve(
			&w->ring, tokd_rec_bytes(tokd_rec_words(TOKD_REC_BYTES, g->n + n)));
		s->backpressured = pos == TOKD_RING_FULL;
	}
	if (unlikely(pos == TOKD_RING_FULL)) {
		w->counter[C_DROP_RING_FULL]++;
		return TOKD_NOT_FED;
	}
	if (unlikely(last && crc != want)) {
		tokd_stream_fail(w, s, TOKD_R_TEXT_CRC);
		return TOKD_FEED_FAILED;
	}
	memcpy(bytes_of(w->gpu_texts, g) + g->n, text, n);
	g->n += n;
	s->text_crc = crc;
	s->text_end += n;
	s->part += n;
	w->fed_ticks += ticks;
	tokd_drr_charge(&w->drr, &s->source->flow, ticks);
	if (last)
		post(w, s, pos, t_rx);
	return TOKD_FED;
}

/* What is kept was acknowledged and counts as fed, but the tokenizer has not seen it yet. */
static enum tokd_feed
feed_kept(struct tokd_worker *w, struct tokd_stream *s)
{
	struct tokd_gpu_text *g = s->gpu_text;
	const uint32_t text_end = s->text_end, crc = s->text_crc, part = s->part;
	uint32_t n = g->n - g->fed;
	enum tokd_feed how;

	s->text_end = g->fed;
	s->text_crc = g->fed_crc;
	how = tokd_stream_feed_bytes(
		w, s, bytes_of(w->gpu_texts, g) + g->fed, &n, false, 0, s->t_open);
	if (how == TOKD_FED) {
		g->fed += n;
		g->fed_crc = s->text_crc;
	}
	s->text_end = text_end;
	s->text_crc = crc;
	s->part = part;
	return how;
}

/* TOKD_FED: from now on it is a text like any other. */
static enum tokd_feed
leave(struct tokd_worker *w, struct tokd_stream *s)
{
	while (s->gpu_text->fed < s->gpu_text->n) {
		enum tokd_feed how = tokd_stream_may_feed(w, s);

		if (how == TOKD_FED)
			how = feed_kept(w, s);
		if (how != TOKD_FED)
			return how;
	}
	tokd_gpu_text_drop(w, s);
	return TOKD_FED;
}

bool
tokd_gpu_text_take(struct tokd_worker *w, struct tokd_stream *s, const uint8_t *text, uint32_t n,
	bool last, uint32_t want, uint64_t t_rx, enum tokd_feed *how)
{
	struct tokd_gpu_text *g = s->gpu_text;
	const bool empty = last && g->n + n == 0;

	if (!g->leaves && !empty && !w->gpu_texts->here && n <= w->gpu_texts->room - g->n) {
		*how = keep(w, s, text, n, last, want, t_rx);
		return true;
	}
	w->counter[C_PIPELINE_HERE] += !g->leaves && !empty;
	g->leaves = true;
	*how = leave(w, s);
	return *how != TOKD_FED;
}

void
tokd_gpu_text_done(void *worker, const struct tokd_rec *rec, enum tokg_status status)
{
	struct tokd_worker *w = worker;
	struct tokd_gpu_texts *t = w->gpu_texts;
	struct tokd_gpu_text *g = &t->text[rec->reason];

	/* Otherwise the agent before this one has finished it. */
	if (g->state != TOKD_GPU_TEXT_POSTED || g->serial != rec->serial)
		return;
	if (status != TOKG_CPU) {
		set_free(w, g);
		return;
	}
	g->state = TOKD_GPU_TEXT_BACK;
	STAILQ_INSERT_TAIL(&t->back, g, link);
	/* Before the sink's cursor, which is released. */
	atomic_store_explicit(&t->came_back,
		atomic_load_explicit(&t->came_back, memory_order_relaxed) + 1,
		memory_order_relaxed);
}

/* Texts that came back continue: their ids will be in the ring for its readers. */
void
tokd_gpu_texts_shed(struct tokd_worker *w)
{
	struct tokd_gpu_texts *t = w->gpu_texts;

	for (uint32_t i = 0; i < t->n; i++) {
		if (t->text[i].state == TOKD_GPU_TEXT_POSTED)
			set_free(w, &t->text[i]);
	}
}

static struct tokd_source *
source_of(struct tokd_worker *w, const struct tokd_gpu_text *g)
{
	struct tokd_source *s = tokd_source_find(w, &g->addr);

	return s != NULL ? s : &w->gpu_texts->source;
}

static void
begin_back(struct tokd_worker *w, struct tokd_gpu_text *g)
{
	struct tokd_stream *s = &w->gpu_texts->stream;
	const struct tokd_vocab *vocab = &w->terms->vocab[0];

	memset(s, 0, offsetof(struct tokd_stream, rec));
	s->state = TOKD_STREAM_OPEN;
	s->key.stream_id = g->stream_id;
	s->key.epoch = g->epoch;
	s->serial = g->serial;
	s->t_open = g->t_open;
	s->vocab = vocab->checksum;
	s->terms = w->terms;
	tokd_terms_join(s->terms);
	tok_stream_init(&s->tok, vocab->tok, vocab->cache, s->terms->tok_flags);
	w->gpu_texts->now = g;
}

/*
 * Choose a text that came back. If sources share, prefer one of a source that is not heavy, among
 * the first few. False: there is none.
 */
static bool
choose(struct tokd_worker *w)
{
	struct tokd_gpu_texts *t = w->gpu_texts;
	struct tokd_gpu_text *g;

	for (uint32_t i = 0; t->now == NULL && (g = STAILQ_FIRST(&t->back)) != NULL; i++) {
		struct tokd_flow *f = &source_of(w, g)->flow;

		STAILQ_REMOVE_HEAD(&t->back, link);
		tokd_drr_refresh(&w->drr, f);
		if (w->drr.shared && f->heavy && i < LOOKS)
			STAILQ_INSERT_TAIL(&t->back, g, link);
		else
			begin_back(w, g);
	}
	if (t->now == NULL)
		return false;
	t->stream.source = source_of(w, t->now);
	return true;
}

static void
end_back(struct tokd_worker *w)
{
	struct tokd_gpu_texts *t = w->gpu_texts;

	/* Release: after its records. */
	atomic_store_explicit(&t->ended, atomic_load_explicit(&t->ended, memory_order_relaxed) + 1,
		memory_order_release);
	tokd_terms_leave(t->stream.terms);
	t->stream.state = TOKD_STREAM_FREE;
	if (unlikely(w->wipe))
		memset(&t->stream.tok, 0, sizeof(t->stream.tok));
	set_free(w, t->now);
	t->now = NULL;
}

/* Feed a piece of the text that was chosen. False: it waits for room in the ring. */
static bool
feed_back(struct tokd_worker *w)
{
	struct tokd_gpu_texts *t = w->gpu_texts;
	struct tokd_gpu_text *g = t->now;
	struct tokd_stream *s = &t->stream;
	uint32_t n = g->n - g->fed;

	if (s->state == TOKD_STREAM_OPEN) {
		if (tokd_stream_feed_bytes(w, s, bytes_of(t, g) + g->fed, &n, true, g->crc,
			    g->t_rx) == TOKD_NOT_FED)
			return false;
		g->fed += n;
	}
	if (s->state == TOKD_STREAM_FAILED && !tokd_stream_put_abort(w, s))
		return false;
	if (s->state == TOKD_STREAM_FAILED || g->fed == g->n)
		end_back(w);
	return true;
}

static bool
may_feed(struct tokd_worker *w)
{
	struct tokd_flow *f = &w->gpu_texts->stream.source->flow;

	return w->fed_ticks < w->drr.slice && (!w->drr.shared || tokd_drr_may_take(&w->drr, f));
}

bool
tokd_gpu_texts_feed(struct tokd_worker *w)
{
	const struct tokd_gpu_texts *t = w->gpu_texts;

	if (likely(t->now == NULL && STAILQ_EMPTY(&t->back)))
		return false;
	if (!w->drr.shared)
		w->fed_ticks = 0;
	/* At least one piece a turn, so that each text ends. */
	for (bool first = true; choose(w) && (first || may_feed(w)) && feed_back(w);)
		first = false;
	return true;
}
