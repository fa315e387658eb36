/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An inference engine of tokd-gpu --engine external: a subscriber (tokd/embeddings.h) that writes
 * ids for prompts. One source for C, C++ and CUDA: an engine may call it in its kernels.
 *
 * It sends a tokg_subscribe_req with TOKG_SUBSCRIBE_ENGINE and gets a tokg_engine_rep with the
 * subscriber's descriptors, and one more (device cuda: all is in the outputs):
 *
 *   outputs   as a subscriber's, and after them, sealed like them:
 *             at ids_off    the ids of all rows: entry.ids says where an entry's are
 *             at shown_off  struct tokd_lane_shown[lanes]
 *   made      struct tokd_lane_made[lanes], then uint32_t[lanes][room]; the engine writes it
 *
 * An entry with TOKG_GENERATE completes a prompt: it is the last one of its text. If it, or one
 * before it, has another status than OK, some ids are not in the table: end the lane as CUT. The
 * entry names a lane, and which use of that lane this is, never 0. Keep both as TOKD_LANE(lane,
 * use).
 *
 *   OPEN      the engine may make `granted` ids in all, and not more: then the lane is paused
 *   ended     by the engine, or by the consumer: cancelled, cut, of a producer that is gone, or
 *             all ids of the text are made (LENGTH)
 *
 * Ordering: a process that has read an entry sees its ids; shown orders nothing. An engine writes
 * ids, then `made` (release), then `end` (release). The consumer loads `end`, `made` (acquire),
 * then ids, and puts them into the log of the producer. It trusts nothing here: an id beyond the
 * table or of another use, more ids than are granted, or an end that an engine may not give ends
 * the lane as CUT. So does the end of the engine's connection, for all lanes that it has.
 *
 * A replaced engine may still store. With the device cpu that has no effect, because `made` is new
 * for each engine. With the device cuda it may overwrite a word of a lane that the next engine has
 * by then. Each word has its use, and an engine keeps its own counts, so such a word is never taken
 * for another: the lane ends as CUT, or the next look stores count and end again. So keep looking
 * at a lane until the look says that it has ended, also after tokd_engine_end: until the consumer
 * has taken the end, the lane is OPEN and paused.
 *
 * All calls for one lane are made by one thread; lanes are independent.
 */
#ifndef TOKD_ENGINE_H
#define TOKD_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <tokd/embeddings.h>

#define TOKG_SUBSCRIBE_ENGINE 1u /* tokg_subscribe_req.flags */
#define TOKG_FLAG_GENERATE 64u	 /* tokg_embedding.flags: TOKG_GENERATE of gpu_ring.h */

/* How a lane ended: enum tokg_end of gpu_ring.h. An engine gives STOP, LENGTH and CUT. */
enum tokd_lane_end {
	TOKD_LANE_OPEN = 0,
	TOKD_LANE_STOP = 1,	 /* the model ended the text */
	TOKD_LANE_LENGTH = 2,	 /* all that was asked for, or that the model can */
	TOKD_LANE_CANCELLED = 3, /* only read */
	TOKD_LANE_CUT = 4,	 /* the engine cannot go on with it */
	TOKD_LANE_STALE = 5,	 /* only read */
};

/* Written by the consumer. Upper halves: the use. */
struct tokd_lane_shown {
	uint64_t state; /* lower half: enum tokd_lane_end */
	uint64_t grant; /* lower half: ids granted so far */
};

/* Written by the engine. */
struct tokd_lane_made {
	uint64_t made; /* lower half: ids made so far */
	uint64_t end;  /* lower half: enum tokd_lane_end */
};

struct tokg_engine_rep {
	struct tokg_subscribe_rep rep; /* `reserved` is TOKG_SUBSCRIBE_ENGINE */
	uint32_t lanes;		       /* of all producers together */
	uint32_t room;		       /* of a lane: a power of two */
	uint32_t n_ids;		       /* ids are below it */
	uint32_t reserved;
	uint64_t ids_off, shown_off; /* in the outputs */
	uint64_t made_off;	     /* in `made`; device cuda: in the outputs */
	uint64_t pad[4];
};
static_assert(sizeof(struct tokg_engine_rep) == 336, "engine reply is ABI");

#define TOKD_LANE(lane, use) ((uint64_t)(use) << 32 | (lane))
#define TOKD_LANE_INDEX(lane) ((uint32_t)(lane))
#define TOKD_LANE_USE(lane) ((uint32_t)((lane) >> 32))

/* An id as the engine writes it: the upper byte has the use, and is never 0. */
#define TOKD_ENGINE_ID_BITS 24
#define TOKD_ENGINE_WORD(use, id) (((use) % 255 + 1) << TOKD_ENGINE_ID_BITS | (id))

/* As mapped; made by the caller from tokg_engine_rep. */
struct tokd_engine {
	const struct tokd_lane_shown *shown; /* [lanes] */
	struct tokd_lane_made *made;	     /* [lanes] */
	struct tokd_lane_made *own;	     /* [lanes], zeroed memory of the engine alone */
	uint32_t *ids;			     /* [lanes][room] */
	uint32_t lanes, room;
};

