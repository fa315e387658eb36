/* SPDX-License-Identifier: BSD-3-Clause */
#include "generate.h"
#include "reply.h"
#include "datapath/token_ring_write.h"

/* Longer tokens are refused: an item and the end must fit the smallest ring. */
#define TOKEN_BYTES_MAX 8192
/* Of a record, about; at least one item. */
#define RECORD_BYTES 4096

static_assert((int)TOKG_END_STOP == TOKD_MADE_STOP, "one is sent as the other");
static_assert((int)TOKG_END_LENGTH == TOKD_MADE_LENGTH, "one is sent as the other");
static_assert((int)TOKG_END_CANCELLED == TOKD_MADE_CANCELLED, "one is sent as the other");

/* The sink has failed it. */
static bool
is_lost(const struct tokd_stream *s)
{
	return s->end > TOKG_END_CANCELLED;
}

static uint32_t
waiting(const struct tokd_answer *a)
{
	return a->head - a->tail;
}

bool
tokd_generate_can(const struct tokd_worker *w, const struct tokd_vocab *vocab)
{
	const struct tokd_answers *a = w->answers;

	return a != NULL && !a->lost && tokg_sink_lanes(a->sink) > 0 &&
	       vocab->longest <= TOKEN_BYTES_MAX;
}

static uint32_t
free_lanes(const struct tokd_worker *w)
{
	const uint32_t n = tokg_sink_lanes(w->answers->sink);
	const uint32_t used = tokg_sink_lanes_used(w->answers->sink);

	return used < n ? n - used : 0;
}

bool
tokd_generate_is_short(const struct tokd_worker *w, const struct tokd_stream *s)
{
	return s->lane != 0 && free_lanes(w) == 0;
}

/* A source that is alone gets more than its share, but leaves a quarter for newcomers. */
static bool
may_take(const struct tokd_worker *w, const struct tokd_source *source)
{
	const uint32_t n = tokg_sink_lanes(w->answers->sink), n_free = free_lanes(w);

	if (!tokd_source_has_share(source->n_lanes, n_free, n))
		return n_free > 0;
	return !w->drr.shared && n_free > RTE_MAX(n / 4, 1u);
}

static const struct tokd_vocab *
vocab_of(const struct tokd_stream *s)
{
	const struct tokd_vocab *v = s->terms->vocab;

	while (v->checksum != s->vocab)
		v++;
	return v;
}

bool
tokd_generate_must_wait(const struct tokd_worker *w, const struct tokd_stream *s)
{
	return tokd_generate_can(w, vocab_of(s)) && !may_take(w, s->source);
}

enum tokd_feed
tokd_generate_begin(struct tokd_worker *w, struct tokd_stream *s, uint32_t limit)
{
	struct tokg_sink *sink = w->answers->sink;
	uint32_t lane = TOKG_NO_LANE;

	/* It may have one: since then it waits for the ring. */
	if (s->lane != 0)
		return TOKD_FED;
	s->no_lane = false;
	if (s->end == 0 && tokd_generate_can(w, vocab_of(s))) {
		if (!may_take(w, s->source)) {
			s->no_lane = true;
			w->counter[C_DROP_LANES]++;
			return TOKD_NOT_FED;
		}
		lane = tokg_sink_generate(sink, s->serial, limit);
	}
	if (lane == TOKG_NO_LANE) {
		tokd_stream_fail(w, s, TOKD_R_SINK);
		return TOKD_FEED_FAILED;
	}
	s->lane = (uint16_t)(lane + 1);
	s->source->n_lanes++;
	w->answers->of_lane[lane] = s;
	tokg_sink_grant(sink, lane, TOKD_ANSWER_IDS);
	return TOKD_FED;
}

static void
unqueue(struct tokd_worker *w, struct tokd_stream *s)
{
	if (!s->answer.queued)
		return;
	s->answer.queued = false;
	TAILQ_REMOVE(&w->answers->ready, s, answer.ready);
}

/* Lost answers go first: they need no room in the ring, for which the others may wait. */
static void
queue(struct tokd_worker *w, struct tokd_stream *s)
{
	if (is_lost(s)) {
		unqueue(w, s);
		TAILQ_INSERT_HEAD(&w->answers->ready, s, answer.ready);
	} else if (!s->answer.queued) {
		TAILQ_INSERT_TAIL(&w->answers->ready, s, answer.ready);
	}
	s->answer.queued = true;
}

