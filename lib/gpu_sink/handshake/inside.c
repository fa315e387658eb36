/* SPDX-License-Identifier: BSD-3-Clause */
#include "inside.h"

void
tokg_printable(char *to, size_t room, const char *from, size_t bytes)
{
	size_t n = 0;

	for (; n + 1 < room && n < bytes && from[n] != '\0'; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = '\0';
}
