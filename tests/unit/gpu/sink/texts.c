/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer of the token ring, and what became of each id that it wrote. */
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

uint64_t
record_bytes(uint32_t count)
{
	return tokg_align(sizeof(struct tokd_rec) + 4ull * count, TOKD_RING_ALIGN);
}

uint64_t
keys_bytes(uint32_t flags)
{
	return flags & TOKD_REC_KEYS ? TOKD_RING_ALIGN : 0;
}

uint32_t
new_text(struct world *w, uint32_t vocab, uint32_t total)
{
	struct text *t;

	if (w->n_texts == w->texts_room) {
		w->texts_room = w->texts_room * 2 + 64;
		w->text = realloc(w->text, w->texts_room * sizeof(*w->text));
		assert_non_null(w->text);
	}
	t = &w->text[w->n_texts];
	*t = (struct text){.vocab = vocab, .total = total, .room = total, .is_open = true};
	t->seen = calloc(total + 1, sizeof(*t->seen));
	assert_non_null(t->seen);
	return w->n_texts++;
}

static uint64_t
producer(const struct world *w, uint64_t bytes)
{
	const uint64_t to_end = w->mask + 1 - (w->head & w->mask);

	return bytes > to_end ? w->head + to_end : w->head;
}

bool
has_room(const struct world *w, uint32_t count)
{
	return producer(w, record_bytes(count)) + record_bytes(count) <= w->tail + w->mask + 1;
}

/* The next record, of so many bytes; behind it its padding is not zero. */
static struct tokd_rec *
record_at_head(struct world *w, uint64_t bytes)
{
	const uint64_t pos = producer(w, bytes);
	struct tokd_rec *rec = (struct tokd_rec *)(w->ring + (pos & w->mask));

	if (pos != w->head) {
		struct tokd_rec *pad = (struct tokd_rec *)(w->ring + (w->head & w->mask));

		memset(pad, 0, sizeof(*pad));
		pad->bytes = (uint32_t)(pos - w->head);
		pad->kind = TOKD_REC_PAD;
	}
	memset(rec, KEY_BYTE, bytes);
	w->head = pos + bytes;
	w->n_records++;
	return rec;
}

bool
publish_decoded(struct world *w, uint32_t count)
{
	const uint32_t words = (count + 3) / 4;
	const uint64_t bytes = record_bytes(words);

	if (!has_room(w, words))
		return false;
	*record_at_head(w, bytes) = (struct tokd_rec){
		.bytes = (uint32_t)bytes,
		.kind = TOKD_REC_TEXT,
		.flags = TOKD_REC_FIRST | TOKD_REC_LAST,
		.serial = UINT64_MAX,
		.t_publish = w->now,
		.count = count,
		.vocab = vocabs[0],
	};
	return true;
}

bool
publish(struct world *w, uint32_t serial, uint32_t count, uint32_t flags)
{
	struct text *t = &w->text[serial];
	const uint64_t bytes = record_bytes(count) + keys_bytes(flags);
	struct tokd_rec *rec;
	uint32_t *ids;

	if (!has_room(w, count))
		return false;
	rec = record_at_head(w, bytes);
	ids = (uint32_t *)(rec + 1);
	*rec = (struct tokd_rec){
		.bytes = (uint32_t)bytes,
		.kind = TOKD_REC_TOKENS,
		.flags = (uint16_t)(flags | (t->published == 0 ? TOKD_REC_FIRST : 0)),
		.serial = serial,
		.t_publish = w->now,
		.first = t->published,
		.count = count,
		.vocab = t->vocab,
	};
	for (uint32_t i = 0; i < count; i++)
		ids[i] = id_of(serial, t->published + i);
	t->published += count;
	assert_true(t->published <= t->total);
	if (flags != 0)
		t->is_open = false;
	return true;
}

void
embedded(struct world *w, uint64_t serial, uint32_t first, uint32_t n, const uint32_t *ids,
	uint32_t flags, enum tokg_status status, bool is_final)
{
	const uint32_t epoch = w->t.epoch;
	struct text *t;

	assert_true(serial < w->n_texts);
	assert_true(serial >= w->shed_below);
	t = &w->text[serial];
	assert_non_null(t->seen); /* else it is long done: embedded twice */
	assert_true(first + n <= t->published);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(ids[i], id_of(serial, first + i));
		assert_int_not_equal(t->seen[first + i], epoch);
		if (status == TOKG_OK)
			t->seen[first + i] = epoch;
		else if (is_final)
			t->seen[first + i] = FAILED_EPOCH;
	}
	assert_int_equal((flags & TOKG_FIRST) != 0, first == 0 && t->first_seen != epoch);
	if (flags & TOKG_LAST)
		assert_int_equal(first + n, t->total);
	if (status == TOKG_OK) {
		t->first_seen = flags & TOKG_FIRST ? epoch : t->first_seen;
		if (flags & (TOKG_LAST | TOKG_ABORT)) {
			assert_int_not_equal(t->last_seen, epoch);
			t->last_seen = epoch;
		}
	} else if (is_final) {
		t->must_fail = true;
	}
}

static void
check_record(struct world *w, const struct tokd_rec *rec)
{
	struct text *t = &w->text[rec->serial];

	if (rec->vocab == NO_VOCAB && rec->serial >= w->shed_below) {
		assert_true(t->has_failed);
	} else if (rec->serial >= w->shed_below) {
		for (uint32_t i = rec->first; i < rec->first + rec->count; i++)
			assert_int_not_equal(t->seen[i], 0);
		if (!t->must_fail && (rec->flags & TOKD_REC_FIRST))
			assert_int_not_equal(t->first_seen, 0);
		if (!t->must_fail && (rec->flags & (TOKD_REC_LAST | TOKD_REC_ABORT)))
			assert_int_not_equal(t->last_seen, 0);
	}
	if (rec->flags & (TOKD_REC_LAST | TOKD_REC_ABORT)) {
		if (rec->serial >= w->shed_below)
			assert_int_equal(t->must_fail || rec->vocab == NO_VOCAB, t->has_failed);
		free(t->seen);
		t->seen = NULL;
	}
}

void
check_passed(struct world *w)
{
	const uint64_t cursor = atomic_load(tokg_sink_cursor(w->sink));

	assert_true(cursor >= w->tail && cursor <= w->head);
	while (w->tail < cursor) {
		struct tokd_rec *rec = (struct tokd_rec *)(w->ring + (w->tail & w->mask));
		const uint32_t bytes = rec->bytes;

		if (rec->kind == TOKD_REC_TOKENS)
			check_record(w, rec);
		memset(rec, 0x5a, bytes);
		w->tail += bytes;
	}
	assert_int_equal(w->tail, cursor); /* where a record ends */
}
