/* SPDX-License-Identifier: BSD-3-Clause */
/* The consumer: rows, entries and statuses of slots. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tokd/ring.h>

#include "bench.h"

static void
odd_dim(struct tokg_device_config *c)
{
	c->geometry.dim = 5;
}

static void
with_positions(struct tokg_device_config *c)
{
	c->geometry.kind = TOKG_KIND_WORD_POSITION;
}

static void
alone(struct tokg_device_config *c)
{
	c->workers = 0;
}

static void
four_workers_long_slots(struct tokg_device_config *c)
{
	c->workers = 4;
	c->geometry.slots = 16;
	c->geometry.slot_bytes = 65536;
	c->geometry.dim = 4;
	c->geometry.out_bytes = 1 << 22;
}

static void
rows_are(
	const struct bench *b, uint64_t out_off, const uint32_t *ids, uint32_t n, uint32_t position)
{
	const uint32_t dim = b->config.geometry.dim;
	float *const rows = malloc(sizeof(float) * dim * n + 1);

	bench_rows(b, 0, out_off, n, rows);
	for (uint32_t r = 0; r < n; r++) {
		const float *row = rows + (size_t)r * dim;

		for (uint32_t i = 0; i < dim; i++) {
			float want = b->word[ids[r] * dim + i];

			if (b->config.geometry.kind == TOKG_KIND_WORD_POSITION)
				want += b->position[(position + r) * dim + i];
			if (row[i] != want)
				fail_msg("row %u, element %u: %f, not %f", r, i, (double)row[i],
					(double)want);
		}
	}
	free(rows);
}

static void
one_slot(void (*change)(struct tokg_device_config *c))
{
	const uint32_t ids[5] = {3, 99, 0, 3, 42};
	struct tokg_out_entry e;
	struct tokg_hdr h;
	struct bench b;

	bench_start(&b, change);
	h = bench_hdr(&b, 5);
	h.out_off = 8192;
	h.position0 = 17;
	h.first = 4;
	bench_done(&b, 0, 2, h, ids, TOKG_OK);
	rows_are(&b, 8192, ids, 5, 17);
	e = bench_entry(&b);
	assert_int_equal(e.producer, 0);
	assert_int_equal(e.slot, 2);
	assert_int_equal(e.ticket, 1);
	assert_int_equal(e.request, 1000);
	assert_int_equal(e.out_off, 8192);
	assert_int_equal(e.first, 4);
	assert_int_equal(e.tokens, 5);
	assert_int_equal(e.flags, TOKG_FIRST | TOKG_LAST);
	assert_int_equal(e.status, TOKG_OK);
	assert_int_equal(e.redo, 0);
	assert_int_equal(e.epoch, 7);
	assert_int_equal(e.incarnation, 1);
	assert_int_equal(e.part, 0);
	assert_int_equal(e.parts, 1);
	assert_int_equal(e.t_post, 77);
	assert_true(e.visible > 0 && e.embedded >= e.visible);
	assert_int_equal(
		bench_word(&b, tokg_claim_at(&b.d->geometry, 0, 2)), TOKG_CLAIM(1ull, 1ull));
	assert_false(bench_has_entry(&b));
	bench_close(&b);
}

TEST(ids_become_their_rows)
{
	one_slot(NULL);
	one_slot(odd_dim);
}

TEST(positions_are_added)
{
	one_slot(with_positions);
}

TEST(the_scanner_works_alone_without_workers)
{
	one_slot(alone);
}

BENCH_TEST(long_slots_are_shared_by_workers_and_the_queue_comes_round, four_workers_long_slots)
{
	const uint32_t most = 16384; /* 256 jobs; the others have 64 */
	const uint64_t room = tokg_out_bytes(most, 16);
	uint32_t *const ids = malloc(4ull * most);
	struct tokg_hdr h;

	for (uint32_t i = 0; i < most; i++)
		ids[i] = i * 7 % N_IDS;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t slot = 0; slot < 16; slot++) {
			h = bench_hdr(b, slot == 0 ? most : most / 4);
			h.out_off = slot * room;
			bench_post(b, 0, slot, h, ids);
		}
		for (uint32_t slot = 0; slot < 16; slot++)
			assert_int_equal(bench_status(b, 0, slot), TOKG_OK);
		for (uint32_t slot = 0; slot < 16; slot++)
			rows_are(b, slot * room, ids, slot == 0 ? most : most / 4, 0);
	}
	for (uint32_t i = 0; i < 32; i++) {
		const struct tokg_out_entry e = bench_entry(b);

		assert_int_equal(e.tokens, e.slot == 0 ? most : most / 4);
	}
	assert_false(bench_has_entry(b));
	free(ids);
}

