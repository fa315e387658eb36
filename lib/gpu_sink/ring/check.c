/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot: the check word, as the producer computes it. The compiler vectorizes the loop. */
#include "check.h"

static uint64_t
sum_of(const uint32_t *w, uint32_t first_pair, uint32_t pairs)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < pairs; i++)
		sum += tokg_check_pair(first_pair + i, w[2 * i], w[2 * i + 1]);
	return sum;
}

uint32_t
tokg_check_of(const struct tokg_hdr *hdr, const void *payload)
{
	struct tokg_hdr h = *hdr;
	uint32_t words[sizeof(h) / 4];

	h.check = 0;
	__builtin_memcpy(words, &h, sizeof(h));
	return tokg_check_fold(sum_of(words, 0, TOKG_CHECK_HDR_PAIRS) +
			       sum_of((const uint32_t *)payload, TOKG_CHECK_HDR_PAIRS,
				       tokg_check_pairs(h.bytes) - TOKG_CHECK_HDR_PAIRS));
}
