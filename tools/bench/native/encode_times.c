/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-encode-times: how long libtok takes for each of many texts, and whether its ids are right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <opt.h>
#include <tok.h>

#include "../../../app/tokd-load/slices.h"

#define WARM_UP_ROUNDS 6
#define CLOCK_READS 10000
#define PIECE_MAX (1u << 30)
#define WRONG 3 /* exit code */

struct options {
	const char *vocab, *warm_up, *slices, *algo;
	uint64_t piece; /* 0: whole */
	bool again;
};

#define FIELD(f) OPT_FIELD(struct options, f)
static const struct opt_def defs[] = {
	{"vocab", "VOCAB", OPT_TEXT, FIELD(vocab), 0, 0, NULL, "a name or a path, as for tok",
		.flags = OPT_REQUIRED},
	{"warm-up", "FILE", OPT_TEXT, FIELD(warm_up), 0, 0, NULL,
		"texts encoded first, six times each, untimed", .flags = OPT_REQUIRED},
	{"slices", "FILE", OPT_TEXT, FIELD(slices), 0, 0, NULL,
		"the texts; both files in the format of tools/bench/texts/slices.py",
		.flags = OPT_REQUIRED},
	{"algo", "exact|greedy", OPT_CHOICE, FIELD(algo), 0, 0, "exact", "how merges are applied"},
	{"piece", "N", OPT_COUNT, FIELD(piece), 1, PIECE_MAX, NULL,
		"feed each text in pieces of N bytes, else whole"},
	{"again", NULL, OPT_FLAG, FIELD(again), 0, 0, NULL,
		"encode all once, and time a second pass"},
};

static const struct opt_section sections[] = {
	{"exit code", "  0  all ids are right\n  1  failed\n  2  a bad option\n  3  wrong ids",
		true},
	{0},
};

static const struct opt_program program = {
	.name = "tokd-encode-times",
	.version = TOKD_VERSION,
	.summary = "time libtok on each text of a file, and check its ids",
	.usage = "--vocab VOCAB --warm-up FILE --slices FILE [options]",
	.about =
		"Prints JSON: ns of each call, the number of ids compared, and the cost of reading the\n"
		"clock, which is in each call.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.sections = sections,
};

struct encoder {
	const struct tok_vocab *vocab;
	struct tok_cache *cache;
	struct tok_stream stream;
	uint32_t *ids;
	size_t room; /* ids */
	size_t piece;
	uint64_t compared;
};

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- what is timed ---- */

static struct tok_result
encode_pieces(struct encoder *e, const struct slice *s)
{
	struct tok_result all = {.status = TOK_OK}, r;
	size_t n;

	tok_stream_init(&e->stream, e->vocab, e->cache, TOK_ADDED_AS_TEXT);
	do {
		n = s->text_len - all.consumed;
		if (n > e->piece)
			n = e->piece;
		r = tok_stream_feed(&e->stream, s->text + all.consumed, n,
			all.consumed + n == s->text_len, e->ids + all.produced,
			e->room - all.produced);
		all.consumed += n;
		all.produced += r.produced;
	} while (r.status == TOK_OK && all.consumed < s->text_len);
	all.status = r.status;
	return all;
}

static struct tok_result
encode(struct encoder *e, const struct slice *s)
{
	if (e->piece > 0)
		return encode_pieces(e, s);
	return tok_encode(
		e->vocab, e->cache, s->text, s->text_len, TOK_ADDED_AS_TEXT, e->ids, e->room);
}

/* ---- around it ---- */

static int
check(struct encoder *e, const struct slice *s, const struct tok_result *r, const char *file,
	uint32_t index)
{
	if (r->status == TOK_OK && r->produced == s->n_ids &&
		memcmp(e->ids, s->ids, sizeof(*e->ids) * s->n_ids) == 0) {
		e->compared += s->n_ids;
		return 0;
	}
	fprintf(stderr,
		"tokd-encode-times: %s: text %" PRIu32 ": wrong ids (%zu, of %" PRIu32 ")\n", file,
		index, r->produced, s->n_ids);
	return WRONG;
}

