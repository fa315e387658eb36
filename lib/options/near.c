/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the option nearest to a mistyped name. */
#include <string.h>

#include "opt_inside.h"

#define NEAR_NAME_MAX 32 /* the longest name */

static size_t
min3(size_t a, size_t b, size_t c)
{
	const size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Edit distance: letters to insert, delete, change, or swap with their neighbour. */
static size_t
distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
	size_t row[3][NEAR_NAME_MAX + 1];
	size_t *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= n_b; j++)
		last[j] = j;
	for (size_t i = 1; i <= n_a; i++) {
		size_t *const free_row = before;

		now[0] = i;
		for (size_t j = 1; j <= n_b; j++) {
			now[j] = min3(
				last[j] + 1, now[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = free_row;
	}
	return last[n_b];
}

/* SIZE_MAX: not near. A prefix counts as one letter. */
static size_t
nearness(const char *name, size_t len, const char *known)
{
	const size_t n = strlen(known), shorter = len < n ? len : n;
	size_t d;

	if (n > NEAR_NAME_MAX)
		return SIZE_MAX;
	if (shorter >= 3 && memcmp(name, known, shorter) == 0)
		return 1;
	d = distance(name, len, known, n);
	return d <= (shorter + 2) / 3 ? d : SIZE_MAX;
}

const char *
opt_near(const struct opt_program *p, const char *name, size_t len)
{
	static const char *const built_in[] = {"help", "version"};
	const size_t n_built_in = sizeof(built_in) / sizeof(built_in[0]);
	const char *nearest = NULL;
	size_t least = SIZE_MAX;

	if (len > NEAR_NAME_MAX)
		return NULL;
	for (size_t i = 0; i < p->n_defs + n_built_in; i++) {
		const char *known = i < p->n_defs ? p->defs[i].name : built_in[i - p->n_defs];
		const size_t d = nearness(name, len, known);

		if (d < least) {
			least = d;
			nearest = known;
		}
	}
	return nearest;
}