void
tokd_generate_answer(struct tokd_worker *w, struct tokd_stream *s)
{
	const struct tokd_vocab *vocab = vocab_of(s);

	/* What the tokenizer had is over. */
	memset(&s->answer, 0, offsetof(struct tokd_answer, id));
	tokd_decode_init(&s->answer.decode, vocab, s->flags & TOKD_F_SKIP_SPECIAL);
	s->flags |= TOKD_F_IDS | TOKD_STREAM_BYTES;
	s->total = 0;
	s->ids_crc = 0;
	s->due = true;
	w->counter[C_STREAMS_GENERATED]++;
	if (s->end != 0)
		queue(w, s);
}

void
tokd_generate_go_on(struct tokd_worker *w, struct tokd_stream *s)
{
	if (waiting(&s->answer) > 0 || s->end != 0)
		queue(w, s);
}

static void
forget_lane(struct tokd_stream *s)
{
	s->lane = 0;
	s->source->n_lanes--;
}

/* The lane ends with its stream, not by itself. */
static void
give_up_lane(struct tokd_worker *w, struct tokd_stream *s)
{
	if (s->lane == 0)
		return;
	tokg_sink_cancel(w->answers->sink, s->lane - 1u);
	forget_lane(s);
	w->counter[C_GENERATE_CANCELLED]++;
}

void
tokd_generate_cancel(struct tokd_worker *w, struct tokd_stream *s)
{
	if (s->state != TOKD_STREAM_OPEN || !(s->flags & TOKD_F_GENERATE) || is_lost(s))
		return;
	if (!tokd_stream_answers(s)) {
		tokd_stream_fail(w, s, TOKD_R_TIMEOUT);
		return;
	}
	give_up_lane(w, s);
	s->answer.tail = s->answer.head;
	s->end = TOKG_END_CANCELLED;
	queue(w, s);
}

void
tokd_generate_leave(struct tokd_worker *w, struct tokd_stream *s)
{
	give_up_lane(w, s);
	if (tokd_stream_answers(s))
		unqueue(w, s);
}

/* NULL: it has gone. */
static struct tokd_stream *
of_lane(const struct tokd_worker *w, uint32_t lane, uint64_t serial)
{
	struct tokd_stream *s = w->answers->of_lane[lane];

	return s->lane == lane + 1 && s->serial == serial ? s : NULL;
}

void
tokd_generate_token(void *worker, uint32_t lane, uint64_t serial, uint32_t index, uint32_t id)
{
	struct tokd_worker *w = worker;
	struct tokd_stream *s = of_lane(w, lane, serial);

	if (unlikely(s == NULL))
		return;
	s->answer.id[s->answer.head++ % TOKD_ANSWER_IDS] = id;
	queue(w, s);
}

/* Also in the middle of a reservation, which may shed: its stream fails later. */
void
tokd_generate_ended(void *worker, uint32_t lane, uint64_t serial, enum tokg_end how)
{
	struct tokd_worker *w = worker;
	struct tokd_stream *s = of_lane(w, lane, serial);

	if (unlikely(s == NULL))
		return;
	forget_lane(s);
	/* Only its client asks for CANCELLED, and then there is no lane. */
	s->end = how == TOKG_END_CANCELLED ? (uint8_t)TOKG_END_LOST : (uint8_t)how;
	if (tokd_stream_answers(s))
		queue(w, s);
}

/* An item at `out`, behind which is `room` for its text. Returns its bytes; 0: not an id. */
static uint32_t
put_item(struct tokd_decode *d, uint32_t id, uint8_t end, uint8_t *out, size_t room)
{
	const bool last = end != TOKD_MADE_MORE;
	struct tokd_made made = {.id = id, .end = end};
	const struct tok_result r = tokd_decode_feed(d, (const uint8_t *)&id, last ? 0 : sizeof(id),
		last, out + sizeof(made), room - sizeof(made));

	if (r.status != TOK_OK)
		return 0;
	made.text = (uint16_t)r.produced;
	memcpy(out, &made, sizeof(made));
	return (uint32_t)(sizeof(made) + r.produced);
}

