/* SPDX-License-Identifier: BSD-3-Clause */
/* --decode: ids in decimal. */
#include <stdio.h>
#include <stdlib.h>

#include "tool.h"

static bool
is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

int
read_ids(const char *text, size_t len, uint32_t **ids, size_t *n)
{
	*n = 0;
	*ids = malloc((len / 2 + 1) * sizeof(**ids));
	if (*ids == NULL) {
		fprintf(stderr, "tokd-client: out of memory for the ids of %zu bytes\n", len);
		return EXIT_TEXT;
	}
	for (const char *p = text, *end = text + len; p < end;) {
		uint64_t id = 0;

		if (is_blank(*p)) {
			p++;
			continue;
		}
		for (; p < end && *p >= '0' && *p <= '9' && id <= UINT32_MAX; p++)
			id = id * 10 + (uint64_t)(*p - '0');
		if (id > UINT32_MAX) {
			fprintf(stderr, "tokd-client: standard input: id number %zu is above %u\n",
				*n + 1, UINT32_MAX);
			return EXIT_TEXT;
		}
		if (p < end && !is_blank(*p)) {
			fprintf(stderr,
				"tokd-client: standard input: id number %zu: expected digits, "
				"found byte 0x%02x\n",
				*n + 1, (uint8_t)*p);
			return EXIT_TEXT;
		}
		(*ids)[(*n)++] = (uint32_t)id;
	}
	return 0;
}
