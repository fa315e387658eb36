/* SPDX-License-Identifier: BSD-3-Clause */
/* The `tok` command: exit codes are 0 done, 1 failed, 2 wrong use. */
#ifndef TOK_CLI_H
#define TOK_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include <tok.h>

#define CLI_FAILED 1
#define CLI_USAGE 2

int cmd_encode(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_vocab(int argc, char **argv);

/* Print "tok: ..." on standard error and return `code`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Load a vocabulary or say why not; NULL then. */
struct tok_vocab *cli_load(const char *vocab, const char *pretokenizer);

/* Standard output at the end: a full disk or a closed pipe is an error. Returns the exit code. */
int cli_flush(void);

#endif