/* All texts of a file once; ns: one for each, or NULL. */
static int
pass(struct encoder *e, const struct slices *texts, const char *file, uint64_t *ns)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < texts->count; i++) {
		const struct slice *s = &texts->slice[i];
		uint64_t begin = now_ns();
		struct tok_result r = encode(e, s);
		uint64_t end = now_ns();

		if (ns != NULL)
			ns[i] = end - begin;
		rc = check(e, s, &r, file, i);
	}
	return rc;
}

/* What a reading of the clock takes: so much is in each time. */
static double
clock_ns(void)
{
	uint64_t begin = now_ns(), end = begin;

	for (int i = 0; i < CLOCK_READS; i++)
		end = now_ns();
	return (double)(end - begin) / CLOCK_READS;
}

static void
print(const struct encoder *e, const uint64_t *ns, uint32_t count)
{
	printf("{\"how\": \"tok_encode\", \"ids\": %" PRIu64 ", \"clock_ns\": %.1f, \"ns\": [",
		e->compared, clock_ns());
	for (uint32_t i = 0; i < count; i++)
		printf("%s%" PRIu64, i == 0 ? "" : ", ", ns[i]);
	puts("]}");
}

static int
measure(struct encoder *e, const struct options *o, const struct slices *warm_up,
	const struct slices *texts)
{
	uint64_t *ns = calloc(texts->count, sizeof(*ns));
	int rc = 0;

	if (ns == NULL) {
		fputs("tokd-encode-times: out of memory\n", stderr);
		return 1;
	}
	for (int i = 0; rc == 0 && i < WARM_UP_ROUNDS; i++)
		rc = pass(e, warm_up, o->warm_up, NULL);
	e->compared = 0;
	if (rc == 0 && o->again)
		rc = pass(e, texts, o->slices, NULL);
	if (rc == 0)
		rc = pass(e, texts, o->slices, ns);
	if (rc == 0)
		print(e, ns, texts->count);
	free(ns);
	return rc;
}

/* Room for the ids of any text, and what they fill of it there already: no page fault is timed. */
static int
make_room(struct encoder *e, const struct slices *a, const struct slices *b)
{
	const uint32_t most = a->max_text > b->max_text ? a->max_text : b->max_text;
	const uint32_t ids = a->max_ids > b->max_ids ? a->max_ids : b->max_ids;

	e->room = tok_encode_bound(e->vocab, most, TOK_ADDED_AS_TEXT) + TOK_STREAM_HELD_MAX;
	e->ids = malloc(sizeof(*e->ids) * e->room);
	if (e->ids == NULL)
		return -1;
	memset(e->ids, 0xff, sizeof(*e->ids) * (ids < e->room ? ids : e->room));
	return 0;
}

static int
run(const struct options *o, const struct slices *warm_up, const struct slices *texts)
{
	const struct tok_load_opts opts = {.algo = o->algo};
	struct encoder *e = calloc(1, sizeof(*e));
	struct tok_error err;
	struct tok_vocab *vocab;
	int rc = 1;

	if (e == NULL)
		return 1;
	vocab = tok_vocab_load(o->vocab, &opts, &err);
	if (vocab == NULL) {
		fprintf(stderr, "tokd-encode-times: %s\n", err.text);
		goto out;
	}
	e->vocab = vocab;
	e->piece = o->piece;
	e->cache = tok_cache_create(vocab, 0, NULL);
	if (e->cache == NULL || make_room(e, warm_up, texts) != 0)
		fputs("tokd-encode-times: out of memory\n", stderr);
	else
		rc = measure(e, o, warm_up, texts);
out:
	free(e->ids);
	tok_cache_free(e->cache);
	tok_vocab_free(vocab);
	free(e);
	return rc;
}

int
main(int argc, char **argv)
{
	struct slices warm_up = {0}, texts = {0};
	struct options o = {0};
	struct opt_given given;
	int rc = opt_main(&program, argc, argv, &o, &given);

	if (rc >= 0)
		return rc;
	rc = 1;
	if (slices_load(&warm_up, o.warm_up) == 0 && slices_load(&texts, o.slices) == 0)
		rc = run(&o, &warm_up, &texts);
	slices_free(&warm_up);
	slices_free(&texts);
	return rc;
}
