/* SPDX-License-Identifier: BSD-3-Clause */
/* The block of fibers itself, and rows by 256 of them. */
#include <string.h>

#include <mix.h>
#include "test.h"
#include "ring/gpu_ring.h"
#include "kernels.h"

static const uint32_t sizes[] = {1, 32, 64, 256};

#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

TEST(a_barrier_that_is_missing_is_found)
{
	struct fibers_how how = {.n = 256, .seed = 1};
	char report[FIBERS_TEXT];
	int wrong = 0;

	for (how.order = 0; how.order < FIBERS_ORDERS; how.order++) {
		assert_int_equal(kernel_neighbour(&how, true, report), 0);
		wrong += kernel_neighbour(&how, false, report);
	}
	assert_true(wrong > 256); /* forward all but one, at random half */
}

TEST(sums_are_those_of_all_threads)
{
	char report[FIBERS_TEXT];

	for (uint32_t i = 0; i < SIZES; i++) {
		struct fibers_how how = {.n = sizes[i], .seed = i};

		for (how.order = 0; how.order < FIBERS_ORDERS; how.order++)
			assert_int_equal(kernel_sums(&how, report), 0);
	}
}

/* The next block runs, whatever became of the one before. */
TEST(threads_that_do_not_meet_are_reported)
{
	static const char *const said[] = {
		[KERNEL_END] = "not all threads reach the same barrier: from thread 0 on at "
			       "tokg_sync; from thread 32 on at its end;",
		[KERNEL_OTHER] = "not all threads reach the same barrier: from thread 0 on at "
				 "tokg_sync; from thread 32 on at tokg_sum;",
		[KERNEL_TEAM_HALVES] =
			"not all threads reach the same barrier: from thread 0 on at tokg_sync; "
			"from thread 32 on at tokg_team_sumf; from thread 48 on at its end;",
	};
	struct fibers_how how = {.n = 64, .seed = 1};
	char report[FIBERS_TEXT];

	for (how.order = 0; how.order < FIBERS_ORDERS; how.order++) {
		for (uint32_t i = KERNEL_END; i <= KERNEL_TEAM_HALVES; i++) {
			assert_false(kernel_apart(&how, (enum kernel_where)i, report));
			assert_string_equal(report, said[i]);
			assert_int_equal(kernel_sums(&how, report), 0);
		}
	}
}

TEST(rows_by_many_threads_are_those_of_one)
{
	static const uint32_t kinds[] = {TOKG_KIND_WORD, TOKG_KIND_WORD_POSITION, TOKG_KIND_BERT};
	/* With rows of whole vectors, and without; as many as a team holds, and more. */
	static const uint32_t dims[] = {7, 8, 64, 100, 768, 1024, KERNEL_DIM_MAX};
	static uint8_t one[KERNEL_ROWS * KERNEL_DIM_MAX * 4] __attribute__((aligned(16))),
		many[sizeof(one)] __attribute__((aligned(16)));
	const uint32_t n_dims = sizeof(dims) / sizeof(*dims);
	char report[FIBERS_TEXT] = "";

	for (uint32_t at = 0; at < 3 * 3 * n_dims; at++) {
		const uint32_t kind = kinds[at / (3 * n_dims)], dtype = TOKG_F32 + at / n_dims % 3;
		const uint32_t dim = dims[at % n_dims];
		const struct fibers_how alone = {.n = 1};
		struct fibers_how how = {.n = 256, .seed = at};
		uint64_t bad;

		memset(one, 0xee, sizeof(one));
		bad = kernel_rows(&alone, kind, dtype, dim, one, report);
		assert_int_equal(bad, kind == TOKG_KIND_WORD ? 1 : 3);
		for (how.order = 0; how.order < FIBERS_ORDERS; how.order++) {
			memset(many, 0xee, sizeof(many));
			if (kernel_rows(&how, kind, dtype, dim, many, report) != bad)
				fail_msg("%s", report);
			assert_memory_equal(one, many, sizeof(one));
		}
	}
}

#define TAKEN 32

/* Of n slots from the head on, in any order of taking; also all slots of the ring. */
TEST(a_head_goes_behind_the_farthest_slot)
{
	static const uint32_t rings[] = {2, 3, 8, TAKEN};
	uint64_t seed = 1;

	for (uint32_t at = 0; at < 4000; at++) {
		const uint32_t slots = rings[at % 4], head = at / 4 % slots;
		const uint32_t n = 1 + (uint32_t)(dice_throw(&seed) % slots);
		uint32_t taken[TAKEN] = {0};

		for (uint32_t i = 0; i < n; i++) {
			const uint32_t k = (uint32_t)(dice_throw(&seed) % (i + 1));

			taken[i] = taken[k];
			taken[k] = (head + i) % slots;
		}
		assert_int_equal(kernel_head(slots, head, taken, n), (head + n) % slots);
	}
}
