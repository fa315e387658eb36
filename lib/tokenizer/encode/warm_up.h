/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "vocab.h"

/*
 * Encode a text of the most frequent tokens with a new cache, so that the first request of this
 * thread does not wait for pages of code and stack, nor for the parts of the tables that most texts
 * need. Set-up only.
 */
void tok_warm_up(const struct tok_vocab *v, struct tok_cache *cache);
