/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-client: what its modes share. Functions return an exit code, and print what is wrong. */
#ifndef TOKD_TOOL_CLIENT_TOOL_H
#define TOKD_TOOL_CLIENT_TOOL_H

#include <tokd/client.h>

#include "options.h"

/* Room for the ids of any text, UTF-8 or not; NULL without memory. free() it. */
uint32_t *room_for(size_t len, uint32_t *max_ids);
/* Ids apart by blanks; `begun`: some stand on this line already. */
void print_ids(const uint32_t *ids, uint32_t n, bool begun);
int end_of_output(void);

int run_whole(struct tokd_client *c, const struct options *o);
int run_lines(struct tokd_client *c, const struct options *o);

#endif
