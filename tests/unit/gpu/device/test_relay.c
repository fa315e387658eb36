/* SPDX-License-Identifier: BSD-3-Clause */
/* An external engine: what it sees, what it may write, and how invalid words end a lane. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <tokd/engine.h>

#include "bench.h"
#include "engine_area.h"
#include "ring/geometry.h"

#define LANES 4
#define LOG 16
#define ROOM 4
#define PRODUCER 1
#define LANE 2 /* of that producer */
#define INDEX (PRODUCER * LANES + LANE)

static const uint32_t prompt[3] = {11, 12, 13};

struct desk {
	struct bench b;
	struct tokg_engine_area area;
	struct tokd_engine e;
	uint64_t logged; /* words of the log that were looked at */
	uint64_t engines;
};

static void
external(struct tokg_device_config *c)
{
	c->geometry.lanes = LANES;
	c->geometry.log = LOG;
	c->external_engine = true;
}

static void
set_engine(struct desk *d, uint64_t engine)
{
	assert_int_equal(
		d->b.d->ops->write_u64(d->b.d, offsetof(struct tokg_ctl, engine), engine), 0);
}

static void
engine_map(struct desk *d)
{
	void *const made = mmap(
		NULL, d->area.made_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, d->b.d->made_fd, 0);

	assert_ptr_not_equal(made, MAP_FAILED);
	d->e = (struct tokd_engine){
		.shown = (void *)((uint8_t *)d->b.d->outputs + d->area.shown_off),
		.made = made,
		.own = calloc(d->area.lanes, sizeof(*d->e.own)),
		.ids = (void *)((uint8_t *)made + d->area.ids_in_made),
		.lanes = d->area.lanes,
		.room = d->area.room};
	assert_non_null(d->e.own);
	assert_int_equal(d->e.room, ROOM);
}

static void
engine_unmap(const struct desk *d, const struct tokd_engine *e)
{
	munmap(e->made, d->area.made_bytes);
	free(e->own);
}

static void
desk_open(struct desk *d, bool with_engine)
{
	bench_skip_on_gpu("the engine's memory is not the host's");
	memset(d, 0, sizeof(*d));
	bench_start(&d->b, external);
	d->area = tokg_engine_area_plan(&d->b.d->geometry);
	engine_map(d);
	if (with_engine)
		set_engine(d, ++d->engines);
}

static void
desk_close(struct desk *d)
{
	engine_unmap(d, &d->e);
	bench_close(&d->b);
}

/* A test of the desk `d`, with an engine. */
#define DESK_TEST(name)                                                                            \
	static void name##_at(struct desk *d);                                                     \
	TEST(name)                                                                                 \
	{                                                                                          \
		struct desk d;                                                                     \
		desk_open(&d, true);                                                               \
		name##_at(&d);                                                                     \
		desk_close(&d);                                                                    \
	}                                                                                          \
	static void name##_at(struct desk *d)

/* A prompt in the lane's turn. Returns what the engine calls it by, as its entry says. */
static uint64_t
post(struct desk *d, uint32_t turn)
{
	struct tokg_hdr h = bench_hdr(&d->b, 3);
	struct tokg_out_entry e;

	h.flags |= TOKG_GENERATE_FLAGS(LANE, turn);
	h.out_off = (turn % 4) * (uint64_t)TOKG_OUT_ALIGN;
	bench_done(&d->b, PRODUCER, turn % 4, h, prompt, TOKG_OK);
	e = bench_entry(&d->b);
	assert_int_equal(e.lane, INDEX);
	return TOKD_LANE(e.lane, e.use);
}

static void
ask(struct desk *d, uint32_t turn, uint32_t granted, uint32_t bits)
{
	assert_int_equal(
		d->b.d->ops->write_u64(d->b.d, tokg_ask_at(&d->b.d->geometry, PRODUCER, LANE),
			TOKG_ASK(granted, 7, turn, bits)),
		0);
}

