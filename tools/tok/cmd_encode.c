/* SPDX-License-Identifier: BSD-3-Clause */
/* tok encode: standard input as a stream, ids printed as they become certain. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define READ_BYTES 65536u
#define RANDOM_PIECE 64u

struct encode_options {
	const char *vocab, *pretokenizer;
	uint64_t piece; /* bytes of a piece; 0: as read */
	bool random;	/* pieces of 1 to RANDOM_PIECE bytes instead */
	uint64_t seed;
	uint32_t flags;
};

struct output {
	bool any; /* something was printed: a blank comes first */
};

static void
print_ids(struct output *out, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[12], *p = text + sizeof(text);
		uint32_t id = ids[i];

		do
			*--p = (char)('0' + id % 10);
		while ((id /= 10) != 0);
		if (out->any)
			*--p = ' ';
		out->any = true;
		fwrite(p, 1, (size_t)(text + sizeof(text) - p), stdout);
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

static int
parse(int argc, char **argv, struct encode_options *o)
{
	enum { VOCAB = 256, ALGO, SPLIT, NO_SPECIAL, STRICT, PRETOKENIZER };
	static const struct option options[] = {
		{"vocab", required_argument, NULL, VOCAB},
		{"algo", required_argument, NULL, ALGO},
		{"split", required_argument, NULL, SPLIT},
		{"no-special", no_argument, NULL, NO_SPECIAL},
		{"strict-utf8", no_argument, NULL, STRICT},
		{"pretokenizer", required_argument, NULL, PRETOKENIZER},
		{0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case VOCAB:
			o->vocab = optarg;
			break;
		case ALGO:
			if (strcmp(optarg, "exact") != 0)
				return cli_error(CLI_USAGE,
					"--algo %s is not implemented (implemented: exact)", optarg);
			break;
		case SPLIT:
			o->random = strncmp(optarg, "random:", 7) == 0;
			if (!parse_number(optarg + (o->random ? 7 : 0),
				    o->random ? &o->seed : &o->piece) ||
				(!o->random && o->piece == 0))
				return cli_error(CLI_USAGE,
					"--split %s: expected a number from 1, or random:SEED", optarg);
			o->seed += 0x9e3779b97f4a7c15ull; /* xorshift must not start at 0 */
			break;
		case NO_SPECIAL:
			break; /* GPT-2 puts nothing around a text */
		case STRICT:
			o->flags |= TOK_STRICT_UTF8;
			break;
		case PRETOKENIZER:
			o->pretokenizer = optarg;
			break;
		default:
			return cli_error(CLI_USAGE, "encode: bad option \"%s\" (tok --help)",
				argv[optind - 1]);
		}
	}
	if (optind < argc)
		return cli_error(CLI_USAGE, "encode: \"%s\": the text comes on standard input",
			argv[optind]);
	if (o->vocab == NULL)
		return cli_error(CLI_USAGE, "encode: --vocab is missing: a name or path (tok --help)");
	return 0;
}

static int
encode(struct encode_options *o, struct tok_stream *s, uint8_t *text, uint32_t *ids, size_t room)
{
	struct output out = {false};
	bool last = false;

	while (!last) {
		ssize_t got = read(STDIN_FILENO, text, READ_BYTES);
		size_t at = 0;

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return cli_error(CLI_FAILED, "standard input: %s", strerror(errno));
		}
		last = got == 0;
		do {
			size_t n = piece_of(o, (size_t)got - at);
			struct tok_result r = tok_stream_feed(s, text + at, n, last, ids, room);

			print_ids(&out, ids, r.produced);
			if (r.status != TOK_OK) {
				fflush(stdout);
				return cli_error(CLI_FAILED, "%s", tok_why_text(r.why));
			}
			at += n;
		} while (at < (size_t)got);
	}
	putchar('\n');
	return cli_flush();
}

int
cmd_encode(int argc, char **argv)
{
	struct encode_options o = {0};
	struct tok_stream *s = malloc(sizeof(*s));
	size_t room = tok_encode_bound(READ_BYTES) + TOK_CARRY_MAX + 16;
	uint32_t *ids = malloc(room * sizeof(*ids));
	uint8_t *text = malloc(READ_BYTES);
	struct tok_cache *cache = NULL;
	struct tok_vocab *v = NULL;
	int code = parse(argc, argv, &o);

	if (code != 0)
		goto out;
	code = CLI_FAILED;
	v = cli_load(o.vocab, o.pretokenizer);
	if (v == NULL)
		goto out;
	cache = tok_cache_create(v, 0, NULL);
	if (s == NULL || ids == NULL || text == NULL || cache == NULL) {
		cli_error(CLI_FAILED, "out of memory");
		goto out;
	}
	tok_stream_init(s, v, cache, o.flags);
	code = encode(&o, s, text, ids, room);
out:
	tok_cache_free(cache);
	tok_vocab_free(v);
	free(text);
	free(ids);
	free(s);
	return code;
}
