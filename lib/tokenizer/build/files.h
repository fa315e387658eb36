/* SPDX-License-Identifier: BSD-3-Clause */
/* Read a file, and replace one. Set-up only. */
#pragma once

#include <limits.h>

#include "tok.h"

#define TOK_FILE_MAX ((size_t)256 << 20) /* largest file read */
#define TOK_SHOWN_MAX 160		 /* most bytes of a path in an error */

/* The name of a file in errors: its path, or the end of a long path, so that the reason fits. */
const char *tok_shown_path(const char *path);

/* Read a whole file. The result is NUL-terminated, and the caller frees it. On error NULL, and
 * fills in *err. */
char *tok_read_file(const char *path, size_t *len, struct tok_error *err);

/* Lines of a text. The caller sets `next` and `end`. */
struct tok_lines {
	char *next, *end; /* what is left */
	char *p;	  /* the current line, without its newline */
	size_t len;
};

/* False: there are no more. */
bool tok_line_next(struct tok_lines *l);

/* A file that is replaced at once: a new one is written in the same folder, and renamed. */
struct tok_whole_file {
	int fd;
	const char *out; /* path; owned by the caller */
	char temporary[PATH_MAX];
};

/* Create a new file next to `out`. False with *err filled in: nothing to clean up. */
bool tok_whole_file_begin(struct tok_whole_file *f, const char *out, struct tok_error *err);

/* Append bytes. False with errno. */
bool tok_whole_file_put(struct tok_whole_file *f, const void *data, size_t n);

/*
 * If `ok`, rename the file into place, durable across a crash of the machine. If not `ok`, or if
 * this fails, remove it; errno is the reason. On error returns false and fills in *err.
 */
bool tok_whole_file_end(struct tok_whole_file *f, bool ok, struct tok_error *err);

/* Remove the temporary file. */
void tok_whole_file_drop(struct tok_whole_file *f);
