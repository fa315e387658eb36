/* SPDX-License-Identifier: BSD-3-Clause */
/* tok decode: ids on standard input, bytes on standard output, whole characters at a time. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define IDS_MAX                                                                                    \
	(CLI_READ_BYTES / 2 + 1) /* in one read: a digit and a blank each, and one carried on */
#define OUT_BYTES 65536u	 /* must hold the longest token */

struct decoder {
	struct tok_decode_stream stream;
	uint64_t value; /* of the number that is being read */
	bool in_number;
	uint64_t n_done; /* ids decoded */
	uint32_t n_ids;
	char text[CLI_READ_BYTES];
	uint32_t ids[IDS_MAX];
	uint8_t out[OUT_BYTES];
};

static int
put_ids(struct decoder *d, bool last)
{
	struct tok_result r;
	size_t done = 0;

	do {
		r = tok_decode_stream_feed(
			&d->stream, d->ids + done, d->n_ids - done, last, d->out, OUT_BYTES);
		fwrite(d->out, 1, r.produced, stdout);
		done += r.consumed;
	} while (r.status == TOK_MORE);
	d->n_done += done;
	d->n_ids = 0;
	if (r.status == TOK_BAD) {
		cli_flush();
		return cli_error(CLI_FAILED,
			"standard input: id %u, number %llu, is not in the "
			"vocabulary: its ids are below %u",
			d->ids[done], (unsigned long long)d->n_done + 1,
			tok_vocab_info(d->stream.vocab).n_ids);
	}
	return cli_flush();
}

/* What was read before the bad number is still decoded. */
static int
bad_number(struct decoder *d, char found)
{
	int code = put_ids(d, false);
	unsigned long long number = d->n_done + 1;

	if (code != 0)
		return code;
	if (found >= '0' && found <= '9')
		return cli_error(CLI_FAILED, "standard input: id number %llu is above %u", number,
			UINT32_MAX);
	return cli_error(CLI_FAILED,
		"standard input: id number %llu: expected digits, found byte 0x%02x", number,
		(uint8_t)found);
}

static int
decode(struct decoder *d)
{
	ssize_t got;

	while ((got = cli_read(d->text)) > 0) {
		int code;

		for (ssize_t i = 0; i < got; i++) {
			char c = d->text[i];

			if (c >= '0' && c <= '9') {
				d->value = d->value * 10 + (uint64_t)(c - '0');
				d->in_number = true;
				if (d->value > UINT32_MAX)
					return bad_number(d, c);
			} else if (c == '\0' || strchr(" \t\n\v\f\r", c) == NULL) {
				return bad_number(d, c);
			} else if (d->in_number) {
				d->ids[d->n_ids++] = (uint32_t)d->value;
				d->value = 0;
				d->in_number = false;
			}
		}
		code = put_ids(d, false);
		if (code != 0)
			return code;
	}
	if (got < 0)
		return CLI_FAILED;
	if (d->in_number)
		d->ids[d->n_ids++] = (uint32_t)d->value;
	return put_ids(d, true);
}

int
cmd_decode(int argc, char **argv)
{
	static const struct option options[] = {
		{"vocab", required_argument, NULL, 'v'},
		{"pretokenizer", required_argument, NULL, 'p'},
		{"huge-pages", no_argument, NULL, 'H'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct tok_load_opts opts = {0};
	const char *vocab = NULL;
	struct decoder *d;
	struct tok_vocab *v;
	int c, code;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'v')
			vocab = optarg;
		else if (c == 'p')
			opts.pretokenizer = optarg;
		else if (c == 'H')
			opts.huge_pages = true;
		else if (c == 'h')
			return cli_help();
		else
			return cli_error(CLI_USAGE, "decode: bad option \"%s\" (tok --help)",
				argv[optind - 1]);
	}
	if (optind < argc)
		return cli_error(
			CLI_USAGE, "decode: \"%s\": ids come on standard input", argv[optind]);
	if (vocab == NULL)
		return cli_error(
			CLI_USAGE, "decode: --vocab is missing: a name or path (tok --help)");
	v = cli_load(vocab, &opts);
	if (v == NULL)
		return CLI_FAILED;
	d = calloc(1, sizeof(*d));
	if (d == NULL) {
		code = cli_error(CLI_FAILED, "out of memory");
	} else {
		tok_decode_stream_init(&d->stream, v);
		code = decode(d);
	}
	free(d);
	tok_vocab_free(v);
	return code;
}