/* In the ring, and the engine is shown it. */
static void
ends(struct desk *d, uint64_t lane, uint32_t turn, uint32_t n, enum tokg_end how)
{
	bench_comes(&d->b, tokg_ended_at(&d->b.d->geometry, PRODUCER, LANE), UINT64_MAX,
		TOKG_LANE_WORD(n, turn, how));
	for (uint32_t i = 0; i < 10000 && tokd_engine_look(&d->e, lane).end != how; i++)
		bench_nap();
	assert_int_equal(tokd_engine_look(&d->e, lane).end, how);
	assert_false(tokd_engine_put(&d->e, lane, 1));
	assert_false(tokd_engine_end(&d->e, lane, TOKD_LANE_STOP));
}

static void
next_in_log(struct desk *d, uint32_t turn, uint32_t id)
{
	const struct tokg_geometry *g = &d->b.d->geometry;
	const uint64_t at = d->logged++;

	bench_comes(&d->b, tokg_log_at(g, PRODUCER, at), UINT64_MAX,
		TOKG_TOKEN(id, LANE, turn, tokg_lap_of(g, at)));
}

static void
granted(struct desk *d, uint64_t lane, uint32_t n)
{
	for (uint32_t i = 0; i < 10000 && tokd_engine_look(&d->e, lane).granted != n; i++)
		bench_nap();
	assert_int_equal(tokd_engine_look(&d->e, lane).granted, n);
}

/* A prompt in the lane's turn for which so much is granted, as the engine knows. */
static uint64_t
post_granted(struct desk *d, uint32_t turn, uint32_t n, uint32_t bits)
{
	const uint64_t lane = post(d, turn);

	ask(d, turn, n, bits);
	granted(d, lane, n);
	return lane;
}

/* The engine makes it, and it comes. */
static void
makes(struct desk *d, uint64_t lane, uint32_t turn, uint32_t id)
{
	assert_true(tokd_engine_put(&d->e, lane, id));
	next_in_log(d, turn, id);
}

/* What a program may store that does not keep to tokd/engine.h. */
static void
store_made(struct desk *d, uint64_t lane, uint32_t n)
{
	__atomic_store_n(
		&d->e.made[INDEX].made, TOKD_LANE(n, TOKD_LANE_USE(lane)), __ATOMIC_RELEASE);
}

DESK_TEST(ids_are_beside_their_rows)
{
	struct tokg_hdr h;
	uint32_t ids[700];
	const uint32_t *got;

	for (uint32_t i = 0; i < 700; i++)
		ids[i] = i * 7 % N_IDS;
	h = bench_hdr(&d->b, 700); /* several jobs */
	h.out_off = d->b.d->geometry.out_bytes + 16 * TOKG_OUT_ALIGN;
	bench_done(&d->b, PRODUCER, 0, h, ids, TOKG_OK);
	got = (const uint32_t *)((const uint8_t *)d->b.d->outputs +
				 tokg_engine_ids_at(&d->area,
					 d->b.d->geometry.out_bytes + 16 * TOKG_OUT_ALIGN));
	assert_memory_equal(got, ids, sizeof(ids));
}

DESK_TEST(an_engine_is_paused_after_what_is_granted)
{
	uint64_t lane = post(d, 1);

	bench_nap();
	assert_false(tokd_engine_put(&d->e, lane, 5)); /* nothing is granted */
	ask(d, 1, 2, 0);
	granted(d, lane, 2);
	assert_true(tokd_engine_put(&d->e, lane, 5));
	assert_true(tokd_engine_put(&d->e, lane, 6));
	assert_false(tokd_engine_put(&d->e, lane, 7));
	assert_int_equal(tokd_engine_look(&d->e, lane).made, 2);
	next_in_log(d, 1, 5);
	next_in_log(d, 1, 6);
	ask(d, 1, 3, TOKG_ASK_FINAL);
	granted(d, lane, 3);
	makes(d, lane, 1, 7);
	ends(d, lane, 1, 3, TOKG_END_LENGTH);
}

