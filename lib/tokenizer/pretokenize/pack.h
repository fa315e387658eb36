/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pack() and unpack() of scan_classes.h in plain C, in six steps. Step k moves a bit by 2^k places
 * if bit k is set in its distance (Steele's method; Warren, Hacker's Delight, 7-4).
 */
#pragma once

#include <stdint.h>

struct packing {
	uint64_t mask;
	uint64_t move[6];
};

static inline struct packing
prepare(uint64_t m)
{
	struct packing p = {.mask = m};
	uint64_t gaps = ~m << 1;

	for (uint32_t k = 0; k < 6; k++) {
		uint64_t odd = gaps; /* is the number of gaps below odd? */

		for (uint32_t i = 1; i < 64; i *= 2)
			odd ^= odd << i;
		p.move[k] = odd & m;
		m = (m ^ p.move[k]) | p.move[k] >> (1u << k);
		gaps &= ~odd;
	}
	return p;
}

static inline uint64_t
pack(const struct packing *p, uint64_t x)
{
	x &= p->mask;
	for (uint32_t k = 0; k < 6; k++) {
		const uint64_t moved = x & p->move[k];

		x = (x ^ moved) | moved >> (1u << k);
	}
	return x;
}

static inline uint64_t
unpack(const struct packing *p, uint64_t x)
{
	for (uint32_t k = 6; k-- > 0;) {
		const uint64_t moved = x << (1u << k);

		x = (x & ~p->move[k]) | (moved & p->move[k]);
	}
	return x & p->mask;
}

static inline uint64_t
select_starts(uint64_t starts, uint64_t ends, uint64_t chosen)
{
	uint64_t found = 0;

	for (; ends != 0; ends &= ends - 1, starts &= starts - 1)
		found |= (chosen & ends & -ends) != 0 ? starts & -starts : 0;
	return found;
}