/* Puts a record at `at`; the bytes it takes. */
static uint32_t
record(uint8_t *at, uint16_t kind, uint16_t flags, uint64_t serial, uint32_t first,
	const uint32_t *ids, uint32_t count)
{
	struct tokd_rec r = {0};

	r.bytes = (uint32_t)tokg_align(sizeof(r) + 4ull * count, TOKD_RING_ALIGN);
	r.kind = kind;
	r.flags = flags;
	r.serial = serial;
	r.first = first;
	r.count = count;
	memcpy(at, &r, sizeof(r));
	if (count > 0)
		memcpy(at + sizeof(r), ids, 4ull * count);
	return r.bytes;
}

BENCH_TEST(records_of_a_batch_have_an_entry_each, with_positions)
{
	const uint32_t ids[20] = {
		1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
	uint8_t payload[4096] = {0};
	struct tokg_out_entry e[4];
	struct tokg_hdr h;
	uint32_t at = 0;

	h = bench_hdr(b, 0);
	at += record(payload + at, TOKD_REC_TOKENS, TOKD_REC_FIRST, 501, 0, ids, 3);
	at += record(payload + at, TOKD_REC_PAD, 0, 0, 0, NULL, 0);
	at += record(payload + at, TOKD_REC_TEXT, TOKD_REC_FIRST, 500, 0, ids, 20);
	at += record(payload + at, TOKD_REC_TOKENS, TOKD_REC_LAST, 502, 40, ids + 3, 17);
	at += record(payload + at, TOKD_REC_TOKENS, TOKD_REC_ABORT, 503, 9, NULL, 0);
	at += record(
		payload + at, TOKD_REC_TOKENS, TOKD_REC_FIRST | TOKD_REC_LAST, 504, 0, NULL, 0);
	h.bytes = at;
	h.tokens = 20;
	h.flags = TOKG_BATCH;
	h.out_off = 4096;
	bench_done(b, 0, 1, h, payload, TOKG_OK);
	for (int i = 0; i < 4; i++) {
		const struct tokg_out_entry x = bench_entry(b);

		assert_true(x.part < 4);
		e[x.part] = x;
	}
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(e[i].request, 501 + i);
		assert_int_equal(e[i].parts, 4);
		assert_int_equal(e[i].out_off, 4096 + 4096 * i);
		assert_int_equal(e[i].status, TOKG_OK);
	}
	assert_int_equal(e[0].flags, TOKG_BATCH | TOKG_FIRST);
	assert_int_equal(e[1].flags, TOKG_BATCH | TOKG_LAST);
	assert_int_equal(e[2].flags, TOKG_BATCH | TOKG_ABORT);
	assert_int_equal(e[3].flags, TOKG_BATCH | TOKG_FIRST | TOKG_LAST);
	assert_int_equal(e[1].first, 40);
	assert_int_equal(e[1].tokens, 17);
	assert_int_equal(e[2].tokens, 0);
	rows_are(b, 4096, ids, 3, 0);
	rows_are(b, 8192, ids + 3, 17, 40);
}

static void
two_workers(struct tokg_device_config *c)
{
	c->workers = 2;
}

