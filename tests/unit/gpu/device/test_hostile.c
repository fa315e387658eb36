/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots that break the rules, on purpose or at random: each ends with a status and one entry or
 * more, and not a byte is written outside that producer's outputs. Their check words are right: it
 * is the header or the record that is refused.
 */
#include <stdlib.h>
#include <string.h>

#include <tokd/ring.h>

#include <mix.h>
#include "bench.h"

#define ROUNDS 4000 /* TOKD_GPU_ROUNDS: another number */

static void
lie(struct bench *b, void (*change)(struct tokg_hdr *h), const void *payload)
{
	struct tokg_hdr h = bench_hdr(b, 3);
	struct tokg_out_entry e;

	change(&h);
	if (h.bytes <= b->d->geometry.slot_bytes)
		bench_post(b, 0, 0, h, payload);
	else
		bench_post_raw(b, 0, 0, h, payload);
	assert_int_equal(bench_status(b, 0, 0), TOKG_BADHDR);
	e = bench_entry(b);
	assert_int_equal(e.status, TOKG_BADHDR);
	assert_int_equal(e.tokens, 0);
	assert_int_equal(e.parts, 1);
}

#define LIE(name, what)                                                                            \
	static void name(struct tokg_hdr *h)                                                       \
	{                                                                                          \
		what;                                                                              \
	}
LIE(too_long, h->bytes = 4100)
LIE(far_too_long, h->bytes = UINT32_MAX)
LIE(half_an_id, h->bytes = 13)
LIE(more_tokens, h->tokens = 4)
LIE(no_tokens, h->tokens = 0)
LIE(another_kind, h->kind = TOKG_KIND_BERT)
LIE(no_kind, h->kind = 0)
LIE(another_vocab, h->vocab = 16)
LIE(between_rows, h->out_off = 64)
LIE(over_the_end, h->out_off = (1 << 17) - 4096; h->bytes = 4096; h->tokens = 1024)
LIE(unknown_flag, h->flags |= 1u << 31)
LIE(abort_with_ids, h->flags = TOKG_ABORT)
LIE(empty_batch, h->flags = TOKG_BATCH; h->bytes = 0; h->tokens = 0)
LIE(odd_batch, h->flags = TOKG_BATCH)
LIE(batch_of_64, h->flags = TOKG_BATCH; h->bytes = 64; h->tokens = 0)
LIE(batch_of_128, h->flags = TOKG_BATCH; h->bytes = 128; h->tokens = 16)
LIE(batch_of_17_ids, h->flags = TOKG_BATCH; h->bytes = 128; h->tokens = 17)

static void
small_outputs(struct tokg_device_config *c)
{
	c->geometry.out_bytes = 1 << 17;
}

BENCH_TEST(contradictory_headers_are_refused, small_outputs)
{
	void (*const changes[])(struct tokg_hdr *) = {too_long, far_too_long, half_an_id,
		more_tokens, no_tokens, another_kind, no_kind, another_vocab, between_rows,
		over_the_end, unknown_flag, abort_with_ids, empty_batch, odd_batch};
	uint32_t payload[1024] = {1, 2, 3};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		lie(b, changes[i], payload);
}

BENCH_TEST(contradictory_records_are_refused, small_outputs)
{
	const struct {
		struct tokd_rec r;
		void (*change)(struct tokg_hdr *h);
	} lies[] = {
		{{.bytes = 0, .kind = TOKD_REC_TOKENS}, batch_of_64},
		{{.bytes = 32, .kind = TOKD_REC_TOKENS}, batch_of_64},
		{{.bytes = 96, .kind = TOKD_REC_TOKENS}, batch_of_128},
		{{.bytes = 128, .kind = TOKD_REC_TOKENS}, batch_of_64},
		{{.bytes = 0xffffffc0, .kind = TOKD_REC_PAD}, batch_of_128},
		{{.bytes = 64, .kind = TOKD_REC_PAD}, batch_of_64},
		{{.bytes = 64, .kind = 3}, batch_of_64},
		{{.bytes = 128, .kind = TOKD_REC_TOKENS, .count = 17}, batch_of_17_ids},
		{{.bytes = 128, .kind = TOKD_REC_TOKENS, .count = UINT32_MAX}, batch_of_128},
		{{.bytes = 128, .kind = TOKD_REC_TOKENS, .count = 15}, batch_of_128},
		{{.bytes = 128, .kind = TOKD_REC_TOKENS, .flags = TOKD_REC_ABORT, .count = 16},
			batch_of_128},
	};
	uint8_t payload[128] = {0};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memcpy(payload, &lies[i].r, sizeof(lies[i].r));
		lie(b, lies[i].change, payload);
	}
}

/* Nearly right: one field or more is at random, or beside a limit. */
static void
mutate(struct tokg_hdr *h, uint8_t *payload, uint64_t *seed)
{
	static const uint32_t odd[] = {0, 1, 63, 64, 4095, 4096, 4097, 1u << 31, UINT32_MAX};

	for (uint32_t n = dice_throw(seed) % 4; n > 0; n--) {
		const uint32_t v = dice_throw(seed) % 2 ? (uint32_t)dice_throw(seed)
							: odd[dice_throw(seed) % (sizeof(odd) / 4)];
		const uint32_t at = dice_throw(seed) % 14;

		if (at < 14 && at != 6 && at != 7) /* check; epoch */
			memcpy((uint8_t *)h + 4 * at, &v, sizeof(v));
	}
	for (uint32_t n = dice_throw(seed) % 4; n > 0; n--) {
		const uint32_t v = dice_throw(seed) % 2 ? (uint32_t)dice_throw(seed)
							: odd[dice_throw(seed) % (sizeof(odd) / 4)];

		memcpy(payload + 4 * (dice_throw(seed) % 1024), &v, sizeof(v));
	}
}

