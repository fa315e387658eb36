/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. */
#include <string.h>

#include "metaspace.h"

size_t
tok_metaspace_find(const uint8_t *p, size_t n)
{
	const uint8_t *at = p, *end;

	if (n == 0)
		return 0; /* p may be NULL */
	end = p + n;
	/* Characters are complete, so its second and third byte can be read. */
	while ((at = memchr(at, 0xe2, (size_t)(end - at))) != NULL) {
		if (at[1] == 0x96 && at[2] == 0x81)
			return (size_t)(at - p);
		at += TOK_METASPACE_BYTES;
	}
	return n;
}
