/* SPDX-License-Identifier: BSD-3-Clause */
/* Short pretokens in the cache, in plain C. Hot path. */
#define FIND_KERNEL tok_find_portable
#include "find.h"

static inline void
make_key(uint64_t key[2], const uint8_t *p, size_t len)
{
	tok_cache_key(key, p, len);
}

static inline uint32_t
key_differs(const struct tok_cache_entry *e, const uint64_t key[2])
{
	return tok_cache_differs(e, key);
}
