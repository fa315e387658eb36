/* SPDX-License-Identifier: BSD-3-Clause */
/* tok decode: reads ids, writes their text in whole characters. */
#include <stdlib.h>

#include "ids.h"

#define OUT_BYTES 65536u /* must hold the longest token */

struct decoder {
	struct tok_decode_stream stream;
	struct ids in;
	uint8_t out[OUT_BYTES];
};

static int
put_ids(struct decoder *d, bool last)
{
	const struct ids *in = &d->in;
	struct tok_result r;
	size_t done = 0;

	do {
		r = tok_decode_stream_feed(
			&d->stream, in->ids + done, in->n - done, last, d->out, OUT_BYTES);
		fwrite(d->out, 1, r.produced, stdout);
		done += r.consumed;
	} while (r.status == TOK_MORE);
	if (r.status == TOK_BAD) {
		cli_flush();
		return cli_error(CLI_FAILED,
			"standard input: id %u, number %llu, is not in the "
			"vocabulary: its ids are below %u",
			in->ids[done], (unsigned long long)(in->n_before + done) + 1,
			tok_vocab_info(d->stream.vocab).n_ids);
	}
	return cli_flush();
}

static int
decode(struct decoder *d)
{
	enum ids_state state;
	int code;

	do {
		state = ids_read(&d->in);
		code = put_ids(d, state == IDS_LAST);
	} while (state == IDS_MORE && code == 0);
	return code != 0 ? code : ids_error(&d->in, state);
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
