/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of a BATCH, found by many threads, and by one. */
#include <string.h>

#include <tokd/ring.h>

#include <mix.h>
#include "test.h"
#include "kernels.h"

#define ROUNDS 600

static uint32_t
below(uint64_t *seed, uint32_t n)
{
	return (uint32_t)((dice_throw(seed) >> 32) * n >> 32);
}

/* Of any kind, some of them with many ids. */
static uint32_t
put_record(uint8_t *to, uint32_t room, uint64_t *seed)
{
	const uint32_t most = below(seed, 10) == 0 ? 5000 : 60;
	struct tokd_rec r = {.kind = TOKD_REC_TOKENS, .flags = (uint16_t)below(seed, 4)};

	r.count = below(seed, most);
	r.first = below(seed, 1000);
	r.serial = dice_throw(seed);
	r.bytes = (uint32_t)(sizeof(r) + 4 * r.count + TOKD_RING_ALIGN - 1) &
		  ~(uint32_t)(TOKD_RING_ALIGN - 1);
	if (below(seed, 8) == 0)
		r.kind = below(seed, 2) ? TOKD_REC_PAD : TOKD_REC_TEXT;
	if (below(seed, 16) == 0) {
		r.flags |= TOKD_REC_ABORT;
		r.count = 0;
	}
	if (r.bytes > room)
		return 0;
	for (uint32_t i = sizeof(r); i < r.bytes; i += sizeof(uint32_t)) {
		/* Ids, and what looks like headers. */
		const uint32_t v = below(seed, 2) ? TOKD_RING_ALIGN * below(seed, 300)
						  : (uint32_t)dice_throw(seed);

		memcpy(to + i, &v, sizeof(v));
	}
	memcpy(to, &r, sizeof(r));
	return r.bytes;
}

static uint32_t
put_records(uint8_t *payload, uint64_t *seed)
{
	const uint32_t most =
		TOKD_RING_ALIGN * (1 + below(seed, KERNEL_WALK_BYTES / TOKD_RING_ALIGN));
	uint32_t at = 0, n;

	while ((n = put_record(payload + at, most - at, seed)) > 0)
		at += n;
	return at;
}

/* A word of a header, or any, becomes another one. */
static void
spoil(uint8_t *payload, uint32_t bytes, uint64_t *seed)
{
	static const uint32_t odd[] = {
		0, 1, 32, 64, 96, 128, 1u << 31, UINT32_MAX - 63, UINT32_MAX};
	const uint32_t v = below(seed, 2) ? odd[below(seed, sizeof(odd) / sizeof(*odd))]
					  : (uint32_t)dice_throw(seed);
	const uint32_t line = TOKD_RING_ALIGN * below(seed, bytes / TOKD_RING_ALIGN);

	memcpy(payload + line + 4 * below(seed, 2) * below(seed, 16), &v, sizeof(v));
}

TEST(a_block_finds_the_records_that_one_thread_finds)
{
	static uint8_t payload[KERNEL_WALK_BYTES] __attribute__((aligned(64)));
	static const uint32_t threads[] = {1, 32, 256};
	uint64_t seed = 1;
	uint32_t right = 0, requests = 0;
	char report[FIBERS_TEXT];

	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint32_t bytes = put_records(payload, &seed);
		struct fibers_how how = {.seed = i};

		for (uint32_t n = below(&seed, 3); n > 0 && bytes > 0; n--)
			spoil(payload, bytes, &seed);
		how.n = threads[i % 3];
		how.order = (enum fibers_order)(i / 3 % FIBERS_ORDERS);
		const int n = kernel_walk(&how, payload, bytes, report);

		if (n < 0)
			fail_msg("round %u, %u bytes: %s", i, bytes, report);
		right += n > 0;
		requests += (uint32_t)n;
	}
	assert_true(right > ROUNDS / 4 && right < ROUNDS);
	assert_true(requests > 10 * ROUNDS);
}
