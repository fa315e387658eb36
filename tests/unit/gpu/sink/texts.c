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
publish_bytes(struct world *w, uint32_t total)
{
	const uint32_t words = (total + 3) / 4, serial = w->n_texts;
	const uint64_t bytes = record_bytes(words);
	struct tokd_rec *rec;

	if (!has_room(w, words))
		return false;
	new_text(w, vocabs[0], total);
	w->text[serial].is_open = false;
	w->text[serial].is_bytes = true;
	rec = record_at_head(w, bytes);
	*rec = (struct tokd_rec){
		.bytes = (uint32_t)bytes,
		.kind = TOKD_REC_BYTES,
		.flags = TOKD_REC_FIRST | TOKD_REC_LAST,
		.serial = serial,
		.t_publish = w->now,
		.count = total,
		.vocab = vocabs[0],
	};
	for (uint32_t i = 0; i < total; i++)
		((uint8_t *)(rec + 1))[i] = byte_of(serial, i);
	return true;
}

void
publish_back(struct world *w)
{
	while (w->n_came > 0 && publish(w, w->came[w->n_came - 1],
					w->text[w->came[w->n_came - 1]].total, TOKD_REC_LAST))
		w->n_came--;
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

void
embedded_text(struct world *w, const struct tokg_hdr *h, const uint8_t *bytes,
	enum tokg_status status, bool is_final)
{
	const uint32_t epoch = w->t.epoch;
	struct text *t = &w->text[h->request];

	assert_true(h->request < w->n_texts && h->request >= w->shed_below);
	assert_true(t->is_bytes);
	assert_non_null(t->seen);
	assert_int_equal(h->bytes, t->total);
	for (uint32_t i = 0; i < t->total; i++)
		assert_int_equal(bytes[i], byte_of(h->request, i));
	if (status == TOKG_CPU || !(status == TOKG_OK || is_final))
		return;
	assert_int_not_equal(t->last_seen, epoch);
	for (uint32_t i = 0; i < t->total; i++)
		t->seen[i] = status == TOKG_OK ? epoch : FAILED_EPOCH;
	if (status == TOKG_OK)
		t->first_seen = t->last_seen = epoch;
	else
		t->must_fail = true;
}

/* Its ids come later if it came back. */
static void
check_bytes(struct world *w, const struct tokd_rec *rec)
{
	struct text *t = &w->text[rec->serial];

	if (rec->serial >= w->shed_below) {
		assert_true(t->finished);
		assert_true(t->came_back || t->must_fail || t->last_seen != 0);
		assert_int_equal(t->must_fail, t->has_failed);
	}
	if (t->came_back)
		return;
	free(t->seen);
	t->seen = NULL;
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
		if (rec->kind == TOKD_REC_BYTES)
			check_bytes(w, rec);
		memset(rec, 0x5a, bytes);
		w->tail += bytes;
	}
	assert_int_equal(w->tail, cursor); /* where a record ends */
}