DESK_TEST(an_engine_ends_a_text_after_its_ids)
{
	static const enum tokg_end how[] = {TOKG_END_STOP, TOKG_END_LENGTH, TOKG_END_CUT};

	for (uint32_t turn = 1; turn <= 3; turn++) {
		const uint64_t lane = post(d, turn);

		assert_int_equal(TOKD_LANE_USE(lane), turn);
		ask(d, turn, 9, 0);
		granted(d, lane, 9);
		for (uint32_t i = 0; i < turn - 1; i++)
			assert_true(tokd_engine_put(&d->e, lane, turn + i));
		assert_true(tokd_engine_end(&d->e, lane, how[turn - 1]));
		assert_false(tokd_engine_put(&d->e, lane, 1));
		ends(d, lane, turn, turn - 1, how[turn - 1]);
		for (uint32_t i = 0; i < turn - 1; i++)
			next_in_log(d, turn, turn + i);
	}
}

DESK_TEST(an_engine_may_end_a_text_without_ids)
{
	uint64_t lane = post(d, 1);

	assert_true(tokd_engine_end(&d->e, lane, TOKD_LANE_STOP));
	ends(d, lane, 1, 0, TOKG_END_STOP);
}

DESK_TEST(a_producer_cancels_and_goes)
{
	uint64_t lane = post_granted(d, 1, 3, 0);

	makes(d, lane, 1, 5);
	ask(d, 1, 3, TOKG_ASK_CANCEL);
	ends(d, lane, 1, 1, TOKG_END_CANCELLED);
	lane = post(d, 2);
	bench_grant(&d->b, PRODUCER, 0);
	ends(d, lane, 2, 0, TOKG_END_STALE);
}

TEST(without_an_engine_a_text_ends_at_once)
{
	struct desk d;
	uint64_t lane;

	desk_open(&d, false);
	lane = post(&d, 1);
	ends(&d, lane, 1, 0, TOKG_END_CUT);
	desk_close(&d);
}

DESK_TEST(a_new_engine_gets_new_texts_alone)
{
	struct tokg_error err = {{0}};
	struct tokd_engine old;
	uint64_t first, second;

	first = post_granted(d, 1, 3, 0);
	makes(d, first, 1, 5);
	set_engine(d, 0);
	old = d->e;
	assert_int_equal(d->b.d->ops->renew_made(d->b.d, &err), 0);
	engine_map(d);
	set_engine(d, ++d->engines); /* however soon */
	ends(d, first, 1, 1, TOKG_END_CUT);
	second = post_granted(d, 2, 2, TOKG_ASK_FINAL);
	assert_false(tokd_engine_put(&old, first, 6)); /* the old one does not know yet */
	assert_int_equal(tokd_engine_look(&old, first).end, TOKD_LANE_CUT);
	/* and stores what would be right for the new one */
	old.ids[INDEX * ROOM] = TOKD_ENGINE_WORD(TOKD_LANE_USE(second), 6u);
	tokd_engine_store(&old.made[INDEX].made, TOKD_LANE(1, TOKD_LANE_USE(second)));
	tokd_engine_store(&old.made[INDEX].end, TOKD_LANE(TOKD_LANE_STOP, TOKD_LANE_USE(second)));
	makes(d, second, 2, 7);
	makes(d, second, 2, 8);
	ends(d, second, 2, 2, TOKG_END_LENGTH);
	engine_unmap(d, &old);
}

/* Before it has threads: they may need memory, too. */
TEST(without_memory_for_the_next_engine_that_of_the_last_one_stays)
{
	struct tokg_error err = {{0}};
	struct rlimit limit, none;
	struct bench b;
	int fd, renewed;
	void *more;

	bench_skip_on_gpu("the engine's memory is not the host's");
	bench_open(&b, external);
	fd = b.d->made_fd;
	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_AS, &none);
	more = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	renewed = more == MAP_FAILED ? b.d->ops->renew_made(b.d, &err) : 0;
	setrlimit(RLIMIT_AS, &limit);
	if (more != MAP_FAILED) {
		munmap(more, 1);
		bench_close(&b);
		print_message("RLIMIT_AS limits nothing here: qemu-user ignores it\n");
		return;
	}
	assert_int_equal(renewed, -1);
	assert_non_null(strstr(err.text, "bytes of memory (tokd-gpu-engine): Cannot allocate"));
	assert_int_equal(b.d->made_fd, fd);
	assert_int_equal(b.d->ops->renew_made(b.d, &err), 0);
	assert_int_not_equal(b.d->made_fd, fd);
	bench_close(&b);
}

