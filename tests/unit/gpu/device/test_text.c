/* SPDX-License-Identifier: BSD-3-Clause */
/* TEXT slots: bytes become the rows of the ids that tok_encode has, or CPU says who encodes them.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "small_vocab.h"
#include "texts_made.h"
#include "tokenize/text.h"

#define MERGES 120
#define TEXTS 600u
#define SLOT_BYTES 4096u
#define WHOLE (TOKG_FIRST | TOKG_LAST | TOKG_TEXT)

static struct small_vocab small;
static uint32_t workers;

static void
texts_on(struct tokg_device_config *c)
{
	c->workers = workers;
	c->geometry.n_ids = small.n;
	c->geometry.out_bytes = 1 << 21;
	c->text_vocab = small.v;
	c->text_flags = TOK_ADDED_AS_TEXT;
}

static void
start(struct bench *b, uint32_t n_workers, enum small_flags flags)
{
	static const char alphabet[] = "ab'st \n1eT\xc3\xa9";
	uint64_t seed = 5;

	small_vocab_of(&small, &seed, alphabet, MERGES, TOK_PRETOK_GPT2, flags);
	workers = n_workers;
	bench_start(b, texts_on);
}

static void
stop(struct bench *b)
{
	bench_close(b);
	small_vocab_free(&small);
}

/* The header of a text in its part of the outputs. */
static struct tokg_hdr
text_hdr(const struct bench *b, uint32_t slot, uint32_t bytes)
{
	struct tokg_hdr h = bench_hdr(b, 0);

	h.bytes = bytes;
	h.flags = WHOLE;
	h.out_off = slot * (b->d->geometry.out_bytes / 4);
	return h;
}

static void
rows_are(const struct bench *b, const struct tokg_out_entry *e, const uint32_t *ids, size_t n)
{
	const uint32_t dim = b->config.geometry.dim;
	float *const rows = malloc(sizeof(float) * dim * n + 1);

	assert_int_equal(e->tokens, n);
	bench_rows(b, e->producer, e->out_off, (uint32_t)n, rows);
	for (size_t r = 0; r < n; r++)
		assert_memory_equal(
			rows + r * dim, b->word + (size_t)ids[r] * dim, sizeof(float) * dim);
	free(rows);
}

/* The entry has the rows of the text's ids, or none. True: rows. */
static bool
entry_is(const struct bench *b, const struct tokg_out_entry *e, const void *p, uint32_t n)
{
	const size_t room = tok_encode_bound(small.v, n, TOK_ADDED_AS_TEXT);
	uint32_t *const ids = malloc(sizeof(*ids) * room + 1);

	if (e->status == TOKG_OK) {
		assert_int_equal(e->flags, WHOLE);
		rows_are(b, e, ids,
			tok_encode(small.v, NULL, p, n, TOK_ADDED_AS_TEXT, ids, room).produced);
	} else {
		assert_int_equal(e->status, TOKG_CPU);
		assert_int_equal(e->tokens, 0);
	}
	free(ids);
	return e->status == TOKG_OK;
}

/* The same of the next entry, which is the only one. */
static bool
is_encoded(struct bench *b, uint32_t slot, const void *p, uint32_t n)
{
	const uint32_t status = bench_status(b, 0, slot);
	const struct tokg_out_entry e = bench_entry(b);

	assert_int_equal(e.status, status);
	assert_int_equal(e.slot, slot);
	return entry_is(b, &e, p, n);
}

/* The same of a text that is posted. */
static bool
encodes(struct bench *b, uint32_t slot, const void *p, uint32_t n)
{
	bench_post(b, 0, slot, text_hdr(b, slot, n), p);
	return is_encoded(b, slot, p, n);
}

/* Made texts, one slot in four with ids instead. */
static void
made_texts(uint32_t n_workers)
{
	struct texts_made made = {.seed = n_workers};
	uint8_t text[SLOT_BYTES];
	uint32_t encoded = 0;
	struct bench b;

	start(&b, n_workers, 0);
	for (uint32_t i = 0; i < TEXTS; i++) {
		const uint32_t n = (uint32_t)texts_next(&made, text, SLOT_BYTES);

		encoded += encodes(&b, i % 4, text, n);
		if (i % 4 == 3) {
			const uint32_t ids[3] = {3, 99, 300};
			struct tokg_out_entry e;

			bench_done(&b, 1, 0, bench_hdr(&b, 3), ids, TOKG_OK);
			e = bench_entry(&b);
			rows_are(&b, &e, ids, 3);
		}
	}
	assert_true(encoded > TEXTS / 10 && encoded < TEXTS);
	assert_false(bench_has_entry(&b));
	stop(&b);
}

TEST(texts_become_the_rows_of_libtoks_ids)
{
	made_texts(2);
}

TEST(the_scanner_alone_encodes_texts)
{
	bench_skip_on_gpu("a GPU always has workers");
	made_texts(0);
}

