/* SPDX-License-Identifier: BSD-3-Clause */
/* tok bench: the measured part. */
#include <string.h>

#include <monotonic.h>
#include "bench.h"
#include "cli.h"

#define CLOCK_TURNS 10
#define CLOCK_READS 1000

static struct tok_result
encode_pieces(struct bench *b, const struct slice *s)
{
	struct tok_result all = {.status = TOK_OK}, r;
	size_t n;

	tok_stream_init(&b->stream, b->vocab, b->cache, b->flags);
	do {
		n = s->text_len - all.consumed;
		if (n > b->piece)
			n = b->piece;
		r = tok_stream_feed(&b->stream, s->text + all.consumed, n,
			all.consumed + n == s->text_len, b->ids + all.produced,
			b->room - all.produced);
		all.consumed += n;
		all.produced += r.produced;
	} while (r.status == TOK_OK && all.consumed < s->text_len);
	all.status = r.status;
	all.error = r.error;
	return all;
}

static struct tok_result
encode(struct bench *b, const struct slice *s)
{
	if (b->piece > 0)
		return encode_pieces(b, s);
	return tok_encode(b->vocab, b->cache, s->text, s->text_len, b->flags, b->ids, b->room);
}

static int
look(const struct bench *b, const struct slice *s, const struct tok_result *r, const char *name,
	uint32_t index, bool check)
{
	if (r->status != TOK_OK)
		return cli_error(
			CLI_FAILED, "%s: text %u: %s", name, index, tok_error_code_text(r->error));
	if (!check || (r->produced == s->n_ids &&
			      memcmp(b->ids, s->ids, sizeof(*b->ids) * s->n_ids) == 0))
		return 0;
	return cli_error(BENCH_WRONG, "%s: text %u: wrong ids (%zu, of %u)", name, index,
		r->produced, s->n_ids);
}

int
bench_pass(struct bench *b, const struct slices *texts, const char *name, bool check, uint64_t *ns,
	uint64_t *n_ids)
{
	int code = 0;

	*n_ids = 0;
	for (uint32_t i = 0; code == 0 && i < texts->count; i++) {
		const struct slice *s = &texts->slice[i];
		uint64_t begin = monotonic_ns();
		struct tok_result r = encode(b, s);
		uint64_t end = monotonic_ns();

		if (ns != NULL)
			ns[i] = end - begin;
		*n_ids += r.produced;
		code = look(b, s, &r, name, i, check);
	}
	return code;
}

bool
bench_count(struct bench *b, const struct slices *texts, const struct perf *perf,
	struct perf_counts *counts)
{
	perf_start(perf);
	for (uint32_t i = 0; i < texts->count; i++)
		encode(b, &texts->slice[i]);
	return perf_stop(perf, counts);
}

double
bench_clock_ns(void)
{
	uint64_t least = UINT64_MAX;

	/* A turn in which another process ran tells nothing about the clock. */
	for (int turn = 0; turn < CLOCK_TURNS; turn++) {
		const uint64_t begin = monotonic_ns();
		uint64_t end = begin;

		for (int i = 0; i < CLOCK_READS; i++)
			end = monotonic_ns();
		if (end - begin < least)
			least = end - begin;
	}
	return (double)least / CLOCK_READS;
}
