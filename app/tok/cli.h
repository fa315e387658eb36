/* SPDX-License-Identifier: BSD-3-Clause */
/* The `tok` command. Exit codes: 0 done, 1 failed, 2 wrong usage. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include <opt.h>
#include <tok.h>

#include "pretokenize/names.h"

#define CLI_FAILED 1
#define CLI_USAGE 2

#define CLI_READ_BYTES 65536u /* per read of standard input */

extern const struct opt_program tok_encode_command, tok_decode_command, tok_train_command;
extern const struct opt_program tok_bench_command, tok_block_keys_command;
extern const struct opt_program tok_info_command, tok_check_command, tok_compile_command;

/* clang-format off */
/* Options of several commands, for a struct `type` with a struct tok_load_opts `load`. */
#define CLI_PRETOKENIZER(type)                                                                     \
	{"pretokenizer", "NAME", OPT_TEXT, OPT_FIELD(type, load.pretokenizer), 0, 0, NULL,         \
		"for a .tiktoken file not recognised by content: " TOK_PRETOK_NAMES                 \
		"; for a vocab.txt: bert-uncased, the default, or bert-cased"}
#define CLI_HUGE_PAGES(type)                                                                       \
	{"huge-pages", NULL, OPT_FLAG, OPT_FIELD(type, load.huge_pages), 0, 0, NULL,               \
		"keep tables in reserved huge pages (sysctl vm.nr_hugepages); fail if too few "    \
		"are free"}
#define CLI_ALGO(type)                                                                             \
	{"algo", "exact|greedy", OPT_CHOICE, OPT_FIELD(type, load.algo), 0, 0, NULL,               \
		"exact, the default: byte pair encoding as defined; greedy: longest match within " \
		"pretokens; a .tokv has one of them"}
/* The field is an enum cli_added. */
#define CLI_ADDED(type)                                                                            \
	{"added-tokens", "none|not-special|all", OPT_CHOICE, OPT_FIELD(type, added), 0, 0,         \
		"not-special",                                                                     \
		"added tokens to recognise in the text; none: as the appliance; all: special "     \
		"tokens, too, for trusted text only"}
/* clang-format on */

enum cli_added { CLI_ADDED_NONE, CLI_ADDED_NOT_SPECIAL, CLI_ADDED_ALL };

/* enum tok_flags of an option's value. */
uint32_t cli_added_flags(enum cli_added added);

/* Print "tok: ..." on standard error and return `code`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Load a vocabulary. NULL, after printing the error. */
struct tok_vocab *cli_load(const char *vocab, const struct tok_load_opts *opts);

/* Reads up to CLI_READ_BYTES of standard input; 0: end; -1, after printing the error. */
ssize_t cli_read(void *out);

/* Flush standard output: a full disk or a closed pipe is an error. Returns the exit code. */
int cli_flush(void);

/*
 * tok encode with --jobs: runs `python3 -m dpdk_tokd encode` with the same arguments, in place of
 * this program. Returns an exit code only if that fails.
 */
bool cli_is_bulk(int argc, char **argv);
int cli_bulk(int argc, char **argv);
