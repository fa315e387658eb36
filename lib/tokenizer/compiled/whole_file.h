/* SPDX-License-Identifier: BSD-3-Clause */
/* Replace a file atomically: write a new file in the same folder and rename it. Set-up only. */
#pragma once

#include <limits.h>

#include "tok.h"

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
