/* SPDX-License-Identifier: BSD-3-Clause */
#include "measure_generate.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <monotonic.h>
#include "engine_rule.h"
#include "post.h"

#define LOG_OF_LANE 16 /* words; an answer has fewer */
#define TURNS 4095     /* of a lane, from 1 on */
#define STOP_EVERY 4   /* an external engine ends each so manieth text after half of its ids */
#define QUIET_NS 10000000000ull

/* A lane of a producer, with a text or none. */
struct stream {
	uint64_t posted; /* when; 0: no text */
	uint64_t first;	 /* ns until the first id was read; 0: it was not */
	uint64_t texts;	 /* that it has had */
	uint32_t turn, got, last, before;
	uint32_t stop; /* ids after which the engine ends the text; 0: it makes all */
};

struct state {
	const struct measure_generate *m;
	struct measure_generate_said said;
	struct stream *stream; /* [producers * lanes] */
	uint64_t *at;	       /* [producers]: position in the log */
	uint64_t posted, moved;
	uint32_t ids[TOKG_SLOT_BYTES / 4];
};

/* Hands out prompts as their entries come. */
struct prompts {
	const struct measure_generate *m;
	struct engine_loop *loop; /* of the thread itself; NULL: a process has it */
	bool over;
};

void
measure_generate_plan(struct tokg_geometry *g, uint32_t lanes)
{
	g->lanes = lanes;
	g->log = LOG_OF_LANE;
	while (g->log < LOG_OF_LANE * lanes)
		g->log *= 2;
}

static uint64_t
word(const struct state *s, uint64_t offset)
{
	uint64_t v;

	if (s->m->d->ops->read(s->m->d, offset, &v, sizeof(v)) < 0)
		post_fail("the region cannot be read");
	return v;
}

static uint32_t
next_id(const struct measure_generate *m, uint32_t last, uint32_t before)
{
	return tokg_engine_next(last, before, m->tokens, m->d->geometry.n_ids);
}

/* The k-th id of a stream's text. */
static uint32_t
prompt_id(const struct measure_generate *m, uint32_t stream, uint64_t text, uint32_t k)
{
	const uint64_t x =
		(m->seed ^ ((uint64_t)stream << 48 | text << 16 | k)) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)((x >> 32) * m->d->geometry.n_ids >> 32);
}

static bool
external(const struct measure_generate *m)
{
	return m->own != NULL || m->process >= 0;
}

/* Of a text by its `request`: ids after which the engine ends it; 0: it makes all. */
static uint32_t
stop_of(const struct measure_generate *m, uint64_t request)
{
	return external(m) && request % STOP_EVERY == 0 ? m->made / 2 : 0;
}

static void
post(struct state *s, uint32_t i)
{
	const struct tokg_geometry *const g = &s->m->d->geometry;
	const uint32_t producer = i / g->lanes, lane = i % g->lanes;
	struct stream *const t = &s->stream[i];
	struct tokg_hdr h = {.kind = (uint16_t)g->kind,
		.epoch = POST_EPOCH,
		.request = ++s->posted,
		.tokens = s->m->tokens,
		.bytes = 4 * s->m->tokens,
		.out_off = lane * tokg_out_bytes(s->m->tokens, g->row_bytes)};

	for (uint32_t k = 0; k < s->m->tokens; k++)
		s->ids[k] = prompt_id(s->m, i, t->texts, k);
	t->turn = t->turn % TURNS + 1;
	t->got = t->before = 0;
	t->last = s->ids[s->m->tokens - 1];
	t->first = 0;
	t->stop = stop_of(s->m, h.request);
	t->texts++;
	h.flags = TOKG_FIRST | TOKG_LAST | TOKG_GENERATE_FLAGS(lane, t->turn);
	t->posted = s->moved = monotonic_ns();
	post_slot(s->m->d, producer, lane, &h, t->texts, s->ids);
	if (s->m->d->ops->write_u64(s->m->d, tokg_ask_at(g, producer, lane),
		    TOKG_ASK(s->m->made, POST_EPOCH, t->turn, TOKG_ASK_FINAL)) < 0)
		post_fail("the region cannot be written");
}

/* All words of a producer's log that have come. */
static void
read_log(struct state *s, uint32_t producer)
{
	const struct tokg_geometry *const g = &s->m->d->geometry;

	for (;; s->at[producer]++) {
		const uint64_t w = word(s, tokg_log_at(g, producer, s->at[producer]));
		struct stream *t;
		uint32_t want;

		if (TOKG_TOKEN_LAP(w) != tokg_lap_of(g, s->at[producer]))
			return;
		if (TOKG_TOKEN_LANE(w) >= g->lanes)
			post_fail("a word of the log names lane %u", (unsigned)TOKG_TOKEN_LANE(w));
		t = &s->stream[producer * g->lanes + TOKG_TOKEN_LANE(w)];
		want = next_id(s->m, t->last, t->before);
		if (TOKG_TOKEN_TURN(w) != t->turn || TOKG_TOKEN_ID(w) != want)
			post_fail("id %u of a text is %u in turn %u, must be %u in turn %u", t->got,
				(unsigned)TOKG_TOKEN_ID(w), (unsigned)TOKG_TOKEN_TURN(w), want,
				t->turn);
		s->moved = monotonic_ns();
		if (t->got++ == 0)
			t->first = s->moved - t->posted;
		t->before = t->last;
		t->last = want;
	}
}

