/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <monotonic.h>
#include "post.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_MS 60000	   /* of a wait */
#define LIMIT_GPU_MS 20000 /* whose time is short */

static void
nap(void)
{
	const struct timespec t = {0, 20000};

	nanosleep(&t, NULL);
}

static const char *
device_name(void)
{
	const char *const name = getenv("TOKD_GPU_DEVICE");

	return name ? name : "cpu";
}

static bool
on_gpu(void)
{
	return strncmp(device_name(), "cuda", 4) == 0;
}

static uint64_t
limit_from_now(void)
{
	return monotonic_ms() + (on_gpu() ? LIMIT_GPU_MS : LIMIT_MS);
}

void
bench_skip_on_gpu(const char *reason)
{
	if (on_gpu())
		test_skip("%s", reason);
}

void
bench_open(struct bench *b, void (*change)(struct tokg_device_config *c))
{
	struct tokg_device_config *const c = &b->config;
	struct tokg_geometry *const g = &c->geometry;
	struct tokg_error err = {{0}};

	memset(b, 0, sizeof(*b));
	g->producers = 2;
	g->slots = 4;
	g->slot_bytes = 4096;
	g->flags = TOKG_CHECKED;
	g->kind = TOKG_KIND_WORD;
	g->dtype = TOKG_F32;
	g->dim = 8;
	g->n_ids = N_IDS;
	g->out_bytes = 1 << 20;
	c->ring_epoch = 1;
	c->workers = TOKG_WORKERS_DEFAULT;
	c->first_cpu = -1;
	if (change)
		change(c);
	if (g->kind != TOKG_KIND_WORD)
		g->n_positions = N_POSITIONS;
	if (!tokg_geometry_fill(g, &err))
		fail_msg("%s", err.text);
	b->word = malloc(sizeof(float) * g->n_ids * g->dim);
	b->position = malloc(sizeof(float) * N_POSITIONS * g->dim);
	for (uint32_t i = 0; i < g->n_ids * g->dim; i++)
		b->word[i] = 1.0f + (float)i;
	for (uint32_t i = 0; i < N_POSITIONS * g->dim; i++)
		b->position[i] = 0.25f * (float)i;
	c->tables.kind = g->kind;
	c->tables.dtype = g->dtype;
	c->tables.dim = g->dim;
	c->tables.n_ids = g->n_ids;
	c->tables.n_positions = g->n_positions;
	c->tables.word = b->word;
	c->tables.position = g->kind == TOKG_KIND_WORD ? NULL : b->position;
	b->gpu = on_gpu();
	b->d = post_device(device_name(), c, &err);
	if (b->d == NULL)
		fail_msg("%s", err.text);
}

void
bench_grant(struct bench *b, uint32_t producer, uint32_t epoch)
{
	const uint64_t at =
		tokg_back_at(&b->d->geometry, producer) + offsetof(struct tokg_back, epoch);

	assert_int_equal(
		b->d->ops->write_u64(b->d, at, epoch | (uint64_t)b->d->incarnation << 32), 0);
}

void
bench_run(struct bench *b, uint32_t incarnation)
{
	struct tokg_error err = {{0}};

	if (b->d->ops->start(b->d, incarnation, &err) != 0)
		fail_msg("%s", err.text);
}

void
bench_stop(struct bench *b, enum tokg_stop how)
{
	struct tokg_error err = {{0}};

	if (b->d->ops->stop(b->d, how, 10000, &err) != 0)
		fail_msg("%s", err.text);
}

void
bench_start(struct bench *b, void (*change)(struct tokg_device_config *c))
{
	bench_open(b, change);
	bench_run(b, 1);
	for (uint32_t p = 0; p < b->d->geometry.producers; p++)
		bench_grant(b, p, 7);
}

void
bench_close(struct bench *b)
{
	b->d->ops->close(b->d);
	free(b->word);
	free(b->position);
}

struct tokg_hdr
bench_hdr(const struct bench *b, uint32_t tokens)
{
	struct tokg_hdr h = {0};

	h.request = 1000;
	h.kind = (uint16_t)b->config.geometry.kind;
	h.bytes = 4 * tokens;
	h.tokens = tokens;
	h.epoch = 7;
	h.t_post = 77;
	h.flags = TOKG_FIRST | TOKG_LAST;
	return h;
}

