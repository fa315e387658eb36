/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_LOAD_LOOP_H
#define TOKD_LOAD_LOOP_H

#include "client.h"
#include "options.h"
#include "rows.h"
#include "slices.h"

/*
 * Send what is to be sent and wait for all of it. `rows` has room for each request: rows->count of
 * them, whose texts are the slices in turn.
 */
void loop_run(
	struct client *c, const struct options *o, const struct slices *slices, struct rows *rows);

#endif