/* True: the stream's text has ended, all its ids were read, and its slot is done. */
static bool
read_end(struct state *s, uint32_t i)
{
	const struct tokg_geometry *const g = &s->m->d->geometry;
	const uint32_t producer = i / g->lanes, lane = i % g->lanes;
	struct stream *const t = &s->stream[i];
	const unsigned how = t->stop > 0 ? TOKG_END_STOP : TOKG_END_LENGTH;
	const uint32_t made = t->stop > 0 ? t->stop : s->m->made;
	const uint64_t w = word(s, tokg_ended_at(g, producer, lane));

	if (TOKG_LANE_TURN(w) != t->turn || TOKG_LANE_N(w) != t->got)
		return false;
	if (TOKG_LANE_BITS(w) != how || t->got != made)
		post_fail("a text ended by %u after %u ids, must be by %u after %u",
			(unsigned)TOKG_LANE_BITS(w), t->got, how, made);
	if (word(s, tokg_done_at(g, producer, lane)) != TOKG_DONE(t->texts, TOKG_OK))
		return false;
	s->moved = monotonic_ns();
	s->said.first[s->said.n++] = t->first;
	s->said.ids += made;
	if (t->stop == 0)
		s->said.all[s->said.whole++] = s->moved - t->posted;
	t->posted = 0;
	return true;
}

static void *
prompts_main(void *argument)
{
	struct prompts *const t = argument;
	const struct tokg_device *const d = t->m->d;
	struct engine_prompt p = {0};
	uint64_t next = 0;

	while (!__atomic_load_n(&t->over, __ATOMIC_ACQUIRE)) {
		const struct tokg_out_entry *const e = tokg_outbox_entry(d->outbox, next);

		if (__atomic_load_n(&e->seq, __ATOMIC_ACQUIRE) != next + 1) {
			if (t->loop != NULL)
				engine_loop_pass(t->loop);
			continue;
		}
		next++;
		if (!engine_loop_prompt_of(&d->geometry, e, &p))
			continue;
		p.stop = stop_of(t->m, e->request);
		if (t->loop != NULL)
			engine_loop_take(t->loop, &p);
		else if (send(t->m->process, &p, sizeof(p), MSG_NOSIGNAL) != sizeof(p))
			post_fail("the engine's process has ended");
	}
	return NULL;
}

/* All streams, until n answers have come or the time is over. */
static void
streams_run(struct state *s)
{
	const struct tokg_geometry *const g = &s->m->d->geometry;
	const uint32_t streams = g->producers * g->lanes;
	const uint64_t began = monotonic_ns();

	for (uint32_t i = 0; i < streams && s->posted < s->m->n; i++)
		post(s, i);
	while (s->said.n < s->posted) {
		for (uint32_t p = 0; p < g->producers; p++)
			read_log(s, p);
		for (uint32_t i = 0; i < streams; i++) {
			if (s->stream[i].posted == 0 || !read_end(s, i))
				continue;
			if (s->posted < s->m->n && monotonic_ns() - began < s->m->limit_ns)
				post(s, i);
		}
		if (monotonic_ns() - s->moved > QUIET_NS)
			post_fail("no id came for 10 s, of %u streams after %llu answers: %s",
				streams, (unsigned long long)s->said.n, post_why(s->m->d));
	}
	s->said.ns = s->moved - began;
}

struct measure_generate_said
measure_generate_run(const struct measure_generate *m)
{
	const struct tokg_geometry *const g = &m->d->geometry;
	struct state s = {.m = m};
	struct prompts t = {.m = m};
	pthread_t thread;

	if (m->tokens == 0 || m->tokens > g->slot_bytes / 4 || m->tokens > TOKG_SLOT_BYTES / 4 ||
		m->made == 0 || m->made >= LOG_OF_LANE || g->lanes > g->slots)
		post_fail("generate: a prompt of 1 id or more that fits into a slot, 1 to %d ids, "
			  "and as many slots as lanes",
			LOG_OF_LANE - 1);
	s.stream = calloc((uint64_t)g->producers * g->lanes, sizeof(*s.stream));
	s.at = calloc(g->producers, sizeof(*s.at));
	s.said.first = calloc(m->n, sizeof(*s.said.first));
	s.said.all = calloc(m->n, sizeof(*s.said.all));
	if (!s.stream || !s.at || !s.said.first || !s.said.all)
		post_fail("no memory for %u streams", g->producers * g->lanes);
	if (external(m)) {
		if (m->own != NULL)
			t.loop = engine_loop_open(
				m->own, g->producers * g->lanes, g->n_ids, g->slot_bytes / 4);
		if (m->d->ops->write_u64(m->d, offsetof(struct tokg_ctl, engine), 1) < 0 ||
			pthread_create(&thread, NULL, prompts_main, &t) != 0)
			post_fail("the engine cannot be attached");
	}
	streams_run(&s);
	if (external(m)) {
		__atomic_store_n(&t.over, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	if (t.loop != NULL)
		engine_loop_close(t.loop);
	free(s.stream);
	free(s.at);
	return s.said;
}
