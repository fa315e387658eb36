/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the modes of tokd-client. Functions return an exit code, and print errors. */
#pragma once

#include <tokd/client.h>

#include "options.h"

/* All of standard input. The caller frees *text, also after an error. */
int read_all(char **text, size_t *len);
/* Decimal ids, separated by blanks. The caller frees *ids, also after an error. */
int read_ids(const char *text, size_t len, uint32_t **ids, size_t *n);
/* Allocate room for the ids of any text, valid UTF-8 or not. NULL: no memory. */
uint32_t *room_for(size_t len, uint32_t *max_ids);
/* Print ids separated by blanks. `begun`: this line has some already. */
void print_ids(const uint32_t *ids, uint32_t n, bool begun);
int end_of_output(void);

int run_whole(struct tokd_client *c, const struct options *o);
int run_lines(struct tokd_client *c, const struct options *o);
int run_generate(struct tokd_client *c, const struct options *o);