/* Slots of a kind each, in one look: the scanner gives them to workers. */
static void
post_together(struct bench *b, const uint32_t *ids)
{
	uint8_t payload[4096] = {0};
	struct tokg_hdr h;
	uint32_t at = 0;

	h = bench_hdr(b, 3); /* one job */
	bench_post(b, 0, 0, h, ids);
	h = bench_hdr(b, 1000); /* several */
	h.out_off = 65536;
	bench_post(b, 0, 1, h, ids);
	at += record(payload, TOKD_REC_TOKENS, 0, 500, 0, ids, 300);
	at += record(payload + at, TOKD_REC_TOKENS, 0, 501, 0, ids, 0);
	at += record(payload + at, TOKD_REC_TOKENS, 0, 502, 0, ids, 7);
	h = bench_hdr(b, 0);
	h.bytes = at;
	h.tokens = 307;
	h.flags = TOKG_BATCH;
	h.out_off = 2 * 65536;
	bench_post(b, 0, 2, h, payload);
	h = bench_hdr(b, 3);
	h.check = 1;
	bench_post_raw(b, 0, 3, h, ids);
	h = bench_hdr(b, 3);
	h.out_off = 1;
	bench_post(b, 1, 0, h, ids);
	bench_post(b, 1, 1, bench_hdr(b, 1), (uint32_t[]){N_IDS});
	h = bench_hdr(b, 3);
	h.epoch = 6;
	bench_post(b, 1, 2, h, ids);
	bench_post(b, 1, 3, bench_hdr(b, 0), "");
}

static void
together(void (*change)(struct tokg_device_config *c))
{
	static const uint32_t status[8] = {TOKG_OK, TOKG_OK, TOKG_OK, TOKG_BADSUM, TOKG_BADHDR,
		TOKG_BADID, TOKG_STALE, TOKG_OK};
	uint32_t ids[1000], entries[8];
	struct bench b;

	for (uint32_t i = 0; i < 1000; i++)
		ids[i] = i * 7 % N_IDS;
	bench_start(&b, change);
	for (uint32_t round = 0; round < 20; round++) {
		/* The last ends by DRAIN, with slots on their way to workers and back. */
		const enum tokg_stop how = round % 2 ? TOKG_STOP_DRAIN : TOKG_STOP_NOW;

		bench_stop(&b, how);
		post_together(&b, ids);
		bench_run(&b, 2 + round);
		if (round % 2 == 0)
			bench_stop(&b, TOKG_STOP_DRAIN);
		memset(entries, 0, sizeof(entries));
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(bench_status(&b, i / 4, i % 4), status[i]);
		for (uint32_t i = 0; i < 10; i++) {
			const struct tokg_out_entry e = bench_entry(&b);

			entries[e.producer * 4 + e.slot]++;
			assert_int_equal(e.redo, 0);
		}
		assert_false(bench_has_entry(&b));
		for (uint32_t i = 0; i < 8; i++)
			assert_int_equal(entries[i], i == 2 ? 3 : 1);
		rows_are(&b, 0, ids, 3, 0);
		rows_are(&b, 65536, ids, 1000, 0);
		rows_are(&b, 2 * 65536, ids, 300, 0);
		rows_are(&b, 2 * 65536 + tokg_out_bytes(300, 32) + TOKG_OUT_ALIGN, ids, 7, 0);
	}
	bench_close(&b);
}

TEST(slots_that_come_together_are_checked_by_workers)
{
	together(NULL);
	together(two_workers);
}

TEST(slots_that_come_together_are_checked_without_workers)
{
	bench_skip_on_gpu("a GPU always has workers");
	together(alone);
}

static void
long_batches(struct tokg_device_config *c)
{
	c->geometry.slot_bytes = 65536;
	c->geometry.out_bytes = 1 << 22;
	c->workers = 2;
}

BENCH_TEST(a_batch_longer_than_the_window_is_walked_to_its_end, long_batches)
{
	uint8_t *const payload = calloc(1, 65536);
	uint32_t ids[300], n = 0, at = 0, tokens = 0;
	uint64_t seen = 0;
	struct tokg_hdr h;

	for (uint32_t i = 0; i < 300; i++)
		ids[i] = i % N_IDS;
	for (uint32_t count = 100; at + 64 + 4 * 299 + 64 < 65536;
		count = (count * 7 + 1) % 300, n++) {
		at += record(payload + at, TOKD_REC_TOKENS, 0, n, 0, ids, count);
		tokens += count;
	}
	assert_true(n > 64);
	h = bench_hdr(b, 0);
	h.bytes = at;
	h.tokens = tokens;
	h.flags = TOKG_BATCH;
	bench_done(b, 0, 0, h, payload, TOKG_OK);
	for (uint32_t i = 0; i < n; i++) {
		const struct tokg_out_entry e = bench_entry(b);

		assert_int_equal(e.request, e.part);
		assert_int_equal(e.parts, n);
		seen += e.part;
		rows_are(b, e.out_off, ids, e.tokens, 0);
	}
	assert_int_equal(seen, (uint64_t)n * (n - 1) / 2);
	free(payload);
}

