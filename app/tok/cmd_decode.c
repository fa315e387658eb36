/* SPDX-License-Identifier: BSD-3-Clause */
/* tok decode: reads ids, writes their text in whole characters. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Per read: a digit and a blank each, and one continued number. */
#define IDS_MAX (CLI_READ_BYTES / 2 + 1)
#define OUT_BYTES 65536u /* must hold the longest token */

struct decoder {
	struct tok_decode_stream stream;
	uint64_t value; /* the number being read */
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

/* Ids before the invalid number are still decoded. */
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

struct decode_options {
	const char *vocab;
	struct tok_load_opts load;
};

static const struct opt_def defs[] = {
	{"vocab", "VOCAB", OPT_TEXT, OPT_FIELD(struct decode_options, vocab), 0, 0, NULL,
		"the vocabulary", .flags = OPT_REQUIRED},
	CLI_PRETOKENIZER(struct decode_options),
	CLI_HUGE_PAGES(struct decode_options),
};

static int
run(int argc, char **argv)
{
	struct decode_options o = {0};
	struct opt_given given;
	struct decoder *d;
	struct tok_vocab *v;
	int code = opt_main(&tok_decode_command, argc, argv, &o, &given);

	if (code >= 0)
		return code;
	v = cli_load(o.vocab, &o.load);
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

const struct opt_program tok_decode_command = {
	.name = "tok decode",
	.version = TOKD_VERSION,
	.usage = "--vocab VOCAB [options] < ids",
	.about = "Reads ids separated by blanks from standard input, and prints their bytes.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "ID",
	.operand_missing = "ids are read from standard input",
	.run = run,
};
