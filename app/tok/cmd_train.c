/* SPDX-License-Identifier: BSD-3-Clause */
/* tok train: files to a tokenizer.json. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pretokenize/names.h>
#include <train.h>

#include "cli.h"

/* As Hugging Face's ByteLevelBPETokenizer and BertWordPieceTokenizer have them. */
#define VOCAB_SIZE 30000u
#define MIN_FREQUENCY 2u
#define LIMIT_ALPHABET 1000u

static const char *const bert_special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct train_command {
	struct tok_train_options options;
	const char *model, *out;
	const char *only; /* an option that was given, of one of the models alone; or NULL */
	enum tok_kind only_kind;
	const char **special; /* argv's */
	bool progress;
	/* of progress */
	bool in_place; /* on one line */
	bool shown;
	int64_t next; /* ms */
};

/* ---- progress ---- */

static int64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
show(void *ctx, enum tok_train_stage stage, uint64_t done, uint64_t total)
{
	struct train_command *c = ctx;
	const int64_t now = now_ms();

	if (now < c->next)
		return;
	c->next = now + (c->in_place ? 200 : 1000);
	c->shown = true;
	fprintf(stderr, "%stok: ", c->in_place ? "\r\033[K" : "");
	if (stage == TOK_TRAIN_MERGES)
		fprintf(stderr, "%llu of %llu tokens", (unsigned long long)done,
			(unsigned long long)total);
	else if (total == 0)
		fprintf(stderr, "%llu MB read", (unsigned long long)(done / 1000000));
	else
		fprintf(stderr, "%llu of %llu MB read", (unsigned long long)(done / 1000000),
			(unsigned long long)(total / 1000000));
	fputs(c->in_place ? "" : "\n", stderr);
	fflush(stderr);
}

/* ---- options ---- */

static bool
parse_number(const char *text, uint64_t most, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *value <= most;
}

static int
number_32(const char *name, const char *text, uint64_t least, uint64_t most, uint32_t *to)
{
	uint64_t value;

	if (!parse_number(text, most, &value) || value < least)
		return cli_error(CLI_USAGE, "--%s %s: expected a number from %llu to %llu", name,
			text, (unsigned long long)least, (unsigned long long)most);
	*to = (uint32_t)value;
	return 0;
}

static int
take_pretokenizer(struct tok_train_options *o, const char *name)
{
	o->pretok = tok_pretok_by_name(name);
	if (o->pretok == TOK_PRETOK_NONE)
		return cli_error(CLI_USAGE,
			"--pretokenizer %s is not implemented (implemented: " TOK_PRETOK_NAMES ")",
			name);
	return 0;
}

static int
take_model(struct train_command *c, const char *name)
{
	c->model = name;
	if (strcmp(name, "wordpiece") == 0)
		c->options.kind = TOK_KIND_WORDPIECE;
	else if (strcmp(name, "bpe") == 0)
		c->options.kind = TOK_KIND_BPE;
	else
		return cli_error(CLI_USAGE,
			"--model %s is not implemented (implemented: bpe, wordpiece)", name);
	return 0;
}

enum {
	MODEL = 256,
	VOCAB_SIZE_OPTION,
	MIN_FREQUENCY_OPTION,
	SPECIAL,
	MAX_TOKEN_LENGTH,
	PRETOKENIZER,
	CASED,
	STRIP_ACCENTS,
	KEEP_ACCENTS,
	KEEP_CONTROLS,
	JOIN_CHINESE,
	LIMIT_ALPHABET_OPTION,
	INITIAL_ALPHABET,
	PROGRESS,
	HELP,
};

static const struct option options[] = {
	{"model", required_argument, NULL, MODEL},
	{"vocab-size", required_argument, NULL, VOCAB_SIZE_OPTION},
	{"min-frequency", required_argument, NULL, MIN_FREQUENCY_OPTION},
	{"special", required_argument, NULL, SPECIAL},
	{"max-token-length", required_argument, NULL, MAX_TOKEN_LENGTH},
	{"pretokenizer", required_argument, NULL, PRETOKENIZER},
	{"cased", no_argument, NULL, CASED},
	{"strip-accents", no_argument, NULL, STRIP_ACCENTS},
	{"keep-accents", no_argument, NULL, KEEP_ACCENTS},
	{"keep-controls", no_argument, NULL, KEEP_CONTROLS},
	{"join-chinese", no_argument, NULL, JOIN_CHINESE},
	{"limit-alphabet", required_argument, NULL, LIMIT_ALPHABET_OPTION},
	{"initial-alphabet", required_argument, NULL, INITIAL_ALPHABET},
	{"progress", no_argument, NULL, PROGRESS},
	{"help", no_argument, NULL, HELP},
	{0},
};

