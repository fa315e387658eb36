/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <rte_common.h>

#include "decode.h"

#define IDS_AT_ONCE 256 /* a packet's ids are not aligned: they are copied */

void
tokd_decode_init(struct tokd_decode *d, const struct tokd_vocab *vocab, bool skip_special)
{
	tok_decode_stream_init(&d->tok, vocab->tok);
	d->longest = vocab->longest;
	d->skipped = tok_vocab_specials(vocab->tok, &d->n_skipped);
	if (!skip_special)
		d->n_skipped = 0;
	d->n_cut = 0;
}

size_t
tokd_decode_bound(const struct tokd_decode *d, size_t n)
{
	return (d->n_cut + n) / sizeof(uint32_t) * d->longest + sizeof(d->tok.held);
}

static bool
is_skipped(const struct tokd_decode *d, uint32_t id)
{
	uint32_t lo = 0, n = d->n_skipped;

	while (n > 1) {
		const uint32_t half = n / 2;

		lo += d->skipped[lo + half] <= id ? half : 0;
		n -= half;
	}
	return n > 0 && d->skipped[lo] == id;
}

/* How many of n ids come before one that is skipped. */
static size_t
run_of(const struct tokd_decode *d, const uint32_t *ids, size_t n)
{
	size_t run = 0;

	if (d->n_skipped == 0)
		return n;
	while (run < n && !is_skipped(d, ids[run]))
		run++;
	return run;
}

static struct tok_result
decode_ids(
	struct tokd_decode *d, const uint32_t *ids, size_t n, bool last, uint8_t *out, size_t room)
{
	struct tok_result sum = {.status = TOK_OK}, r;
	bool end;

	do {
		const size_t run = run_of(d, ids + sum.consumed, n - sum.consumed);

		end = sum.consumed + run == n;
		r = tok_decode_stream_feed(&d->tok, ids + sum.consumed, run, last && end,
			out + sum.produced, room - sum.produced);
		sum.consumed += r.consumed;
		sum.produced += r.produced;
		if (r.status != TOK_OK || end)
			break;
		sum.consumed++; /* the one that is skipped */
	} while (true);
	sum.status = r.status;
	sum.error = r.error;
	return sum;
}

struct tok_result
tokd_decode_feed(
	struct tokd_decode *d, const uint8_t *bytes, size_t n, bool last, uint8_t *out, size_t room)
{
	struct tok_result sum = {.status = TOK_OK}, r;
	uint32_t ids[IDS_AT_ONCE];
	uint8_t *const at = (uint8_t *)ids;

	do {
		const size_t take = RTE_MIN(n, sizeof(ids) - d->n_cut);
		const size_t have = d->n_cut + take;

		memcpy(at, d->cut, d->n_cut);
		memcpy(at + d->n_cut, bytes, take);
		d->n_cut = have % sizeof(uint32_t);
		memcpy(d->cut, at + have - d->n_cut, d->n_cut);
		bytes += take;
		n -= take;
		r = decode_ids(d, ids, have / sizeof(uint32_t), last && n == 0, out + sum.produced,
			room - sum.produced);
		sum.consumed += r.consumed;
		sum.produced += r.produced;
	} while (r.status == TOK_OK && n > 0);
	sum.status = r.status;
	sum.error = r.error;
	return sum;
}
