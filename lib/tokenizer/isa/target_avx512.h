/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Include this first in a file of kernels, and end the file with TOK_TARGET_END: the file is
 * compiled for x86-64-v4 with VBMI and VBMI2.
 */
#ifdef __clang__
#pragma clang attribute push(                                                                      \
	__attribute__((target(                                                                     \
		"avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt"))),    \
	apply_to = function)
#define TOK_TARGET_END _Pragma("clang attribute pop")
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi,bmi2,popcnt")
#define TOK_TARGET_END _Pragma("GCC pop_options")
#endif
#include <immintrin.h>