BENCH_TEST(slots_without_ids_have_their_entry, NULL)
{
	struct tokg_hdr h;

	bench_done(b, 0, 0, bench_hdr(b, 0), "", TOKG_OK);
	assert_int_equal(bench_entry(b).tokens, 0);
	h = bench_hdr(b, 0);
	h.flags = TOKG_ABORT;
	bench_done(b, 0, 1, h, "", TOKG_OK);
	assert_int_equal(bench_entry(b).flags, TOKG_ABORT);
}

BENCH_TEST(ids_and_positions_beyond_the_tables_are_zero_rows, with_positions)
{
	const uint32_t ids[4] = {5, N_IDS, UINT32_MAX, 6};
	static const float zero[16];
	float rows[16];
	struct tokg_hdr h;

	bench_done(b, 0, 0, bench_hdr(b, 4), ids, TOKG_BADID);
	assert_int_equal(bench_entry(b).status, TOKG_BADID);
	rows_are(b, 0, ids, 1, 0);
	bench_rows(b, 0, 32, 2, rows);
	assert_memory_equal(rows, zero, sizeof(rows));
	rows_are(b, 3 * 32, ids + 3, 1, 3);

	h = bench_hdr(b, 1);
	h.position0 = UINT32_MAX;
	bench_done(b, 0, 1, h, ids, TOKG_BADPOS);
	bench_rows(b, 0, 0, 1, rows);
	assert_memory_equal(rows, zero, 32);
}

BENCH_TEST(a_torn_payload_is_a_bad_sum_and_may_be_posted_again, NULL)
{
	uint32_t ids[20] = {1, 2, 3};
	struct tokg_hdr h;
	uint64_t at;

	for (uint32_t i = 0; i < 32; i++) { /* one byte, of ids or padding */
		bench_done(b, 0, 0, bench_hdr(b, 20), ids, TOKG_OK);
		bench_entry(b);
		at = tokg_payload_at(&b->d->geometry, 0, 0) + i / 2 * 8;
		b->d->ops->write_u64(b->d, at, bench_word(b, at) ^ (0x10ull << i % 2 * 32));
		h = bench_hdr(b, 20);
		h.ticket = b->ticket[0] + 1;
		h.check = tokg_check_of(&h, (uint32_t[32]){1, 2, 3});
		bench_post_raw(b, 0, 0, h, NULL);
		assert_int_equal(bench_status(b, 0, 0), TOKG_BADSUM);
		assert_int_equal(bench_entry(b).status, TOKG_BADSUM);
	}
	h = bench_hdr(b, 20);
	h.flags |= TOKG_STRICT;
	bench_done(b, 0, 0, h, ids, TOKG_OK);
}

BENCH_TEST(slots_of_a_dead_producer_are_stale, NULL)
{
	const uint32_t ids[1] = {1};
	struct tokg_hdr h;

	h = bench_hdr(b, 1);
	h.epoch = 6;
	bench_done(b, 0, 0, h, ids, TOKG_STALE);
	assert_int_equal(bench_entry(b).epoch, 6);
	bench_grant(b, 0, 0);
	bench_done(b, 0, 1, bench_hdr(b, 1), ids, TOKG_STALE);
	h.epoch = 0;
	bench_done(b, 0, 2, h, ids, TOKG_STALE);
}

BENCH_TEST(the_heartbeat_rises, NULL)
{
	uint64_t at;

	at = bench_word(b, offsetof(struct tokg_ctl, heartbeat));
	for (int i = 0; bench_word(b, offsetof(struct tokg_ctl, heartbeat)) <= at; i++) {
		struct timespec nap = {0, 1000000};

		assert_true(i < 5000);
		nanosleep(&nap, NULL);
	}
}
