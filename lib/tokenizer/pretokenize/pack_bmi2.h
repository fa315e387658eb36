/* SPDX-License-Identifier: BSD-3-Clause */
/* pack() and unpack() of scan_classes.h with BMI2. */
#pragma once

#include <immintrin.h>
#include <stdint.h>

struct packing {
	uint64_t mask;
};

static inline struct packing
prepare(uint64_t m)
{
	return (struct packing){m};
}

static inline uint64_t
pack(const struct packing *p, uint64_t x)
{
	return _pext_u64(x, p->mask);
}

static inline uint64_t
unpack(const struct packing *p, uint64_t x)
{
	return _pdep_u64(x, p->mask);
}

static inline uint64_t
select_starts(uint64_t starts, uint64_t ends, uint64_t chosen)
{
	return _pdep_u64(_pext_u64(chosen, ends), starts);
}
