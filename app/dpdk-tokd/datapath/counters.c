/* SPDX-License-Identifier: BSD-3-Clause */
#include "counters.h"

const struct tokd_counter_info tokd_counter_info[C_COUNT] = {
#define X(sym, name, help) [C_##sym] = {name, help},
	TOKD_COUNTERS(X)
#undef X
};
