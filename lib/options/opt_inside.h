/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of this library. */
#pragma once

#include "opt.h"

#define OPT_NAME_ROOM 64	 /* longest variable name, with its NUL */
#define OPT_FILE_MAX (64u << 10) /* bytes of the configuration file */

/* Variable of an option: TOKD_RING_SIZE. `room` is at least OPT_NAME_ROOM. */
void opt_env(const struct opt_program *p, const struct opt_def *d, char *name, size_t room);

/* near.c: the option nearest to a mistyped name[0 .. len), also help and version; or NULL. */
const char *opt_near(const struct opt_program *p, const char *name, size_t len);

/*
 * file.c. read: the content of the file at `path`, with space for one more byte; free() it. NULL:
 * see error. parse: collects values in *given; they point into `text`, which is changed and has
 * space for one more byte. False: see error.
 */
char *opt_file_read(const char *path, size_t *bytes, struct opt_error *e);
bool opt_file_parse(const struct opt_program *p, const char *path, char *text, size_t bytes,
	struct opt_given *given, struct opt_error *e);
/* As in "gpt2", quotes included: they would be part of the value. */
bool opt_is_quoted(const char *text, size_t len);

/* value.c: set the field of option i from each source in turn. False: see error. */
bool opt_set(const struct opt_program *p, size_t i, struct opt_given *given, void *target,
	struct opt_error *e);

/* show.c: limits and default in one line, or ""; the unit, as " ms", or "". */
void opt_limits(const struct opt_def *d, char *text, size_t room);
const char *opt_unit(const struct opt_def *d);
/* "-d, --rdma-device NAME". */
void opt_head(const struct opt_def *d, char *text, size_t room);

/* man.c, bash.c: a file of the build. */
void opt_man(const struct opt_program *p, FILE *to);
void opt_bash(const struct opt_program *p, FILE *to);
