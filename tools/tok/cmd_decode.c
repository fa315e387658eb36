/* SPDX-License-Identifier: BSD-3-Clause */
/* tok decode: ids on standard input, bytes on standard output, whole characters at a time. */
#include <getopt.h>
#include <stdlib.h>

#include "cli.h"

#define BATCH 4096u

static int
flush_ids(struct tok_decode_stream *d, const uint32_t *ids, size_t n, bool last, uint8_t *out,
	size_t room)
{
	struct tok_result r;
	size_t done = 0;

	do {
		r = tok_decode_stream_feed(d, ids + done, n - done, last, out, room);
		fwrite(out, 1, r.produced, stdout);
		done += r.consumed;
	} while (r.status == TOK_MORE);
	if (r.status == TOK_BAD) {
		fflush(stdout);
		return cli_error(CLI_FAILED, "id %u is not in the vocabulary (ids are below %u)",
			ids[done], tok_vocab_info(d->vocab).n_ids);
	}
	return 0;
}

/* The next id of standard input; false at its end. *bad: something else stands there. */
static bool
read_id(uint32_t *id, bool *bad)
{
	uint64_t value = 0;
	int c = getchar_unlocked(), digits = 0;

	while (c == ' ' || c == '\n' || c == '\t' || c == '\r')
		c = getchar_unlocked();
	for (; c >= '0' && c <= '9' && value <= UINT32_MAX; c = getchar_unlocked(), digits++)
		value = value * 10 + (uint64_t)(c - '0');
	*bad = value > UINT32_MAX ||
	       (c != EOF && c != ' ' && c != '\n' && c != '\t' && c != '\r');
	*id = (uint32_t)value;
	return !*bad && digits > 0;
}

static int
decode(const struct tok_vocab *v, uint32_t *ids, uint8_t *out, size_t room)
{
	struct tok_decode_stream d;
	size_t n = 0;
	bool bad;
	int code;

	tok_decode_stream_init(&d, v);
	while (read_id(&ids[n], &bad)) {
		if (++n < BATCH)
			continue;
		code = flush_ids(&d, ids, n, false, out, room);
		if (code != 0)
			return code;
		n = 0;
	}
	code = flush_ids(&d, ids, n, true, out, room);
	if (code != 0)
		return code;
	if (ferror(stdin))
		return cli_error(CLI_FAILED, "standard input could not be read");
	if (bad) {
		fflush(stdout);
		return cli_error(CLI_FAILED,
			"standard input: expected ids from 0 to 4294967295, separated by white space");
	}
	return cli_flush();
}

int
cmd_decode(int argc, char **argv)
{
	static const struct option options[] = {
		{"vocab", required_argument, NULL, 'v'},
		{"pretokenizer", required_argument, NULL, 'p'},
		{0},
	};
	const char *vocab = NULL, *pretokenizer = NULL;
	uint32_t *ids = NULL;
	uint8_t *out = NULL;
	struct tok_vocab *v;
	size_t room;
	int c, code = CLI_FAILED;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'v')
			vocab = optarg;
		else if (c == 'p')
			pretokenizer = optarg;
		else
			return cli_error(CLI_USAGE, "decode: bad option \"%s\" (tok --help)",
				argv[optind - 1]);
	}
	if (optind < argc)
		return cli_error(CLI_USAGE, "decode: \"%s\": ids come on standard input", argv[optind]);
	if (vocab == NULL)
		return cli_error(CLI_USAGE, "decode: --vocab is missing: a name or path (tok --help)");
	v = cli_load(vocab, pretokenizer);
	if (v == NULL)
		return CLI_FAILED;
	room = 65536;
	ids = malloc(BATCH * sizeof(*ids));
	out = malloc(room);
	if (ids == NULL || out == NULL)
		cli_error(CLI_FAILED, "out of memory");
	else
		code = decode(v, ids, out, room);
	free(ids);
	free(out);
	tok_vocab_free(v);
	return code;
}