/* All slots are posted before the consumer runs: workers check them at the same time. */
TEST(texts_and_ids_side_by_side_are_done_at_once)
{
	struct texts_made made = {.seed = 9};
	static uint8_t text[4][SLOT_BYTES];
	uint32_t ids[1024], n[4];
	struct bench b;

	start(&b, 3, 0);
	for (uint32_t i = 0; i < 1024; i++)
		ids[i] = i % small.n;
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t seen = 0;

		bench_stop(&b, TOKG_STOP_DRAIN);
		for (uint32_t slot = 0; slot < 4; slot++) {
			struct tokg_hdr h = bench_hdr(&b, 1024);

			n[slot] = (uint32_t)texts_next(&made, text[slot], SLOT_BYTES);
			bench_post(&b, 0, slot, text_hdr(&b, slot, n[slot]), text[slot]);
			h.out_off = slot * (b.d->geometry.out_bytes / 4);
			bench_post(&b, 1, slot, h, ids);
		}
		bench_run(&b, 2 + round);
		for (uint32_t slot = 0; slot < 4; slot++) {
			bench_status(&b, 0, slot);
			assert_int_equal(bench_status(&b, 1, slot), TOKG_OK);
		}
		for (uint32_t i = 0; i < 8; i++) {
			const struct tokg_out_entry e = bench_entry(&b);

			seen |= 1u << (4 * e.producer + e.slot);
			if (e.producer == 1)
				rows_are(&b, &e, ids, 1024);
			else
				entry_is(&b, &e, text[e.slot], n[e.slot]);
		}
		assert_int_equal(seen, 255);
	}
	stop(&b);
}

TEST(what_the_device_does_not_encode_is_left_to_the_cpu)
{
	uint8_t text[SLOT_BYTES];
	struct bench b;

	start(&b, 1, SMALL_NFC);
	assert_false(encodes(&b, 0, "s\xfft", 3));
	assert_false(encodes(&b, 1, "e\xcc\x81", 3)); /* e and a combining acute: NFC changes it */
	memset(text, 'a', sizeof(text));
	assert_false(encodes(&b, 2, text, TOKG_WORD_MAX + 1)); /* one pretoken */
	assert_true(encodes(&b, 3, text, 0));
	stop(&b);
}

static void
refused(struct bench *b, struct tokg_hdr h)
{
	bench_done(b, 0, 0, h, "a text", TOKG_BADHDR);
	assert_int_equal(bench_entry(b).tokens, 0);
}

TEST(contradictory_text_headers_are_refused)
{
	static const uint32_t flags[] = {TOKG_TEXT, TOKG_TEXT | TOKG_FIRST, TOKG_TEXT | TOKG_LAST,
		WHOLE | TOKG_BATCH, WHOLE | TOKG_ABORT, WHOLE | 1 << 6};
	struct tokg_hdr h;
	struct bench b;

	start(&b, 1, 0);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		h = text_hdr(&b, 0, 6);
		h.flags = flags[i];
		refused(&b, h);
	}
	h = text_hdr(&b, 0, 6);
	h.vocab = 1;
	refused(&b, h);
	h = text_hdr(&b, 0, 6);
	h.tokens = 1;
	refused(&b, h);
	h = text_hdr(&b, 0, 129); /* room for 128 rows */
	h.out_off = b.d->geometry.out_bytes - TOKG_OUT_ALIGN;
	bench_done(&b, 0, 0, h, (const uint8_t[SLOT_BYTES]){0}, TOKG_BADHDR);
	bench_entry(&b);
	h = text_hdr(&b, 0, 6);
	h.flags |= TOKG_STRICT;
	bench_post(&b, 0, 0, h, "a text");
	assert_true(is_encoded(&b, 0, "a text", 6));
	stop(&b);
}

BENCH_TEST(without_a_vocabulary_texts_are_refused, NULL)
{
	refused(b, text_hdr(b, 0, 6));
}

TEST(a_text_that_was_claimed_and_not_done_is_done_again_and_marked)
{
	static const uint8_t text[] = "that's a test: aabb st";
	const uint32_t n = sizeof(text) - 1;
	struct bench b;

	start(&b, 1, 0);
	bench_stop(&b, TOKG_STOP_NOW);
	bench_post(&b, 0, 0, text_hdr(&b, 0, n), text);
	b.d->ops->write_u64(b.d, tokg_claim_at(&b.d->geometry, 0, 0), TOKG_CLAIM(1, 1));
	bench_run(&b, 2);
	bench_status(&b, 0, 0);
	assert_int_equal(tokg_outbox_entry(b.d->outbox, 0)->redo, 1);
	assert_true(is_encoded(&b, 0, text, n));
	stop(&b);
}

static void
refused_vocab(const char *words)
{
	struct tokg_device_config c;
	struct tokg_error err = {{0}};
	struct bench b;

	bench_open(&b, NULL);
	c = b.config;
	c.text_vocab = small.v;
	assert_null(b.gpu ? tokg_device_cuda(&c, &err) : tokg_device_cpu(&c, &err));
	if (strstr(err.text, words) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	bench_close(&b);
}

TEST(an_unsupported_vocabulary_is_refused_with_a_message)
{
	uint64_t seed = 5;

	small_vocab_of(&small, &seed, "ab", 4, TOK_PRETOK_GPT2, 0);
	refused_vocab("--text-vocab: it has 260 ids, the word table 100 rows");
	small_vocab_free(&small);
	small_vocab_of(&small, &seed, "ab", 4, TOK_PRETOK_GPT2, SMALL_ADDED);
	refused_vocab("--text-vocab: the device cannot encode with it");
	small_vocab_free(&small);
}