/* Those that only one of the models has. */
static void
note_only(struct train_command *c, int which)
{
	const bool bytes = which == PRETOKENIZER;

	if (!bytes && (which < CASED || which > INITIAL_ALPHABET))
		return;
	for (const struct option *o = options; o->name != NULL; o++) {
		if (o->val == which && c->only == NULL) {
			c->only = o->name;
			c->only_kind = bytes ? TOK_KIND_BPE : TOK_KIND_WORDPIECE;
		}
	}
}

static int
take(struct train_command *c, int which)
{
	struct tok_train_options *o = &c->options;

	note_only(c, which);
	switch (which) {
	case MODEL:
		return take_model(c, optarg);
	case VOCAB_SIZE_OPTION:
		return number_32("vocab-size", optarg, 1, TOK_MAX_IDS, &o->vocab_size);
	case MIN_FREQUENCY_OPTION:
		if (!parse_number(optarg, INT64_MAX, &o->min_frequency))
			return cli_error(
				CLI_USAGE, "--min-frequency %s: expected a number", optarg);
		return 0;
	case SPECIAL:
		c->special[o->n_special++] = optarg;
		return 0;
	case MAX_TOKEN_LENGTH:
		return number_32("max-token-length", optarg, 1, UINT32_MAX, &o->max_token_length);
	case PRETOKENIZER:
		return take_pretokenizer(o, optarg);
	case CASED:
		o->lowercase = false;
		return 0;
	case STRIP_ACCENTS:
	case KEEP_ACCENTS:
		o->strip_accents = which == STRIP_ACCENTS;
		return 0;
	case KEEP_CONTROLS:
		o->clean_text = false;
		return 0;
	case JOIN_CHINESE:
		o->handle_chinese_chars = false;
		return 0;
	case LIMIT_ALPHABET_OPTION:
		return number_32("limit-alphabet", optarg, 0, UINT32_MAX, &o->limit_alphabet);
	case INITIAL_ALPHABET:
		o->initial_alphabet = optarg;
		return 0;
	default:
		c->progress = true;
		return 0;
	}
}

static int
check(struct train_command *c, int n_files)
{
	struct tok_train_options *o = &c->options;

	if (c->model == NULL)
		return cli_error(
			CLI_USAGE, "train: --model is missing: bpe or wordpiece (tok --help)");
	if (c->only != NULL && c->only_kind != o->kind)
		return cli_error(CLI_USAGE, "train: --%s is not for --model %s", c->only, c->model);
	if (c->out == NULL || n_files == 0)
		return cli_error(CLI_USAGE, "expected tok train --model M -o FILE.json TEXT...");
	if (o->n_special == 0 && o->kind == TOK_KIND_WORDPIECE) {
		o->special = bert_special;
		o->n_special = sizeof(bert_special) / sizeof(bert_special[0]);
	}
	return 0;
}

static int
train(struct train_command *c, const char *const *files, uint32_t n_files)
{
	struct tok_error err;
	bool ok;

	c->in_place = isatty(STDERR_FILENO);
	if (c->in_place || c->progress)
		c->options.progress = (struct tok_train_progress){show, c};
	ok = tok_train(&c->options, files, n_files, c->out, &err);
	if (c->shown && c->in_place)
		fputs("\r\033[K", stderr);
	return ok ? 0 : cli_error(CLI_FAILED, "%s", err.text);
}

int
cmd_train(int argc, char **argv)
{
	struct train_command c = {
		.options =
			{
				.vocab_size = VOCAB_SIZE,
				.min_frequency = MIN_FREQUENCY,
				.pretok = TOK_PRETOK_GPT2,
				.clean_text = true,
				.handle_chinese_chars = true,
				.lowercase = true,
				.strip_accents = -1,
				.limit_alphabet = LIMIT_ALPHABET,
			},
		.special = calloc((size_t)argc, sizeof(char *)),
	};
	int which, code = 0;

	if (c.special == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	c.options.special = c.special;
	opterr = 0;
	while (code == 0 && (which = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (which == HELP) {
			code = cli_help();
			goto out;
		}
		if (which == '?')
			code = cli_error(CLI_USAGE, "train: bad option \"%s\" (tok --help)",
				argv[optind - 1]);
		else if (which == 'o')
			c.out = optarg;
		else
			code = take(&c, which);
	}
	if (code == 0)
		code = check(&c, argc - optind);
	if (code == 0)
		code = train(&c, (const char *const *)argv + optind, (uint32_t)(argc - optind));
out:
	free(c.special);
	return code;
}
