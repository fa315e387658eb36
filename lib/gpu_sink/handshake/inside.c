/* SPDX-License-Identifier: BSD-3-Clause */
#include "inside.h"

#include <time.h>

void
tokg_printable(char *to, size_t room, const char *from, size_t bytes)
{
	size_t n = 0;

	for (; n + 1 < room && n < bytes && from[n] != '\0'; n++)
		to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = '\0';
}

uint64_t
tokg_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}
