/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of texts that have ended, done or failed. They outlive the answers: a packet that comes
 * when the answer is gone must not make its text again. doc/reference/protection.md, "Once".
 *
 * A name is a keyed hash of a stream's key and MAC address. Its upper half selects a bucket, a
 * cache line; the lower half stands there. Of two keys these are the same with a probability of
 * 2^-32, so one of 306 million new texts is taken for a repeat, and sent again under another id.
 *
 * In a bucket a new name replaces the oldest one. Names do not expire by time, so a clock that
 * jumps changes nothing. Names of sources with many texts have their own places, and replace no
 * others.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_common.h>

#include <mix.h>

#define TOKD_NAMES_EACH 7 /* in a bucket, of each kind */
#define TOKD_NAME_WORDS 5 /* of 8 bytes, in a key */

struct rte_ether_addr;
struct tokd_source;
struct tokd_stream_key;

/* Of sources with few texts, and of those with many. */
enum tokd_names_of { TOKD_NAMES_FEW, TOKD_NAMES_MANY, TOKD_NAMES_KINDS };

struct tokd_name_bucket {
	struct {
		uint32_t next : 4; /* where the oldest name is; below it those of this lap */
		uint32_t lap : 28; /* when it was last 0, in steps of `shift` */
	} at[TOKD_NAMES_KINDS];
	uint32_t half[TOKD_NAMES_KINDS][TOKD_NAMES_EACH]; /* 0: none yet */
} __rte_cache_min_aligned; /* also where the CPU may have lines of 128 bytes */
static_assert(sizeof(struct tokd_name_bucket) == RTE_CACHE_LINE_MIN_SIZE, "a line to look at");

struct tokd_names {
	struct tokd_name_bucket *bucket;
	uint32_t n_buckets;
	uint32_t few;	  /* texts of a source within the horizon, at most */
	uint32_t shift;	  /* TSC ticks to steps of time */
	uint32_t horizon; /* in steps: a name that goes before is counted */
	unsigned __int128 secret[TOKD_NAME_WORDS + 2];
};

static inline uint64_t
tokd_sum_hash(unsigned __int128 sum)
{
	return tokd_mix((uint64_t)(sum >> 64));
}

/* Of a key alone; hashed by tokd_sum_hash(). */
unsigned __int128 tokd_key_sum(const struct tokd_names *t, const struct tokd_stream_key *key);
uint64_t tokd_name_of(
	const struct tokd_names *t, unsigned __int128 key_sum, const struct rte_ether_addr *mac);
bool tokd_names_have(const struct tokd_names *t, uint64_t name);
/*
 * A text of `source` has ended at `now`, in TSC ticks. Returns how many names went before their
 * horizon.
 */
uint32_t tokd_names_add(
	struct tokd_names *t, uint64_t name, struct tokd_source *source, uint64_t now);

static inline struct tokd_name_bucket *
tokd_names_bucket(const struct tokd_names *t, uint64_t name)
{
	return &t->bucket[(name >> 32) * t->n_buckets >> 32];
}