DESK_TEST(the_engines_memory_cannot_be_sealed_or_resized_by_it)
{
	assert_int_equal(fcntl(d->b.d->made_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(ftruncate(d->b.d->made_fd, 0), -1);
}

/* As with the device cuda. `use` is that of an engine before. */
DESK_TEST(late_stores_of_another_use_are_ignored_or_cut_the_lane)
{
	uint64_t lane;

	(void)post(d, 1);
	ask(d, 1, 1, TOKG_ASK_CANCEL);
	bench_comes(&d->b, tokg_ended_at(&d->b.d->geometry, PRODUCER, LANE), UINT64_MAX,
		TOKG_LANE_WORD(0, 1, TOKG_END_CANCELLED));
	/* a count: the engine's next look stores its own */
	lane = post_granted(d, 2, 9, 0);
	makes(d, lane, 2, 5);
	tokd_engine_store(&d->e.made[INDEX].made, TOKD_LANE(3, 1));
	assert_int_equal(tokd_engine_look(&d->e, lane).made, 1);
	assert_true(d->e.made[INDEX].made == TOKD_LANE(1, TOKD_LANE_USE(lane)));
	makes(d, lane, 2, 6);
	/* an id */
	d->e.ids[INDEX * ROOM + 2] = TOKD_ENGINE_WORD(1u, 6u);
	store_made(d, lane, 3);
	ends(d, lane, 2, 2, TOKG_END_CUT);
	/* the count before an end */
	lane = post(d, 3);
	tokd_engine_store(&d->e.made[INDEX].made, TOKD_LANE(3, 1));
	tokd_engine_store(&d->e.made[INDEX].end, TOKD_LANE(TOKD_LANE_STOP, TOKD_LANE_USE(lane)));
	ends(d, lane, 3, 0, TOKG_END_CUT);
}

/* As if a late store took the place of each of the engine's, and then no more. */
DESK_TEST(an_overwritten_end_is_stored_again)
{
	struct tokd_lane_made lost[INDEX + 1] = {{0}};
	struct tokd_engine overwritten;
	struct tokd_lane_look l;
	uint64_t lane = post_granted(d, 1, 9, 0);

	makes(d, lane, 1, 5);
	overwritten = d->e;
	overwritten.made = lost;
	assert_true(tokd_engine_end(&overwritten, lane, TOKD_LANE_STOP));
	l = tokd_engine_look(&overwritten, lane);
	assert_int_equal(l.end, TOKD_LANE_OPEN); /* not to be forgotten */
	assert_int_equal(l.made, 1);
	assert_int_equal(l.granted, 1);
	assert_false(tokd_engine_put(&overwritten, lane, 6));
	assert_false(tokd_engine_end(&overwritten, lane, TOKD_LANE_CUT));
	(void)tokd_engine_look(&d->e, lane); /* this one is not overwritten */
	ends(d, lane, 1, 1, TOKG_END_STOP);
}

DESK_TEST(a_look_at_an_ended_lane_stores_nothing)
{
	const uint64_t next = TOKD_LANE(2, 2);
	uint64_t lane = post_granted(d, 1, 9, 0);

	assert_true(tokd_engine_put(&d->e, lane, 5));
	assert_true(tokd_engine_end(&d->e, lane, TOKD_LANE_STOP));
	ends(d, lane, 1, 1, TOKG_END_STOP);
	/* of the lane's next use, which another engine has */
	d->e.made[INDEX] = (struct tokd_lane_made){next, next};
	assert_int_equal(tokd_engine_look(&d->e, lane).end, TOKD_LANE_STOP);
	assert_true(d->e.made[INDEX].made == next);
	assert_true(d->e.made[INDEX].end == next);
}

DESK_TEST(a_restart_of_the_consumer_cuts_and_the_engine_goes_on)
{
	uint64_t lane = post(d, 1);

	bench_stop(&d->b, TOKG_STOP_NOW);
	bench_run(&d->b, 2);
	ends(d, lane, 1, 0, TOKG_END_CUT);
	lane = post_granted(d, 2, 1, TOKG_ASK_FINAL);
	assert_true(tokd_engine_put(&d->e, lane, 7));
	ends(d, lane, 2, 1, TOKG_END_LENGTH);
}

DESK_TEST(invalid_words_of_an_engine_end_the_lane)
{
	/* more than is granted */
	uint64_t lane = post_granted(d, 1, 2, 0);

	store_made(d, lane, 3);
	ends(d, lane, 1, 0, TOKG_END_CUT);
	/* fewer than before */
	lane = post_granted(d, 2, 2, 0);
	makes(d, lane, 2, 5);
	store_made(d, lane, 0);
	ends(d, lane, 2, 1, TOKG_END_CUT);
	/* an id beyond the table */
	lane = post_granted(d, 3, 2, 0);
	assert_true(tokd_engine_put(&d->e, lane, N_IDS));
	ends(d, lane, 3, 0, TOKG_END_CUT);
	/* an end that is not its own to give, and one that is none */
	lane = post(d, 4);
	assert_true(tokd_engine_end(&d->e, lane, TOKD_LANE_STALE));
	ends(d, lane, 4, 0, TOKG_END_CUT);
	lane = post(d, 5);
	assert_true(tokd_engine_end(&d->e, lane, 0xffffffff));
	ends(d, lane, 5, 0, TOKG_END_CUT);
	/* more at once than there is room for, as a producer grants that does not count */
	lane = post_granted(d, 6, 100, 0);
	for (uint32_t i = 0; i < ROOM; i++) /* ids that there are */
		d->e.ids[INDEX * ROOM + i] = TOKD_ENGINE_WORD(TOKD_LANE_USE(lane), 1u);
	store_made(d, lane, ROOM + 1);
	ends(d, lane, 6, 0, TOKG_END_CUT);
	/* all that it can reach, and lanes that there are not */
	memset(d->e.made, 0xa5, d->area.made_bytes);
	assert_false(tokd_engine_put(&d->e, TOKD_LANE(d->e.lanes, 1), 5));
	lane = post_granted(d, 7, 1, TOKG_ASK_FINAL);
	makes(d, lane, 7, 9);
	ends(d, lane, 7, 1, TOKG_END_LENGTH);
	/* one of more bits than an id has */
	lane = post_granted(d, 8, 2, 0);
	assert_true(tokd_engine_put(&d->e, lane, 1u << TOKD_ENGINE_ID_BITS | 5));
	ends(d, lane, 8, 0, TOKG_END_CUT);
}

DESK_TEST(one_call_puts_an_id_into_each_of_many_lanes)
{
	uint8_t taken[3];
	uint64_t lane[3];
	const uint32_t ids[3] = {5, 6, 7};

	lane[0] = lane[2] = post(d, 1);
	lane[1] = TOKD_LANE(INDEX, 0); /* of a use before */
	ask(d, 1, 2, 0);
	granted(d, lane[0], 2);
	assert_int_equal(tokd_engine_put_all(&d->e, lane, ids, 3, taken), 2);
	assert_int_equal(taken[0] + taken[2], 2);
	assert_int_equal(taken[1], 0);
	next_in_log(d, 1, 5);
	next_in_log(d, 1, 7);
}

TEST(an_engine_needs_lanes)
{
	struct bench b;
	struct tokg_error err = {{0}};

	bench_open(&b, NULL);
	b.config.external_engine = true;
	assert_null(tokg_device_cpu(&b.config, &err));
	assert_non_null(strstr(err.text, "an external engine needs lanes"));
	bench_close(&b);
}
