/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of stress_ring know of each other. Its consumer is device_cpu.cpp, compiled with
 * faults.cpp. */
#pragma once

#include <atomic>
#include <cinttypes>
#include <cstdlib>
#include <deque>
#include <vector>

#include <mix.h>
#include "../../../../lib/gpu_sink/kernel/common.h"
#include "request_text.h"

extern "C" {
#include "ring/check.h"
}

#ifdef TOKG_INJECT
#define INJECT 1
#else
#define INJECT 0
#endif

namespace stress
{

constexpr uint32_t PRODUCERS = 3, SLOTS = 8, DIM = 4, IDS = 1 << 20, MOST_IDS = 200, WORKERS = 2;
constexpr uint64_t OUT_BYTES = 1 << 16;

struct options {
	bool any_order = INJECT, check = true, late = false, heads = false;
	uint64_t slots = 0, seed = 1;
};

struct random_numbers {
	uint64_t state;

	uint64_t
	next()
	{
		return dice_throw(&state);
	}
	uint32_t
	below(uint32_t n)
	{
		return (uint32_t)((next() >> 32) * n >> 32);
	}
};

extern std::atomic<bool> over;
extern std::atomic<uint64_t> n_wrong, n_posted;
extern std::atomic<uint64_t> n_misled; /* of n_wrong: rows and deliveries that are */

/* Goes on: what else is wrong is worth knowing. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* It cannot go on. */
[[noreturn]] void bail_out(const struct tokg_error &err);

/* What a request's ids are follows from its number. */
static inline uint32_t
id_of(uint64_t request, uint32_t i)
{
	return (uint32_t)((request * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull) >> 40) %
	       IDS;
}

/* Is it a text, of which the bytes are posted? Then its ids are those of request_text(). */
static inline bool
is_text(uint64_t request)
{
	return id_of(request, UINT32_MAX) % 8 == 0;
}

/* Rows of id are {id, -id, id / 2, 1}: exact in fp32. */
static inline float
element(uint32_t id, uint32_t i)
{
	return i == 0 ? (float)id : i == 1 ? -(float)id : i == 2 ? (float)id / 2 : 1.0f;
}

/* Words of the ring. With -DTOKG_INJECT everything is one. */
static inline void
put(uint64_t *p, uint64_t v)
{
	if (INJECT)
		__atomic_store_n(p, v, __ATOMIC_RELAXED);
	else
		*p = v;
}

struct world;

enum { LIVES, DYING, GONE };

struct text {
	uint64_t request;
	uint32_t n; /* requests in the slot; more than one: a BATCH */
	uint32_t tokens[4];
	bool strict;
	bool raw; /* posted as its bytes: tokens[0] is their number, the most that there can be */
};

struct piece {
	uint64_t *to;
	uint64_t value;
	uint32_t slot;
	bool header;
};

struct producer {
	world *w;
	uint32_t producer, epoch = 1;
	random_numbers r;
	struct slot {
		bool out = false;
		text t;
		uint64_t ticket = 0;
		struct tokg_hdr hdr;
		std::vector<uint64_t> payload;
	} slot[SLOTS];
	std::deque<uint64_t> room; /* bytes that each posted slot took, not given back yet */
	std::deque<text> again;
	std::vector<piece> wire;
	bool strict_waits = false; /* a header behind its payload's READ */
	uint32_t strict_slot = 0, state = LIVES, breaking = 0;
	uint64_t posted = 0, position = 0, used = 0, released = 0, next_request = 0;
	uint64_t n_again = 0, n_failed = 0, n_left = 0;
	uint64_t first = 0; /* ticket that its slots begin at */

	uint64_t *word(uint64_t offset);
	uint64_t back(uint64_t offset);
	void begin();
	void step();
	bool post();
	text next_text();
	uint32_t fill(uint32_t s);
	void end(uint32_t s, uint32_t status);
	void write(uint32_t s, bool header);
	void land(uint32_t n);
	void read_back();
	void resume();
	bool idle();
	bool is_spent();
	void give_up();
	bool flying(uint32_t s);
};

struct held {
	uint32_t producer, slot;
	uint64_t ticket;
	const float *rows;
	uint64_t request;
	uint32_t tokens, epoch;
	uint64_t until;
};

/* Of a slot. */
struct seen {
	uint64_t ticket = 0;	/* that the last entry was of */
	uint32_t delivered = 0; /* its parts that were, a bit each */
	uint32_t unmarked = 0;	/* ... of which an entry said that they were not done again */
	uint64_t passed = 0;	/* last ticket that `released` went by */
};

struct agent {
	world *w;
	random_numbers r;
	uint64_t taken = 0, turn[PRODUCERS] = {}, steps = 0;
	uint64_t n_entries = 0, n_redo = 0, n_dropped = 0, n_holes = 0, n_late = 0, n_texts = 0;
	uint64_t status[16] = {};
	std::vector<held> holds;
	seen slot[PRODUCERS][SLOTS];

	void step();
	bool take();
	void deliver(const struct tokg_out_entry *e);
	void look(const held &h);
	void release(uint32_t p);
	bool free_to_give(uint32_t p);
};

struct world {
	options o;
	struct tokg_geometry g = {};
	struct tokg_device *d = nullptr;
	std::vector<float> table;
	producer p[PRODUCERS];
	agent a;
	/* Requests of producer i are i, i + PRODUCERS, ...: times delivered, and what came of them.
	 */
	std::vector<uint8_t> delivered, ended, dead;
	uint64_t n_deaths = 0, n_breaks = 0, n_restarts = 0;

	uint64_t
	load(uint64_t offset)
	{
		return __atomic_load_n(
			(uint64_t *)((uint8_t *)d->region + offset), __ATOMIC_ACQUIRE);
	}
};

/* faults.cpp */
extern std::atomic<uint32_t> killing; /* the consumer's threads end, each somewhere */
/* Of a producer that does not live: a step towards its successor. */
void bury(world *w, uint32_t i, uint64_t *wait);
void kill_producer(world *w, uint32_t i);
void restart_consumer(world *w);
/* The consumer writes done words twice, as on a GPU; then both must be equal. */
void done_twice(world *w);
bool done_equal(world *w);
/* Told to end, or all of its threads end by themselves while the others go on. */
bool consumer_ends(world *w, random_numbers *r);
/* With options.late a worker of the last incarnation is about; when the consumer has been stopped.
 */
void late_ends();

} // namespace stress
