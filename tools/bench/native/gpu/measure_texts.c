/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure_texts.h"

#include <stdlib.h>
#include <string.h>

#include "post.h"
#include "texts_made.h"
#include "tok.h"

static void *
zeroed(size_t n, size_t bytes)
{
	void *const to = calloc(n, bytes);

	if (to == NULL)
		post_fail("no memory for %zu x %zu bytes of texts", n, bytes);
	return to;
}

void
measure_texts_open(struct measure_texts *t, const char *vocabulary, bool greedy)
{
	const struct tok_load_opts opts = {.algo = greedy ? "greedy" : "exact"};
	struct tok_error error;

	t->v = tok_vocab_load(vocabulary, &opts, &error);
	if (t->v == NULL)
		post_fail("%s", error.text);
}

static void
encode(struct measure_texts *t, uint32_t i, const uint8_t *text, size_t n)
{
	const size_t room = tok_encode_bound(t->v, n, TOK_ADDED_AS_TEXT);
	struct tok_result r;

	t->ids[i] = zeroed(room + 1, sizeof(**t->ids));
	r = tok_encode(t->v, NULL, text, n, TOK_ADDED_AS_TEXT, t->ids[i], room);
	if (r.status != TOK_OK)
		post_fail("text %u is not encoded", i);
	t->n_ids[i] = (uint32_t)r.produced;
}

void
measure_texts_make(
	struct measure_texts *t, const char *file, uint32_t n, uint32_t bytes, uint32_t row_bytes)
{
	const uint32_t stride = (uint32_t)tokg_align(bytes, TOKG_LINE);
	uint8_t *const all = zeroed(n, stride);
	uint32_t *const lengths = zeroed(n, sizeof(*lengths));
	struct texts_file f;

	if (!texts_read(&f, file) || f.n < bytes + 4ull)
		post_fail("%s cannot be read, or is shorter than a text of %u bytes", file, bytes);
	t->n = n;
	t->most_bytes = bytes;
	t->n_ids = zeroed(n, sizeof(*t->n_ids));
	t->ids = zeroed(n, sizeof(*t->ids));
	t->posted = (struct produce_texts){.bytes = all, .n = lengths, .stride = stride};
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *text;

		lengths[i] = (uint32_t)texts_slice(&f, i, bytes, &text);
		memcpy(all + (size_t)i * stride, text, lengths[i]);
		encode(t, i, text, lengths[i]);
		if (tokg_out_bytes(t->n_ids[i], row_bytes) > t->posted.out_stride)
			t->posted.out_stride = tokg_out_bytes(t->n_ids[i], row_bytes);
	}
	free(f.bytes);
}

static bool
rows_right(const struct measure_texts *t, uint32_t i, const uint8_t *rows, const uint8_t *word,
	uint32_t row_bytes)
{
	for (uint32_t k = 0; k < t->n_ids[i]; k++)
		if (memcmp(rows + (size_t)k * row_bytes, word + (size_t)t->ids[i][k] * row_bytes,
			    row_bytes) != 0)
			return false;
	return true;
}

uint32_t
measure_texts_compare(const struct measure_texts *t, struct tokg_device *d,
	const struct produce_said *said, const void *word)
{
	const struct tokg_geometry *const g = &d->geometry;
	uint8_t *const rows = zeroed(1, t->posted.out_stride);
	uint32_t compared = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const uint32_t producer = i / g->slots, slot = i % g->slots;

		if (slot >= said[producer].done)
			continue;
		if (d->ops->read_outputs(d, producer * g->out_bytes + slot * t->posted.out_stride,
			    rows, (size_t)t->n_ids[i] * g->row_bytes) < 0)
			post_fail("the outputs cannot be read");
		if (!rows_right(t, i, rows, word, g->row_bytes))
			post_fail("text %u has other rows than those of libtok's ids", i);
		compared++;
	}
	free(rows);
	return compared;
}

uint64_t
measure_texts_bytes(const struct measure_texts *t, const struct tokg_geometry *g,
	const struct produce_said *said)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < t->n; i++) {
		const uint64_t done = said[i / g->slots].done, slot = i % g->slots;
		const uint64_t posts = (done + g->slots - 1 - slot) / g->slots;

		bytes += posts * t->posted.n[i];
	}
	return bytes;
}