/* `n` ids, and the end. Returns the bytes; 0: one is not in the vocabulary. */
static uint32_t
put_items(struct tokd_stream *s, uint32_t n, bool ends, uint8_t *out, uint32_t each)
{
	struct tokd_answer *a = &s->answer;
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t id = a->id[(a->tail + i) % TOKD_ANSWER_IDS];
		const uint32_t item = put_item(&a->decode, id, TOKD_MADE_MORE, out + bytes, each);

		if (item == 0)
			return 0;
		bytes += item;
	}
	if (ends)
		bytes += put_item(&a->decode, TOKD_MADE_END, s->end, out + bytes, each);
	return bytes;
}

static void
published(struct tokd_worker *w, struct tokd_stream *s, uint32_t n, bool ends, uint64_t t)
{
	if (n > 0 && !s->answer.begun) {
		s->answer.begun = true;
		tokd_histogram_add(&w->time[T_TEXT_TO_FIRST_TOKEN], t - s->t_last);
	}
	w->counter[C_TOKENS_MADE] += n;
	s->answer.tail += n;
	if (s->lane != 0)
		tokg_sink_grant(w->answers->sink, s->lane - 1u, n);
	if (ends) {
		s->t_last = t;
		tokd_stream_done(w, s);
		tokd_stream_renew(w, s);
	}
}

/* One record of what waits, and of the end. False: the ring is full. */
static bool
publish(struct tokd_worker *w, struct tokd_stream *s)
{
	const uint32_t each = (uint32_t)(sizeof(struct tokd_made) +
					 tokd_decode_bound(&s->answer.decode, sizeof(uint32_t)));
	const uint32_t fit = RTE_MAX(RECORD_BYTES / each, 1u);
	const uint32_t n = RTE_MIN(waiting(&s->answer), fit);
	const bool ends = s->end != 0 && n == waiting(&s->answer);
	const uint32_t most = (n + ends) * each;
	const uint64_t room = tokd_rec_bytes(tokd_rec_words(TOKD_REC_TEXT, most));
	const uint64_t pos = tokd_ring_reserve(&w->ring, room);
	uint8_t *out;
	uint32_t bytes;

	if (pos == TOKD_RING_FULL)
		return false;
	if (n > 0)
		tokd_stream_renew(w, s);
	out = (uint8_t *)tokd_rec_ids(tokd_ring_at(&w->ring, pos));
	bytes = put_items(s, n, ends, out, each);
	if (unlikely(w->wipe))
		memset(out + bytes, 0, room - sizeof(struct tokd_rec) - bytes);
	if (unlikely(bytes == 0))
		tokd_stream_fail(w, s, TOKD_R_SINK);
	else if (unlikely(bytes > UINT32_MAX - s->total)) /* where it could not be named */
		tokd_stream_fail(w, s, TOKD_R_TEXT_TOO_LONG);
	else
		published(w, s, n, ends, tokd_stream_publish_answer(w, s, pos, bytes));
	return true;
}

/* All that its client's window takes. False: the ring is full. */
static bool
go(struct tokd_worker *w, struct tokd_stream *s)
{
	while (s->state == TOKD_STREAM_OPEN && (waiting(&s->answer) > 0 || s->end != 0)) {
		if (is_lost(s))
			tokd_stream_fail(w, s, TOKD_R_SINK);
		else if (tokd_stream_rec_room(s) == 0)
			break; /* until it acknowledges */
		else if (!publish(w, s))
			return false;
	}
	if (s->state == TOKD_STREAM_OPEN)
		unqueue(w, s);
	return true;
}

bool
tokd_generate_turn(struct tokd_worker *w)
{
	const uint64_t begun = rte_rdtsc();
	struct tokd_stream *s = TAILQ_FIRST(&w->answers->ready);
	bool more = s != NULL;

	if (likely(!more))
		return false;
	for (; more && s != NULL; s = TAILQ_FIRST(&w->answers->ready)) {
		const uint64_t from = rte_rdtsc();
		const bool room = go(w, s);
		const uint64_t to = rte_rdtsc();

		tokd_drr_charge(&w->drr, &s->source->flow, to - from);
		more = room && to - begun < w->drr.slice;
		tokd_stream_touch(w, s);
		if (w->n_touched == TOKD_BURST || tokd_reply_is_overdue(w))
			tokd_reply_flush(w);
	}
	tokd_reply_flush(w);
	tokd_tx_flush(w);
	return true;
}
