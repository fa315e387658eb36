/* SPDX-License-Identifier: BSD-3-Clause */
/* tok train: trains a tokenizer.json from text files. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pretokenize/names.h>
#include <train.h>

#include <monotonic.h>
#include "cli.h"

static const char *const bert_special[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

struct train_command {
	struct tok_train_options options;
	const char *out;
	struct opt_texts special;
	bool cased, strip_accents, keep_accents, keep_controls, join_chinese;
	bool progress;
	/* of progress */
	bool in_place; /* on one line */
	bool shown;
	uint64_t next; /* ms */
};

/* ---- progress ---- */

static void
show(void *ctx, enum tok_train_stage stage, uint64_t done, uint64_t total)
{
	struct train_command *c = ctx;
	const uint64_t now = monotonic_ns() / 1000000;

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
check_pretokenizer(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	enum tok_pretok *pretok = field;

	*pretok = tok_pretok_by_name(text);
	return *pretok != TOK_PRETOK_NONE ||
	       opt_wrong(err, "not implemented (implemented: " TOK_PRETOK_NAMES ")");
}

#define BPE "For --model bpe"
#define WORDPIECE "For --model wordpiece"

/* Defaults are those of Hugging Face's ByteLevelBPETokenizer and BertWordPieceTokenizer. */
#define FIELD(f) OPT_FIELD(struct train_command, f)
static const struct opt_def defs[] = {
	{"model", "bpe|wordpiece", OPT_CHOICE, FIELD(options.kind), 0, 0, NULL, "bpe is byte-level",
		.flags = OPT_REQUIRED},
	{"out", "FILE", OPT_TEXT, FIELD(out), 0, 0, NULL,
		"the tokenizer.json to write; it is replaced only when complete", .letter = 'o',
		.flags = OPT_REQUIRED},
	{"vocab-size", "N", OPT_COUNT, FIELD(options.vocab_size), 1, TOK_MAX_IDS, "30000",
		"ids, including special tokens and alphabet; fewer if the text has no more pairs"},
	{"min-frequency", "N", OPT_COUNT, FIELD(options.min_frequency), 0, INT64_MAX, "2",
		"do not merge rarer pairs of tokens"},
	{"special", "TOKEN", OPT_TEXT, FIELD(special), 0, 0, NULL,
		"a special token (repeatable); special tokens get the first ids; wordpiece: "
		"default [PAD] [UNK] [CLS] [SEP] [MASK]; [UNK] must be among them",
		.flags = OPT_REPEATABLE},
	{"max-token-length", "N", OPT_COUNT, FIELD(options.max_token_length), 1, UINT32_MAX, NULL,
		"merged tokens have fewer than N characters; bpe: bytes"},
	{"progress", NULL, OPT_FLAG, FIELD(progress), 0, 0, NULL,
		"show progress, also if standard error is not a terminal"},
	{"pretokenizer", "NAME", OPT_OTHER, FIELD(options.pretok), 0, 0, "gpt2",
		"gpt2, llama3, qwen2, o200k, tekken or deepseek", .section = BPE,
		.check = check_pretokenizer},
	{"cased", NULL, OPT_FLAG, FIELD(cased), 0, 0, NULL, "do not lowercase",
		.section = WORDPIECE},
	{"strip-accents", NULL, OPT_FLAG, FIELD(strip_accents), 0, 0, NULL,
		"remove accents; default without --cased"},
	{"keep-accents", NULL, OPT_FLAG, FIELD(keep_accents), 0, 0, NULL,
		"keep accents; default with --cased"},
	{"keep-controls", NULL, OPT_FLAG, FIELD(keep_controls), 0, 0, NULL,
		"keep control characters"},
	{"join-chinese", NULL, OPT_FLAG, FIELD(join_chinese), 0, 0, NULL,
		"do not separate Chinese characters"},
	{"limit-alphabet", "N", OPT_COUNT, FIELD(options.limit_alphabet), 0, UINT32_MAX, "1000",
		"only the N most frequent characters get tokens; 0: all"},
	{"initial-alphabet", "CHARACTERS", OPT_TEXT, FIELD(options.initial_alphabet), 0, 0, NULL,
		"characters that always get tokens"},
};

/* The name of a given option that belongs to the other model, or NULL. */
static const char *
other_models(const struct opt_given *given, enum tok_kind kind)
{
	const char *section = "", *other = kind == TOK_KIND_BPE ? WORDPIECE : BPE;

	for (size_t i = 0; i < sizeof(defs) / sizeof(defs[0]); i++) {
		if (defs[i].section != NULL)
			section = defs[i].section;
		if (given->source[i] != OPT_FROM_DEFAULT && strcmp(section, other) == 0)
			return defs[i].name;
	}
	return NULL;
}

static void
resolve(struct train_command *c)
{
	struct tok_train_options *o = &c->options;

	o->lowercase = !c->cased;
	o->strip_accents = c->strip_accents ? 1 : c->keep_accents ? 0 : -1;
	o->clean_text = !c->keep_controls;
	o->handle_chinese_chars = !c->join_chinese;
	o->special = c->special.text;
	o->n_special = c->special.n;
	if (o->n_special == 0 && o->kind == TOK_KIND_WORDPIECE) {
		o->special = bert_special;
		o->n_special = sizeof(bert_special) / sizeof(bert_special[0]);
	}
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

static int
run(int argc, char **argv)
{
	const struct opt_program *const command = &tok_train_command;
	struct train_command c = {0};
	struct opt_given given;
	const char *other;
	int code = opt_main(command, argc, argv, &c, &given);

	if (code >= 0)
		return code;
	other = other_models(&given, c.options.kind);
	if (other != NULL)
		return opt_usage(command, "--%s is not for --model %s", other,
			c.options.kind == TOK_KIND_BPE ? "bpe" : "wordpiece");
	if (c.strip_accents && c.keep_accents)
		return opt_usage(command, "--strip-accents --keep-accents: give one of them");
	resolve(&c);
	return train(&c, (const char *const *)given.operand, (uint32_t)given.n_operands);
}

const struct opt_program tok_train_command = {
	.name = "tok train",
	.version = TOKD_VERSION,
	.usage = "--model bpe|wordpiece -o FILE [options] TEXT...",
	.about = "Learns a vocabulary from text files (- is standard input), where each line is a "
		 "text, and\n"
		 "writes a tokenizer.json with the same merges and ids as Hugging Face tokenizers "
		 "with the\n"
		 "same settings. The same text gives the same file.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "TEXTFILE",
	.operands_min = 1,
	.operands_max = INT_MAX,
	.operand_missing = "expected tok train --model M -o FILE.json TEXT...",
	.run = run,
};