/* An id may be put if `end` is OPEN and `made` is below `granted`. */
struct tokd_lane_look {
	uint32_t made, granted;
	uint32_t end; /* enum tokd_lane_end; not OPEN: the lane may be forgotten */
};

#ifdef __CUDACC__
#define TOKD_ENGINE_FN static __host__ __device__ inline
#else
#define TOKD_ENGINE_FN static inline
#endif

TOKD_ENGINE_FN uint64_t
tokd_engine_load(const uint64_t *p)
{
#ifdef __CUDA_ARCH__
	uint64_t v;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
#else
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
#endif
}

TOKD_ENGINE_FN void
tokd_engine_store(uint64_t *p, uint64_t v)
{
#ifdef __CUDA_ARCH__
	asm volatile("st.release.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
#else
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
#endif
}

/* Stores again what an engine before this one has overwritten. */
TOKD_ENGINE_FN void
tokd_engine_keep(uint64_t *to, uint64_t own, uint32_t use)
{
	if (own >> 32 == use && tokd_engine_load(to) != own)
		tokd_engine_store(to, own);
}

/* What the engine may do with a lane now. */
TOKD_ENGINE_FN struct tokd_lane_look
tokd_engine_look(const struct tokd_engine *e, uint64_t lane)
{
	const uint32_t i = TOKD_LANE_INDEX(lane), use = TOKD_LANE_USE(lane);
	struct tokd_lane_look l = {0, 0, TOKD_LANE_CUT};
	uint64_t state, grant, made, end;

	if (i >= e->lanes || use == 0)
		return l;
	state = tokd_engine_load(&e->shown[i].state);
	grant = tokd_engine_load(&e->shown[i].grant);
	made = e->own[i].made;
	end = e->own[i].end;
	if (made >> 32 == use)
		l.made = (uint32_t)made;
	if (state >> 32 == use)
		l.end = (uint32_t)state;
	/* An entry may come before its lane is shown. */
	else if ((int32_t)(use - (uint32_t)(state >> 32)) > 0)
		l.end = TOKD_LANE_OPEN;
	if (grant >> 32 == use)
		l.granted = (uint32_t)grant;
	/* Then the words are the next use's. */
	if (l.end != TOKD_LANE_OPEN)
		return l;
	tokd_engine_keep(&e->made[i].made, made, use);
	tokd_engine_keep(&e->made[i].end, end, use);
	/* It ended the lane, and the consumer has not taken that yet. */
	if (end >> 32 == use)
		l.granted = l.made;
	return l;
}

/* An id. False: the lane has ended, or is paused: look at it. */
TOKD_ENGINE_FN bool
tokd_engine_put(const struct tokd_engine *e, uint64_t lane, uint32_t id)
{
	const uint32_t i = TOKD_LANE_INDEX(lane), use = TOKD_LANE_USE(lane);
	const struct tokd_lane_look l = tokd_engine_look(e, lane);

	if (l.end != TOKD_LANE_OPEN || l.made >= l.granted)
		return false;
	e->ids[(uint64_t)i * e->room + (l.made & (e->room - 1))] =
		id >> TOKD_ENGINE_ID_BITS == 0 ? TOKD_ENGINE_WORD(use, id) : 0; /* of no use */
	e->own[i].made = TOKD_LANE(l.made + 1, use);
	tokd_engine_store(&e->made[i].made, e->own[i].made);
	return true;
}

/*
 * The text is complete. `how`: STOP, LENGTH or CUT. False: the lane has ended already, also by a
 * call before. Look at it until it is not OPEN.
 */
TOKD_ENGINE_FN bool
tokd_engine_end(const struct tokd_engine *e, uint64_t lane, uint32_t how)
{
	const uint32_t i = TOKD_LANE_INDEX(lane), use = TOKD_LANE_USE(lane);
	const struct tokd_lane_look l = tokd_engine_look(e, lane);

	if (l.end != TOKD_LANE_OPEN || e->own[i].end >> 32 == use)
		return false;
	/* An end takes effect after the ids that `made` counts. */
	e->own[i].made = TOKD_LANE(l.made, use);
	e->own[i].end = TOKD_LANE(how, use);
	tokd_engine_store(&e->made[i].made, e->own[i].made);
	tokd_engine_store(&e->made[i].end, e->own[i].end);
	return true;
}

/* One id for each of n lanes; taken[i]: it was put. Returns how many were. */
TOKD_ENGINE_FN uint32_t
tokd_engine_put_all(const struct tokd_engine *e, const uint64_t *lanes, const uint32_t *ids,
	uint32_t n, uint8_t *taken)
{
	uint32_t all = 0;

	for (uint32_t i = 0; i < n; i++) {
		taken[i] = tokd_engine_put(e, lanes[i], ids[i]);
		all += taken[i];
	}
	return all;
}

#endif