void
bench_post_raw(
	struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h, const void *payload)
{
	const struct tokg_geometry *const g = &b->d->geometry;
	const uint64_t hdr = tokg_hdr_at(g, producer, slot);
	const uint32_t bytes = h.bytes <= g->slot_bytes ? h.bytes : g->slot_bytes;
	const uint64_t whole = tokg_align(bytes, TOKG_LINE);
	uint8_t *const padded = calloc(1, whole + 1);

	h.ticket = ++b->ticket[tokg_slot_of(g, producer, slot)];
	if (payload) {
		memcpy(padded, payload, bytes);
		post_bytes(b->d, tokg_payload_at(g, producer, slot), padded, whole);
	}
	free(padded);
	post_bytes(b->d, hdr, &h, offsetof(struct tokg_hdr, ticket));
	assert_int_equal(
		b->d->ops->write_u64(b->d, hdr + offsetof(struct tokg_hdr, ticket), h.ticket), 0);
}

void
bench_post(
	struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h, const void *payload)
{
	const struct tokg_geometry *const g = &b->d->geometry;
	uint8_t *const padded = calloc(1, g->slot_bytes);

	memcpy(padded, payload, h.bytes);
	h.ticket = b->ticket[tokg_slot_of(g, producer, slot)] + 1;
	h.check = tokg_check_of(&h, padded);
	free(padded);
	bench_post_raw(b, producer, slot, h, payload);
}

void
bench_done(struct bench *b, uint32_t producer, uint32_t slot, struct tokg_hdr h,
	const void *payload, enum tokg_status status)
{
	bench_post(b, producer, slot, h, payload);
	assert_int_equal(bench_status(b, producer, slot), status);
}

uint32_t
bench_status(struct bench *b, uint32_t producer, uint32_t slot)
{
	const struct tokg_geometry *const g = &b->d->geometry;
	const uint64_t ticket = b->ticket[tokg_slot_of(g, producer, slot)];
	const uint64_t until = limit_from_now();
	uint64_t done;

	for (;;) {
		assert_int_equal(
			b->d->ops->read(b->d, tokg_done_at(g, producer, slot), &done, 8), 0);
		if (done >> 8 == ticket)
			return done & 255;
		assert_true(done >> 8 < ticket);
		if (monotonic_ms() > until)
			fail_msg("slot %u of producer %u: ticket %llu is not done: %s", slot,
				producer, (unsigned long long)ticket, post_why(b->d));
		nap();
	}
}

bool
bench_has_entry(const struct bench *b)
{
	return __atomic_load_n(&tokg_outbox_entry(b->d->outbox, b->entries)->seq,
		       __ATOMIC_ACQUIRE) == b->entries + 1;
}

struct tokg_out_entry
bench_entry(struct bench *b)
{
	const uint64_t until = limit_from_now();

	while (!bench_has_entry(b)) {
		if (monotonic_ms() > until)
			fail_msg("no entry %llu: %s", (unsigned long long)b->entries,
				post_why(b->d));
		nap();
	}
	return *tokg_outbox_entry(b->d->outbox, b->entries++);
}

void
bench_rows(const struct bench *b, uint32_t producer, uint64_t out_off, uint32_t n, float *to)
{
	const struct tokg_geometry *const g = &b->d->geometry;
	const uint64_t at = producer * g->out_bytes + (out_off & (g->out_bytes - 1));

	assert_int_equal(b->d->ops->read_outputs(b->d, at, to, (size_t)n * g->row_bytes), 0);
}

uint64_t
bench_word(const struct bench *b, uint64_t offset)
{
	uint64_t v;

	assert_int_equal(b->d->ops->read(b->d, offset, &v, sizeof(v)), 0);
	return v;
}

void
bench_nap(void)
{
	const struct timespec t = {0, 1000000};

	nanosleep(&t, NULL);
}

void
bench_comes(const struct bench *b, uint64_t offset, uint64_t mask, uint64_t word)
{
	for (uint32_t i = 0; i < 10000 && (bench_word(b, offset) & mask) != word; i++)
		bench_nap();
	assert_int_equal(bench_word(b, offset) & mask, word);
}
