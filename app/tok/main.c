/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "../vocab_words.h"

int
cli_error(int code, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* One line, whatever an argument holds. */
	for (char *p = text; *p != '\0'; p++)
		*p = (unsigned char)*p < ' ' || *p == '\x7f' ? '?' : *p;
	fprintf(stderr, "tok: %s\n", text);
	return code;
}

uint32_t
cli_added_flags(enum cli_added added)
{
	return added == CLI_ADDED_NONE	? TOK_ADDED_AS_TEXT
	       : added == CLI_ADDED_ALL ? TOK_SPECIAL
					: 0u;
}

struct tok_vocab *
cli_load(const char *vocab, const struct tok_load_opts *opts)
{
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(vocab, opts, &err);

	if (v == NULL)
		cli_error(CLI_FAILED, "%s", err.text);
	return v;
}

ssize_t
cli_read(void *out)
{
	ssize_t got;

	do
		got = read(STDIN_FILENO, out, CLI_READ_BYTES);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		cli_error(CLI_FAILED, "standard input: %s", strerror(errno));
	return got;
}

int
cli_flush(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(CLI_FAILED, "standard output: %s", strerror(errno));
	return 0;
}

static const struct opt_section sections[] = {
	{"environment", "  TOK_VOCAB_PATH  folders with vocabularies, separated by colons", false},
	{"exit code", "  0  done\n  1  failed\n  2  wrong usage", true},
	{"examples",
		"  echo \"Hello, world\" | tok encode --vocab gpt2\n"
		"  echo \"15496 11 995\" | tok decode --vocab gpt2\n"
		"  tok vocab compile gpt2 -o ~/.local/share/dpdk-tokd/vocab/gpt2.tokv\n"
		"  tok train --model bpe --vocab-size 32000 --special \"<|endoftext|>\" \\\n"
		"      -o tokenizer.json *.txt\n"
		"  tok bench --vocab gpt2 --tokens 512 *.txt",
		false},
	{"see also", "dpdk-tokd(1)", false},
	{0},
};

static const struct opt_program *const commands[] = {
	&tok_encode_command,
	&tok_decode_command,
	&tok_info_command,
	&tok_check_command,
	&tok_compile_command,
	&tok_train_command,
	&tok_bench_command,
	&tok_block_keys_command,
	NULL,
};

static const struct opt_program program = {
	.name = "tok",
	.version = TOKD_VERSION,
	.summary = "exact streaming tokenization of standard input",
	.about =
		"VOCAB is a name (gpt2), looked up in $TOK_VOCAB_PATH and the standard folders, or "
		"the path\n"
		"of a tokenizer.json, a vocab.json with merges.txt, a BERT vocab.txt, a "
		"tekken.json, a\n"
		"SentencePiece .model, or their folder; of a .tiktoken file; or of a compiled "
		".tokv. For\n"
		"a name, each folder is searched for NAME.tokv first.",
	.operand = "COMMAND",
	.operands_max = INT_MAX,
	.words_arg = VOCAB_WORDS_ARG,
	.words_script = VOCAB_WORDS_SCRIPT,
	.sections = sections,
	.commands = commands,
};

int
main(int argc, char **argv)
{
	return opt_run_command(&program, argc, argv);
}
