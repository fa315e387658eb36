/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static const char usage[] =
	"tok: exact streaming tokenization\n"
	"\n"
	"  tok encode --vocab V [options] < text   print the ids, separated by blanks\n"
	"  tok decode --vocab V [options] < ids    print the bytes of ids\n"
	"  tok vocab info V [options]              describe a vocabulary\n"
	"  tok vocab check V [options]             load and validate it\n"
	"  tok vocab compile V -o FILE [options]   compile it to FILE.tokv\n"
	"  tok train --model M -o FILE [options] TEXT...\n"
	"                                          learn a tokenizer.json from texts (- : standard\n"
	"                                          input); M is bpe, byte-level, or wordpiece\n"
	"\n"
	"V is a name (gpt2), looked up in $TOK_VOCAB_PATH and the standard folders, or a path to\n"
	"a tokenizer.json, a vocab.json with merges.txt beside it, a BERT vocab.txt, a tekken.json,\n"
	"or to their folder; to a .tiktoken file; or to a compiled .tokv.\n"
	"\n"
	"options:\n"
	"  --pretokenizer NAME  for a .tiktoken file not recognised by its content: gpt2, cl100k,\n"
	"                       llama3, qwen2, o200k, tekken or deepseek;\n"
	"                       for a vocab.txt: bert-uncased, the default, or bert-cased\n"
	"  --huge-pages         tables in reserved huge pages, or fail; not for compile\n"
	"options of encode and vocab:\n"
	"  --algo exact         byte pair encoding (the default)\n"
	"  --algo greedy        longest match within pretokens instead\n"
	"options of encode:\n"
	"  --split N            feed the text in pieces of N bytes: the ids do not change\n"
	"  --split random:SEED  feed it in pieces of 1 to 64 bytes\n"
	"  --no-special         omit the template: ids that the vocabulary puts around a text\n"
	"  --added-tokens WHICH added tokens to recognise in the text. text: none; plain, the default:\n"
	"                       all except special ones; all: special ones too\n"
	"  --strict-utf8        reject text that is not UTF-8 instead of replacing bytes by U+FFFD\n"
	"options of train:\n"
	"  --vocab-size N       number of ids, including special tokens and alphabet (30000)\n"
	"  --min-frequency N    rarer pairs are not merged (2)\n"
	"  --special TOKEN      a special token (repeatable); wordpiece has [PAD] [UNK] [CLS] [SEP]\n"
	"                       [MASK] by default\n"
	"  --max-token-length N merges make tokens of fewer than N characters (bpe: bytes)\n"
	"  --pretokenizer NAME  bpe: gpt2, the default, llama3, qwen2, o200k, tekken or deepseek\n"
	"  --cased              wordpiece: keep capitals\n"
	"  --strip-accents      wordpiece: remove accents; the default without --cased\n"
	"  --keep-accents       wordpiece: keep accents; the default with --cased\n"
	"  --keep-controls      wordpiece: keep control characters\n"
	"  --join-chinese       wordpiece: do not separate Chinese characters\n"
	"  --limit-alphabet N   wordpiece: the N most frequent characters get tokens (1000); 0: all\n"
	"  --initial-alphabet CHARACTERS\n"
	"                       wordpiece: these get tokens in any case\n"
	"  --progress           report progress also if standard error is no terminal\n"
	"\n"
	"  tok --help, tok --version\n"
	"\n"
	"exit codes: 0 done, 1 failed, 2 wrong use\n";

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

struct tok_vocab *
cli_load(const char *vocab, const struct tok_load_opts *opts)
{
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(vocab, opts, &err);

	if (v == NULL)
		cli_error(CLI_FAILED, "%s", err.text);
	return v;
}

bool
cli_is_algo(const char *name)
{
	if (strcmp(name, "exact") == 0 || strcmp(name, "greedy") == 0)
		return true;
	cli_error(CLI_USAGE, "--algo %s is not implemented (implemented: exact, greedy)", name);
	return false;
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

int
cli_help(void)
{
	fputs(usage, stdout);
	return cli_flush();
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "encode") == 0)
		return cmd_encode(argc - 1, argv + 1);
	if (strcmp(what, "decode") == 0)
		return cmd_decode(argc - 1, argv + 1);
	if (strcmp(what, "train") == 0)
		return cmd_train(argc - 1, argv + 1);
	if (strcmp(what, "vocab") == 0)
		return cmd_vocab(argc - 1, argv + 1);
	if (strcmp(what, "--help") == 0 || strcmp(what, "-h") == 0)
		return cli_help();
	if (strcmp(what, "--version") == 0) {
		puts("tok " TOKD_VERSION);
		return cli_flush();
	}
	return cli_error(CLI_USAGE,
		"unknown command \"%s\": expected encode, decode, train or vocab (tok --help)", what);
}