static uint32_t
some_records(uint8_t *payload, uint32_t *tokens, uint64_t *seed)
{
	uint32_t at = 0;

	*tokens = 0;
	for (uint32_t n = 1 + dice_throw(seed) % 8; n > 0; n--) {
		struct tokd_rec r = {.kind = TOKD_REC_TOKENS, .count = dice_throw(seed) % 40};

		r.bytes = (uint32_t)tokg_align(sizeof(r) + 4 * r.count, TOKD_RING_ALIGN);
		if (at + r.bytes > 4096)
			break;
		memcpy(payload + at, &r, sizeof(r));
		*tokens += r.count;
		at += r.bytes;
	}
	return at;
}

/* Its outputs full of rows, by its four slots; what they are. No element of a row is 0. */
static void
all_of_producer_1(struct bench *b, float *mine)
{
	uint32_t ids[1024];

	for (uint32_t i = 0; i < 1024; i++)
		ids[i] = i * 7 % N_IDS;
	for (uint32_t slot = 0; slot < 4; slot++) {
		struct tokg_hdr h = bench_hdr(b, 1024);

		h.out_off = slot * (b->d->geometry.out_bytes / 4);
		bench_done(b, 1, slot, h, ids, TOKG_OK);
		assert_int_equal(bench_entry(b).tokens, 1024);
	}
	bench_rows(b, 1, 0, 4096, mine);
	for (uint32_t i = 0; i < 4096 * b->d->geometry.dim; i++)
		assert_true(mine[i] != 0);
}

TEST(random_slots_stay_within_their_producers_outputs)
{
	uint8_t payload[4096];
	float *mine, *then;
	uint64_t out_bytes;
	uint64_t seed = 88172645463325252ull, n_ok = 0, n_bad = 0;
	const char *more = getenv("TOKD_GPU_ROUNDS");
	const uint32_t rounds = more ? (uint32_t)strtoul(more, NULL, 10) : ROUNDS;
	struct bench b;

	bench_start(&b, small_outputs);
	out_bytes = b.d->geometry.out_bytes;
	mine = malloc(out_bytes);
	then = malloc(out_bytes);
	all_of_producer_1(&b, mine);
	for (uint32_t i = 0; i < rounds; i++) {
		struct tokg_hdr h = bench_hdr(&b, 1 + dice_throw(&seed) % 1024);
		uint32_t status, parts;

		for (uint32_t k = 0; k < sizeof(payload) / 4; k++)
			((uint32_t *)(void *)payload)[k] = dice_throw(&seed) % (N_IDS + N_IDS / 50);
		if (dice_throw(&seed) % 2) {
			h.flags = TOKG_BATCH;
			h.bytes = some_records(payload, &h.tokens, &seed);
		}
		h.out_off = dice_throw(&seed) % 32 * TOKG_OUT_ALIGN; /* some over the end */
		mutate(&h, payload, &seed);
		if (h.bytes <= sizeof(payload))
			bench_post(&b, 0, i % 4, h, payload);
		else
			bench_post_raw(&b, 0, i % 4, h, payload);
		status = bench_status(&b, 0, i % 4);
		parts = bench_entry(&b).parts;
		assert_true(parts > 0);
		for (uint32_t k = 1; k < parts; k++)
			assert_int_equal(bench_entry(&b).parts, parts);
		assert_false(bench_has_entry(&b));
		if (status == TOKG_OK || status == TOKG_BADID)
			n_ok++;
		else
			n_bad++;
	}
	assert_true(n_ok > rounds / 10 && n_bad > rounds / 10);
	bench_rows(&b, 1, 0, (uint32_t)(out_bytes / b.d->geometry.row_bytes), then);
	for (uint64_t i = 0; i < out_bytes / sizeof(float); i++)
		if (then[i] != mine[i])
			fail_msg("element %llu of another producer's outputs was written",
				(unsigned long long)i);
	for (uint32_t slot = 0; slot < 4; slot++)
		assert_int_equal(bench_word(&b, tokg_done_at(&b.d->geometry, 1, slot)),
			TOKG_DONE(1, TOKG_OK));
	bench_close(&b);
	free(mine);
	free(then);
}

BENCH_TEST(unexpected_tickets_are_not_claimed, NULL)
{
	const uint64_t tickets[] = {2, 1000, TOKG_TICKET_MAX, TOKG_TICKET_MAX + 1, UINT64_MAX};

	for (size_t i = 0; i < sizeof(tickets) / sizeof(tickets[0]); i++) {
		b->d->ops->write_u64(b->d, tokg_hdr_at(&b->d->geometry, 0, 0) + 56, tickets[i]);
		bench_stop(b, TOKG_STOP_DRAIN);
		bench_run(b, 2 + (uint32_t)i);
		assert_int_equal(bench_word(b, tokg_claim_at(&b->d->geometry, 0, 0)), 0);
		assert_false(bench_has_entry(b));
	}
}
