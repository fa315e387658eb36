/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that tokd-load and tokd-load-dpdk share, for a struct `type` with these fields. */
#pragma once

#include <opt.h>

/* clang-format off */
#define LOAD_SLICES(type)                                                                          \
	{"slices", "FILE", OPT_TEXT, OPT_FIELD(type, slices), 0, 0, NULL,                          \
		"texts with their expected ids, in the format of tools/bench/texts/slices.py",     \
		.flags = OPT_REQUIRED}
#define LOAD_REQUESTS(type)                                                                        \
	{"requests", "N", OPT_COUNT, OPT_FIELD(type, requests), 1, UINT32_MAX, NULL,               \
		"texts to send, cycling through the slices; default: each slice once"}
#define LOAD_WARMUP(type)                                                                          \
	{"warmup", "N", OPT_COUNT, OPT_FIELD(type, warmup), 0, UINT32_MAX, "0",                    \
		"send and check the first N requests, without results in --out"}
#define LOAD_ARRIVALS(type)                                                                        \
	{"arrivals", "poisson|fixed", OPT_CHOICE, OPT_FIELD(type, arrivals), 0, 0, "poisson",      \
		"poisson: as from many independent clients; fixed: evenly spaced"}
/* clang-format on */

#define LOAD_EXIT_CODES                                                                            \
	{                                                                                          \
		"exit code",                                                                       \
			"  0  all ids are correct\n  1  some are wrong, or the run failed\n"       \
			"  2  invalid option",                                                     \
			true                                                                       \
	}
