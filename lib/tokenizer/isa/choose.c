/* SPDX-License-Identifier: BSD-3-Clause */
/* Choose the kernels for this CPU. Set-up only. */
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "tables/kinds.h"

#ifdef __x86_64__
#include <cpuid.h>

/* Registers that the system saves, in XCR0 (Intel SDM, volume 1, section 13.3). */
#define SAVES_AVX 0x06u
#define SAVES_AVX512 0xe6u

/*
 * Has the CPU these bits of CPUID's leaf 7, and POPCNT, and does the system save the registers?
 * __builtin_cpu_supports() would do, but with Zig, which compiles the wheels, it always says no.
 */
static bool
has(uint32_t ebx, uint32_t ecx, uint32_t saved)
{
	const uint32_t wanted = bit_OSXSAVE | bit_POPCNT;
	uint32_t a, b, c, d, xcr0, high;

	if (!__get_cpuid(1, &a, &b, &c, &d) || (c & wanted) != wanted)
		return false;
	__asm__("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
	return (xcr0 & saved) == saved && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
	       (b & ebx) == ebx && (c & ecx) == ecx;
}

/* The part of x86-64-v3 that target_avx2.h uses. */
static bool
has_avx2(void)
{
	return has(bit_AVX2 | bit_BMI | bit_BMI2, 0, SAVES_AVX);
}

/* Ice Lake, Zen 4 and later. */
static bool
has_avx512(void)
{
	return has(bit_AVX2 | bit_BMI | bit_BMI2 | bit_AVX512F | bit_AVX512BW | bit_AVX512DQ |
			   bit_AVX512VL,
		bit_AVX512VBMI | bit_AVX512VBMI2, SAVES_AVX512);
}
#endif

static bool
has_portable(void)
{
	return true;
}

/* The best first. */
static const struct {
	bool (*available)(void); /* NULL: not on this architecture */
	struct tok_kernels kernels;
} sets[] = {
#ifdef __x86_64__
	{has_avx512, {.isa = "avx512",
			     .scan = tok_scan_avx512,
			     .utf8 = tok_utf8_avx512,
			     .skip = tok_skip_avx512,
			     .merge = tok_merge_avx512,
			     .find = tok_find_avx512}},
	{has_avx2, {.isa = "avx2",
			   .scan = tok_scan_avx2,
			   .utf8 = tok_utf8_avx2,
			   .skip = tok_skip_avx2,
			   .merge = tok_merge_avx2,
			   .find = tok_find_avx2}},
#else
	{NULL, {.isa = "avx512"}},
	{NULL, {.isa = "avx2"}},
#endif
#ifdef __aarch64__
	{has_portable, {.isa = "neon",
			       .scan = tok_scan_neon,
			       .utf8 = tok_utf8_neon,
			       .skip = tok_skip_neon,
			       .merge = tok_merge_neon,
			       .find = tok_find_portable}}, /* every aarch64 CPU has it */
#else
	{NULL, {.isa = "neon"}},
#endif
	{has_portable, {.isa = "portable",
			       .scan = tok_scan_portable,
			       .utf8 = tok_utf8_portable,
			       .skip = tok_skip_portable,
			       .merge = tok_merge_portable,
			       .find = tok_find_portable}},
};
#define N_SETS (sizeof(sets) / sizeof(sets[0]))

static bool
is_available(size_t i)
{
	return sets[i].available != NULL && sets[i].available();
}

const struct tok_kernels *
tok_kernels_choose(struct tok_error *err)
{
	const char *asked = getenv("TOK_ISA");
	size_t i = 0;

	if (asked == NULL || asked[0] == '\0') {
		while (!is_available(i))
			i++;
		return &sets[i].kernels;
	}
	while (i < N_SETS && strcmp(asked, sets[i].kernels.isa) != 0)
		i++;
	if (i < N_SETS && is_available(i))
		return &sets[i].kernels;
	tok_fail(err,
		i < N_SETS ? "TOK_ISA \"%.40s\": this CPU does not have it: unset TOK_ISA"
			   : "TOK_ISA \"%.40s\": unknown, expected portable, avx2, avx512 or neon",
		asked);
	return NULL;
}
