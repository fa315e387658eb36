/* SPDX-License-Identifier: BSD-3-Clause */
#include "done_names.h"
#include "stream.h"

static_assert(sizeof(struct tokd_stream_key) == TOKD_NAME_WORDS * sizeof(uint64_t),
	"all of a key is hashed");

/*
 * Multiply-shift for vectors: if the secret is random, any two keys collide only with the
 * probability of chance (Dietzfelbinger, "Universal hashing and k-wise independent random variables
 * via integer arithmetic without primes", STACS 1996).
 */
unsigned __int128
tokd_key_sum(const struct tokd_names *t, const struct tokd_stream_key *key)
{
	unsigned __int128 sum = t->secret[TOKD_NAME_WORDS];
	uint64_t word[TOKD_NAME_WORDS];

	memcpy(word, key, sizeof(word));
	for (uint32_t i = 0; i < TOKD_NAME_WORDS; i++)
		sum += t->secret[i] * word[i];
	return sum;
}

uint64_t
tokd_name_of(
	const struct tokd_names *t, unsigned __int128 key_sum, const struct rte_ether_addr *mac)
{
	uint64_t word = 0;

	memcpy(&word, mac, sizeof(*mac));
	return tokd_sum_hash(key_sum + t->secret[TOKD_NAME_WORDS + 1] * word);
}

/* What stands in the bucket: 0 is an empty place. */
static uint32_t
half_of(uint64_t name)
{
	return (uint32_t)name != 0 ? (uint32_t)name : 1;
}

bool
tokd_names_have(const struct tokd_names *t, uint64_t name)
{
	const struct tokd_name_bucket *b = tokd_names_bucket(t, name);
	const uint32_t half = half_of(name);
	uint32_t found = 0;

	for (uint32_t i = 0; i < TOKD_NAMES_EACH; i++)
		found |= (b->half[TOKD_NAMES_FEW][i] == half) |
			 (b->half[TOKD_NAMES_MANY][i] == half);
	return found != 0;
}

/* Time in steps, of as many bits as a lap. */
static uint32_t
steps_since(uint32_t now, uint32_t before)
{
	return (now - before) & ((1u << 28) - 1);
}

/* One text more of a source. It counts from the first after a horizon. */
static enum tokd_names_of
kind_of(const struct tokd_names *t, struct tokd_source *source, uint32_t now)
{
	if (steps_since(now, source->names_since) >= t->horizon) {
		source->names_since = now;
		source->names = 0;
	}
	return ++source->names <= t->few ? TOKD_NAMES_FEW : TOKD_NAMES_MANY;
}

uint32_t
tokd_names_add(struct tokd_names *t, uint64_t name, struct tokd_source *source, uint64_t now)
{
	const uint32_t steps = steps_since((uint32_t)(now >> t->shift), 0);
	const enum tokd_names_of kind = kind_of(t, source, steps);
	struct tokd_name_bucket *b = tokd_names_bucket(t, name);
	const uint32_t next = b->at[kind].next;
	uint32_t early = 0;

	/* All names there were written since the last lap began, and are replaced in this one. */
	if (next == 0) {
		if (b->half[kind][0] != 0 && steps_since(steps, b->at[kind].lap) < t->horizon)
			early = TOKD_NAMES_EACH;
		b->at[kind].lap = steps;
	}
	b->half[kind][next] = half_of(name);
	b->at[kind].next = next + 1 < TOKD_NAMES_EACH ? next + 1 : 0;
	return early;
}
