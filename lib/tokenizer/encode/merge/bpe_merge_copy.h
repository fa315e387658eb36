/* SPDX-License-Identifier: BSD-3-Clause */
/* copy_tokens() of bpe_merge.h in portable C. */
static inline uint32_t
copy_tokens(uint32_t *to, const uint32_t *from, uint64_t places)
{
	uint32_t n = 0;

	for (; places != 0; places &= places - 1)
		to[n++] = from[__builtin_ctzll(places)];
	return n;
}
