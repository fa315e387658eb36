/* SPDX-License-Identifier: BSD-3-Clause */
/* tok encode: reads standard input as a stream, prints ids as they become certain. */
#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include "cli.h"

#define RANDOM_PIECE 64u

struct split {
	uint64_t piece; /* bytes of a piece; 0: as read */
	bool random;	/* pieces of 1 to RANDOM_PIECE bytes instead */
	uint64_t seed;
};

struct encode_options {
	const char *vocab;
	struct tok_load_opts load;
	struct split split;
	bool no_special;
	enum cli_added added;
	bool strict_utf8;
	uint32_t jobs; /* never set: cli_bulk() */
};

/* Upper limit of tok_stream_bound(): ids per byte, plus those that are waiting. */
#define IDS_ROOM (TOK_IDS_PER_BYTE_MAX * (CLI_READ_BYTES + 4) + TOK_STREAM_HELD_MAX)

struct encoder {
	struct encode_options options;
	struct tok_stream stream;
	bool any;	 /* an id was printed: print a blank before the next */
	uint64_t n_read; /* bytes */
	uint8_t text[CLI_READ_BYTES];
	uint32_t ids[IDS_ROOM];
};

static void
print_ids(struct encoder *e, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[12], *p = text + sizeof(text);
		uint32_t id = e->ids[i];

		do
			*--p = (char)('0' + id % 10);
		while ((id /= 10) != 0);
		if (e->any)
			*--p = ' ';
		e->any = true;
		fwrite_unlocked(p, 1, (size_t)(text + sizeof(text) - p), stdout);
	}
}

/* Size of the next piece of at most n bytes. */
static size_t
piece_of(struct split *o, size_t n)
{
	uint64_t piece = o->piece;

	if (o->random)
		piece = 1 + dice_throw(&o->seed) % RANDOM_PIECE;
	return piece == 0 || piece > n ? n : (size_t)piece;
}

static bool
check_split(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	struct split *s = field;

	*s = (struct split){.random = strncmp(text, "random:", 7) == 0};
	if (s->random ? !opt_number(text + 7, 0, UINT64_MAX, &s->seed)
		      : !opt_number(text, 1, UINT64_MAX, &s->piece))
		return opt_wrong(err, "give a number from 1, or random:SEED");
	return true;
}

#define FIELD(f) OPT_FIELD(struct encode_options, f)
static const struct opt_def defs[] = {
	{"vocab", "VOCAB", OPT_TEXT, FIELD(vocab), 0, 0, NULL, "the vocabulary",
		.flags = OPT_REQUIRED},
	CLI_PRETOKENIZER(struct encode_options),
	CLI_HUGE_PAGES(struct encode_options),
	CLI_ALGO(struct encode_options),
	{"split", "N|random:SEED", OPT_OTHER, FIELD(split), 0, 0, NULL,
		"feed the text in pieces of N bytes, or of random sizes from 1 to 64; the ids are "
		"the same",
		.check = check_split},
	{"no-special", NULL, OPT_FLAG, FIELD(no_special), 0, 0, NULL,
		"omit the ids of the vocabulary's template, such as BERT's [CLS] and [SEP]"},
	CLI_ADDED(struct encode_options),
	{"strict-utf8", NULL, OPT_FLAG, FIELD(strict_utf8), 0, 0, NULL,
		"reject text that is not UTF-8 instead of replacing invalid bytes by U+FFFD"},
	{"jobs", "N", OPT_COUNT, FIELD(jobs), 1, 1024, NULL,
		"encode files to files with N threads: tok encode --jobs N --vocab VOCAB INPUT... "
		"-o OUT; see python3 -m dpdk_tokd encode --help"},
};

static uint32_t
flags_of(const struct encode_options *o)
{
	return (o->no_special ? 0u : TOK_TEMPLATE) | (o->strict_utf8 ? TOK_STRICT_UTF8 : 0u) |
	       cli_added_flags(o->added);
}

/* Feed what was read, in the pieces of --split. */
static int
feed(struct encoder *e, size_t n, bool last)
{
	size_t at = 0;

	do {
		size_t piece = piece_of(&e->options.split, n - at);
		struct tok_result r =
			tok_stream_feed(&e->stream, e->text + at, piece, last, e->ids, IDS_ROOM);

		print_ids(e, r.produced);
		if (r.status != TOK_OK) {
			if (e->any)
				putchar('\n');
			cli_flush();
			return cli_error(CLI_FAILED, "standard input, after %llu bytes: %s",
				(unsigned long long)(e->n_read + at + r.consumed - r.begun),
				tok_error_code_text(r.error));
		}
		at += piece;
	} while (at < n);
	e->n_read += n;
	return 0;
}

static int
encode(struct encoder *e)
{
	ssize_t got;
	int code;

	do {
		got = cli_read(e->text);
		if (got < 0)
			return CLI_FAILED;
		code = feed(e, (size_t)got, got == 0);
		if (code != 0)
			return code;
		if (got == 0)
			putchar('\n');
		code = cli_flush(); /* flush, so that a pipe gets ids as soon as they are certain */
	} while (got > 0 && code == 0);
	return code;
}

static int
run(int argc, char **argv)
{
	struct encoder *e = NULL;
	struct tok_cache *cache = NULL;
	struct tok_vocab *v = NULL;
	struct opt_given given;
	int code;

	if (cli_is_bulk(argc, argv))
		return cli_bulk(argc, argv);
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	code = opt_main(&tok_encode_command, argc, argv, &e->options, &given);
	if (code >= 0)
		goto out;
	code = CLI_FAILED;
	v = cli_load(e->options.vocab, &e->options.load);
	if (v == NULL)
		goto out;
	cache = tok_cache_create(v, 0, NULL);
	if (cache == NULL) {
		cli_error(CLI_FAILED, "out of memory for a cache");
		goto out;
	}
	tok_stream_init(&e->stream, v, cache, flags_of(&e->options));
	code = encode(e);
out:
	tok_cache_free(cache);
	tok_vocab_free(v);
	free(e);
	return code;
}

const struct opt_program tok_encode_command = {
	.name = "tok encode",
	.version = TOKD_VERSION,
	.usage = "--vocab VOCAB [options] < text",
	.about = "Prints the ids of the text, separated by blanks, each as soon as it is certain.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "TEXT",
	.operand_missing = "the text is read from standard input",
	.run = run,
};
