/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of a worker's fragment table. */
#pragma once

#include <stdint.h>

struct tokd_frags;

/* A table for `n` datagrams at once, on `node`. NULL with a message logged. */
struct tokd_frags *tokd_frags_create(uint32_t n, uint32_t worker, int node, uint64_t tsc_hz);
void tokd_frags_free(struct tokd_frags *f);

/* How many datagrams of --fragments each worker reassembles at once: none if there are several. */
uint32_t tokd_frags_each(uint32_t fragments, uint32_t n_workers);

/* The most mbufs that n datagrams hold. */
uint32_t tokd_frags_mbufs(uint32_t n);
