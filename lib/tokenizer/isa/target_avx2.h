/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included first in a file of kernels: all of it is compiled for x86-64-v3. TOK_TARGET_END comes
 * last. lzcnt is left out: what it is compiled to is another instruction where a CPU lacks it.
 */
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,bmi,bmi2,popcnt"))), apply_to = function)
#define TOK_TARGET_END _Pragma("clang attribute pop")
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi,bmi2,popcnt")
#define TOK_TARGET_END _Pragma("GCC pop_options")
#endif
#include <immintrin.h>
