/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "rows.h"

#define FAILURES_SHOWN 5 /* per kind */
#define KINDS_MAX 16

int
rows_write(const struct rows *rows, const struct options *o)
{
	FILE *out = fopen(o->out, "w");

	if (out == NULL) {
		perror(o->out);
		return -1;
	}
	fprintf(out, "index,ns,first_ns,ok,retransmits,failure,intended_ns,sent_ns\n");
	for (uint64_t i = o->warmup; i < rows->count; i++) {
		const struct row *row = &rows->row[i];

		fprintf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d,%" PRIu32 ",%s,%" PRIu64 ",",
			i, row->end_ns - row->intended_ns, row->first_ns - row->intended_ns,
			row->failure == NULL, row->retransmits,
			row->failure == NULL ? "" : row->failure,
			row->intended_ns - rows->start_ns);
		if (row->sent_ns != 0)
			fprintf(out, "%" PRIu64, row->sent_ns - rows->start_ns);
		fputc('\n', out);
	}
	if (fclose(out) == 0)
		return 0;
	perror(o->out);
	return -1;
}

struct kind {
	const char *failure;
	uint64_t count;
};

static struct kind *
kind_of(struct kind kinds[KINDS_MAX], const char *failure)
{
	uint32_t i = 0;

	while (i < KINDS_MAX - 1 && kinds[i].failure != NULL &&
		strcmp(kinds[i].failure, failure) != 0)
		i++;
	kinds[i].failure = failure;
	return &kinds[i];
}

uint64_t
rows_complain(const struct rows *rows, const struct slices *slices)
{
	struct kind kinds[KINDS_MAX] = {0};
	uint64_t failed = 0;

	for (uint64_t i = 0; i < rows->count; i++) {
		const struct row *row = &rows->row[i];
		const struct slice *slice = &slices->slice[i % slices->count];

		if (row->failure == NULL)
			continue;
		failed++;
		if (kind_of(kinds, row->failure)->count++ < FAILURES_SHOWN)
			fprintf(stderr,
				"tokd-load: request %" PRIu64 " (%" PRIu32 " bytes, %" PRIu32
				" of %" PRIu32 " ids): %s, reason %" PRIu32 "\n",
				i, slice->text_len, row->n_ids, slice->n_ids, row->failure,
				row->reason);
	}
	if (failed > 0)
		fprintf(stderr, "tokd-load: %" PRIu64 " requests failed:", failed);
	for (uint32_t i = 0; i < KINDS_MAX && kinds[i].failure != NULL; i++)
		fprintf(stderr, "%s %" PRIu64 " %s", i > 0 ? "," : "", kinds[i].count,
			kinds[i].failure);
	if (failed > 0)
		fputc('\n', stderr);
	return failed;
}
