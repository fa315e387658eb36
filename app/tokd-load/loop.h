/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include "client.h"
#include "options.h"
#include "rows.h"
#include "slices.h"

/*
 * Run all requests, and wait for their end. Requests cycle through the slices; `rows` has room for
 * rows->count results.
 */
void loop_run(
	struct client *c, const struct options *o, const struct slices *slices, struct rows *rows);
