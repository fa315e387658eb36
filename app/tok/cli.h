/* SPDX-License-Identifier: BSD-3-Clause */
/* The `tok` command: exit codes are 0 done, 1 failed, 2 wrong use. */
#ifndef TOK_CLI_H
#define TOK_CLI_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include <tok.h>

#define CLI_FAILED 1
#define CLI_USAGE 2

#define CLI_READ_BYTES 65536u /* of standard input at a time */

int cmd_encode(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_vocab(int argc, char **argv);

/* Print "tok: ..." on standard error and return `code`. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print the help; returns the exit code. */
int cli_help(void);

/* Load a vocabulary or say why not; NULL then. */
struct tok_vocab *cli_load(const char *vocab, const struct tok_load_opts *opts);

/* Is --algo's argument one? If not, says so. */
bool cli_is_algo(const char *name);

/* Up to CLI_READ_BYTES of standard input, as soon as there are any; 0 at its end; -1: said why. */
ssize_t cli_read(void *out);

/* Hand standard output on: a full disk or a closed pipe is an error. Returns the exit code. */
int cli_flush(void);

#endif
