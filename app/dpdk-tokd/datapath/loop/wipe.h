/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --wipe: texts and ids do not outlive their use. A stream's state, blocks of the side store and
 * what the tokenizer writes after a record are zeroed at once, mbufs when they come back to their
 * pool (wiped_pool.h), the rest here.
 */
#pragma once

#include "datapath/worker.h"

/* In housekeeping: some times a second, a bounded part of what is left. */
void tokd_wipe(struct tokd_worker *w, uint64_t now);
