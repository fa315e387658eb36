/* SPDX-License-Identifier: BSD-3-Clause */
/* tok encode: standard input as a stream, ids printed as they become certain. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define RANDOM_PIECE 64u

struct encode_options {
	const char *vocab;
	struct tok_load_opts load;
	uint64_t piece; /* bytes of a piece; 0: as read */
	bool random;	/* pieces of 1 to RANDOM_PIECE bytes instead */
	uint64_t seed;
	uint32_t flags;
	bool help;
};

/* What tok_stream_bound says at most: so many ids a byte, and what may wait. */
#define IDS_ROOM (TOK_IDS_PER_BYTE_MAX * (CLI_READ_BYTES + 4) + TOK_STREAM_HELD_MAX)

struct encoder {
	struct encode_options options;
	struct tok_stream stream;
	bool any;	 /* something was printed: a blank comes first */
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

/* Size of the next piece of at most n bytes (xorshift64* for the random ones). */
static size_t
piece_of(struct encode_options *o, size_t n)
{
	uint64_t piece = o->piece;

	if (o->random) {
		o->seed ^= o->seed >> 12;
		o->seed ^= o->seed << 25;
		o->seed ^= o->seed >> 27;
		piece = 1 + (o->seed * 0x2545f4914f6cdd1dull >> 33) % RANDOM_PIECE;
	}
	return piece == 0 || piece > n ? n : (size_t)piece;
}

static bool
parse_number(const char *text, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* --added-tokens. False: it is none of them. */
static bool
parse_added(const char *which, uint32_t *flags)
{
	*flags &= ~(uint32_t)(TOK_ADDED_AS_TEXT | TOK_SPECIAL);
	if (strcmp(which, "text") == 0)
		*flags |= TOK_ADDED_AS_TEXT;
	else if (strcmp(which, "all") == 0)
		*flags |= TOK_SPECIAL;
	else
		return strcmp(which, "plain") == 0;
	return true;
}

static int
parse(int argc, char **argv, struct encode_options *o)
{
	enum { VOCAB = 256, ALGO, SPLIT, NO_SPECIAL, ADDED, STRICT, PRETOKENIZER, HUGE_PAGES, HELP };
	static const struct option options[] = {
		{"vocab", required_argument, NULL, VOCAB},
		{"algo", required_argument, NULL, ALGO},
		{"split", required_argument, NULL, SPLIT},
		{"no-special", no_argument, NULL, NO_SPECIAL},
		{"added-tokens", required_argument, NULL, ADDED},
		{"strict-utf8", no_argument, NULL, STRICT},
		{"pretokenizer", required_argument, NULL, PRETOKENIZER},
		{"huge-pages", no_argument, NULL, HUGE_PAGES},
		{"help", no_argument, NULL, HELP},
		{0},
	};
	int c;

	o->flags = TOK_TEMPLATE;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case VOCAB:
			o->vocab = optarg;
			break;
		case ALGO:
			if (!cli_is_algo(optarg))
				return CLI_USAGE;
			o->load.algo = optarg;
			break;
		case SPLIT:
			o->random = strncmp(optarg, "random:", 7) == 0;
			if (!parse_number(optarg + (o->random ? 7 : 0),
				    o->random ? &o->seed : &o->piece) ||
				(!o->random && o->piece == 0))
				return cli_error(CLI_USAGE,
					"--split %s: expected a number from 1, or random:SEED",
					optarg);
			o->seed += 0x9e3779b97f4a7c15ull; /* xorshift must not start at 0 */
			break;
		case NO_SPECIAL:
			o->flags &= ~(uint32_t)TOK_TEMPLATE;
			break;
		case ADDED:
			if (!parse_added(optarg, &o->flags))
				return cli_error(CLI_USAGE,
					"--added-tokens %s: expected text, plain or all", optarg);
			break;
		case STRICT:
			o->flags |= TOK_STRICT_UTF8;
			break;
		case PRETOKENIZER:
			o->load.pretokenizer = optarg;
			break;
		case HUGE_PAGES:
			o->load.huge_pages = true;
			break;
		case HELP:
			o->help = true;
			return 0;
		default:
			return cli_error(CLI_USAGE, "encode: bad option \"%s\" (tok --help)",
				argv[optind - 1]);
		}
	}
	if (optind < argc)
		return cli_error(CLI_USAGE, "encode: \"%s\": the text comes on standard input",
			argv[optind]);
	if (o->vocab == NULL)
		return cli_error(
			CLI_USAGE, "encode: --vocab is missing: a name or path (tok --help)");
	return 0;
}

/* One piece of what was read, in as many pieces as --split asks for. */
static int
feed(struct encoder *e, size_t n, bool last)
{
	size_t at = 0;

	do {
		size_t piece = piece_of(&e->options, n - at);
		struct tok_result r =
			tok_stream_feed(&e->stream, e->text + at, piece, last, e->ids, IDS_ROOM);

		print_ids(e, r.produced);
		if (r.status != TOK_OK) {
			if (e->any)
				putchar('\n');
			cli_flush();
			return cli_error(CLI_FAILED, "standard input, after %llu bytes: %s",
				(unsigned long long)(e->n_read + at + r.consumed),
				tok_why_text(r.why));
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
		code = cli_flush(); /* whoever reads us has the ids as soon as they are certain */
	} while (got > 0 && code == 0);
	return code;
}

int
cmd_encode(int argc, char **argv)
{
	struct encoder *e = calloc(1, sizeof(*e));
	struct tok_cache *cache = NULL;
	struct tok_vocab *v = NULL;
	int code;

	if (e == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	code = parse(argc, argv, &e->options);
	if (code != 0)
		goto out;
	if (e->options.help) {
		code = cli_help();
		goto out;
	}
	code = CLI_FAILED;
	v = cli_load(e->options.vocab, &e->options.load);
	if (v == NULL)
		goto out;
	cache = tok_cache_create(v, 0, NULL);
	if (cache == NULL) {
		cli_error(CLI_FAILED, "out of memory for a cache");
		goto out;
	}
	tok_stream_init(&e->stream, v, cache, e->options.flags);
	code = encode(e);
out:
	tok_cache_free(cache);
	tok_vocab_free(v);
	free(e);
	return code;
}
