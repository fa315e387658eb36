/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up of a worker's tables: memory of fixed size on its NUMA node. An int is 0, or -errno with a
 * message logged; a pointer may be NULL, with a message logged.
 */
#pragma once

#include "datapath/side_store.h"
#include "datapath/stream/gpu_text.h"
#include "datapath/stream/stream.h"
#include "log.h"

/* `what`: a literal, for printf. `lower`: the options that ask for less. */
#define TOKD_NO_ROOM(index, node, lower, what, ...)                                                \
	TOKD_LOG(worker, ERR,                                                                      \
		"worker %u: cannot allocate " what " on NUMA node %d; lower " lower                \
		", or reserve more huge pages there (with --no-huge raise -m)\n",                  \
		index, __VA_ARGS__, node)

struct tokd_streams *tokd_streams_create(
	uint32_t n, uint32_t worker, int node, uint64_t open_ticks, uint64_t finished_ticks);
void tokd_streams_free(struct tokd_streams *t);

/* For `streams` streams. */
struct tokd_sources *tokd_sources_create(uint32_t streams, uint32_t worker, int node);
void tokd_sources_free(struct tokd_sources *t);

/* A name that goes within `horizon_ms` of its text's end is counted. */
int tokd_names_create(struct tokd_names *t, uint64_t bytes, uint32_t worker, int node,
	uint64_t tsc_hz, uint32_t horizon_ms);
void tokd_names_free(struct tokd_names *t);

/*
 * --block-keys, after the ring, terms and streams: memory for each stream, and what readers must
 * know in the ring's header. Nothing without --block-keys.
 */
int tokd_keys_open(struct tokd_worker *w);

/* `bytes` of ids; 0: none. */
int tokd_side_create(
	struct tokd_side *d, uint64_t bytes, uint64_t ring_bytes, uint32_t worker, int node);
void tokd_side_destroy(struct tokd_side *d);

/* For `n` datagrams at once. */
struct tokd_frags *tokd_frags_create(uint32_t n, uint32_t worker, int node, uint64_t tsc_hz);
void tokd_frags_free(struct tokd_frags *f);

/* How many datagrams of --fragments each worker reassembles at once: none if there are several. */
uint32_t tokd_frags_each(uint32_t fragments, uint32_t n_workers);

/* For texts that go to the GPU as bytes, by a sink with this geometry. */
int tokd_gpu_texts_open(struct tokd_worker *w, const struct tokg_geometry *g);
void tokd_gpu_texts_close(struct tokd_worker *w);
