/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader library and the real writer: rings, attach socket and control thread in this process.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include <tokd/reader.h>

#include <monotonic.h>
#include "fixture.h"
#include "datapath/token_ring_write.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup_served, teardown_served, struct fixture *f)

#define ATTACH_MS 3000

/* One thread is control thread and workers; who publishes takes its place for the moment. */
static pthread_mutex_t workers = PTHREAD_MUTEX_INITIALIZER;
static pthread_t server;
static _Atomic bool server_stops;

static void *
serve(void *arg)
{
	while (!atomic_load(&server_stops)) {
		pthread_mutex_lock(&workers);
		turn(arg, true);
		pthread_mutex_unlock(&workers);
		usleep(100);
	}
	return NULL;
}

static int
setup_served(void **state)
{
	atomic_store(&server_stops, false);
	return setup(state) != 0 ? -1 : pthread_create(&server, NULL, serve, *state);
}

static void
stop_server(void)
{
	if (!atomic_exchange(&server_stops, true))
		pthread_join(server, NULL);
}

static int
teardown_served(void **state)
{
	stop_server();
	return teardown(state);
}

/* Publish `count` ids, or bytes of text: first, first + 1 ...; false: no room. */
static bool
put_kind(struct tokd_ring *r, enum tokd_rec_kind kind, uint32_t first, uint32_t count,
	uint32_t flags)
{
	bool room;

	pthread_mutex_lock(&workers);
	uint64_t pos = tokd_ring_reserve(r, tokd_rec_bytes(count));
	room = pos != TOKD_RING_FULL;
	if (room) {
		struct tokd_rec *rec = tokd_ring_at(r, pos);

		*rec = (struct tokd_rec){.count = count,
			.first = first,
			.flags = (uint16_t)flags,
			.stream_id = UINT64_MAX,
			.serial = 5,
			.epoch = 6,
			.vocab = 0xabcd,
			.t_rx = r->hdr->tsc_hz * 3,
			.text_end = 9};
		for (uint32_t i = 0; i < count; i++)
			tokd_rec_ids(rec)[i] = first + i;
		tokd_ring_publish(r, pos, kind);
	}
	pthread_mutex_unlock(&workers);
	return room;
}

static bool
put(struct tokd_ring *r, uint32_t first, uint32_t count, uint32_t flags)
{
	return put_kind(r, TOKD_REC_TOKENS, first, count, flags);
}

static struct tokr *
attached(struct fixture *f, int mode)
{
	struct tokr_error e;
	struct tokr *r = tokr_attach(f->path, mode, ATTACH_MS, &e);

	if (r == NULL)
		fail_msg("%s", e.text);
	return r;
}

static void
assert_ids(const struct tokr_record *rec)
{
	for (uint32_t i = 0; i < rec->count; i++)
		assert_int_equal(rec->ids[i], rec->first + i);
}

static uint64_t
cursor_of(struct fixture *f, uint32_t w)
{
	return __atomic_load_n(f->ring[w]->reader[0].cursor, __ATOMIC_ACQUIRE);
}

FIXTURE_TEST(gives_records_as_they_were_published)
{
	struct tokr_record rec;
	struct tokr_ring info;
	struct tokr *r;

	assert_true(put(f->ring[1], 0, 5, 0)); /* before it attached: not its own */
	r = attached(f, TOKR_READER);
	assert_int_equal(tokr_rings(r), N_RINGS);
	assert_int_equal(tokr_instance(r), 42);
	assert_int_equal(tokr_next(r, &rec, 0), 0);
	assert_true(put(f->ring[1], 100, 3, TOKD_REC_FIRST | TOKD_REC_LAST));
	assert_int_equal(tokr_next(r, &rec, 0), 1);
	assert_int_equal(rec.count, 3);
	assert_int_equal(rec.first, 100);
	assert_int_equal(rec.flags, TOKR_FIRST | TOKR_LAST);
	assert_int_equal(rec.stream_id, UINT64_MAX);
	assert_int_equal(rec.serial, 5);
	assert_int_equal(rec.epoch, 6);
	assert_int_equal(rec.vocab, 0xabcd);
	assert_int_equal(rec.text_end, 9);
	assert_int_equal(rec.t_rx_ns, 3000000000u);
	assert_true(rec.t_publish_ns > 0);
	assert_int_equal(rec.worker, 1);
	assert_int_equal(rec.instance, 42);
	assert_int_equal(rec.lost_bytes, 0);
	assert_ids(&rec);
	assert_int_equal(tokr_next(r, &rec, 0), 0);

	assert_int_equal(tokr_ring_info(r, 1, &info), 0);
	assert_int_equal(info.worker, 1);
	assert_int_equal(info.data_bytes, RING_BYTES);
	assert_int_equal(info.vocab, 0xabcd);
	assert_int_equal(info.records, 1);
	assert_int_equal(info.ids, 3);
	assert_int_equal(info.held_bytes, 128);
	assert_int_equal(tokr_ring_info(r, N_RINGS, &info), -1);
	tokr_detach(r);
	tokr_detach(NULL);
}

FIXTURE_TEST(takes_the_rings_in_turn)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record rec;

	for (uint32_t i = 0; i < 4; i++)
		for (int w = 0; w < N_RINGS; w++)
			put(f->ring[w], i, 1, 0);
	for (uint32_t i = 0; i < 12; i++) {
		assert_int_equal(tokr_next(r, &rec, 0), 1);
		assert_int_equal(rec.worker, i % 3);
		assert_int_equal(rec.first, i / 3);
		assert_int_equal(tokr_release(r, &rec), 0);
	}
	tokr_detach(r);
}

FIXTURE_TEST(gives_space_back_up_to_the_oldest_it_holds)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record rec[4];

	for (uint32_t i = 0; i < 4; i++) {
		put(f->ring[0], i, 1, 0);
		assert_int_equal(tokr_next(r, &rec[i], 0), 1);
	}
	assert_int_equal(tokr_release(r, &rec[2]), 0);
	assert_int_equal(tokr_release(r, &rec[1]), 0);
	assert_int_equal(cursor_of(f, 0), 0);
	assert_int_equal(tokr_release(r, &rec[0]), 0);
	assert_int_equal(cursor_of(f, 0), rec[3].position);
	assert_int_equal(tokr_release(r, &rec[0]), 0); /* a second time: nothing */
	assert_int_equal(tokr_release(r, &rec[2]), 0);
	assert_int_equal(cursor_of(f, 0), rec[3].position);
	assert_ids(&rec[3]);
	assert_int_equal(tokr_release(r, &rec[3]), 0);
	assert_int_equal(cursor_of(f, 0), f->ring[0]->head);
	tokr_detach(r);
}

FIXTURE_TEST(skips_decoded_text_and_gives_its_space_back)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record rec;

	f->a.reader_timeout_ms = 600000; /* a full ring is waited for */
	while (put_kind(f->ring[0], TOKD_REC_TEXT, 0, 5, 0))
		continue;
	assert_int_equal(tokr_next(r, &rec, 0), 0);
	assert_int_equal(cursor_of(f, 0), f->ring[0]->head);
	put_kind(f->ring[0], TOKD_REC_TEXT, 0, 5, 0);
	assert_true(put(f->ring[0], 7, 3, 0));
	assert_int_equal(tokr_next(r, &rec, 0), 1);
	assert_int_equal(rec.first, 7);
	tokr_detach(r);
}

FIXTURE_TEST(holds_a_whole_ring_of_small_records_and_frees_it)
{
	enum { N = RING_BYTES / 64 };
	struct tokr *r = attached(f, TOKR_READER);
	static struct tokr_record rec[N];

	f->a.reader_timeout_ms = 600000; /* as above */
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < N; i++)
			assert_true(put(f->ring[0], i, 0, 0));
		assert_false(put(f->ring[0], 0, 0, 0)); /* full */
		for (uint32_t i = 0; i < N; i++) {
			assert_int_equal(tokr_next(r, &rec[i], 0), 1);
			assert_int_equal(rec[i].first, i);
		}
		/* Every second first, backwards; then the rest. */
		for (uint32_t i = N; i > 1; i -= 2)
			assert_int_equal(tokr_release(r, &rec[i - 1]), 0);
		assert_false(put(f->ring[0], 0, 0, 0));
		for (uint32_t i = 0; i < N; i += 2)
			assert_int_equal(tokr_release(r, &rec[i]), 0);
	}
	tokr_detach(r);
}

FIXTURE_TEST(passes_padding_many_times_round)
{
	struct tokr *r = attached(f, TOKR_READER), *tap = attached(f, TOKR_TAP);
	struct tokr_record rec;

	srand(1);
	for (uint32_t i = 0; i < 3000; i++) {
		uint32_t count = (uint32_t)rand() % 2000;

		assert_true(put(f->ring[2], i, count, 0));
		assert_int_equal(tokr_next(r, &rec, 0), 1);
		assert_int_equal(rec.first, i);
		assert_int_equal(rec.count, count);
		assert_ids(&rec);
		assert_int_equal(tokr_release(r, &rec), 0);
		assert_int_equal(tokr_next(tap, &rec, 0), 1);
		assert_int_equal(rec.first, i);
		assert_int_equal(rec.lost_bytes, 0);
		assert_ids(&rec);
		assert_int_equal(tokr_release(tap, &rec), 0);
	}
	assert_true(f->ring[2]->head > 100 * RING_BYTES);
	assert_int_equal(cursor_of(f, 2), f->ring[2]->head);
	tokr_detach(r);
	tokr_detach(tap);
}

FIXTURE_TEST(as_a_tap_counts_what_it_missed)
{
	struct tokr *tap = attached(f, TOKR_TAP);
	struct tokr_record rec;
	struct tokr_ring info;
	uint64_t seen = 0, told = 0, end = 0;

	for (int burst = 0; burst < 20; burst++) {
		/* Several times the ring, while the tap sleeps; then it takes what still stands. */
		for (uint32_t i = 0; i < 100u * (1 + burst % 3); i++)
			assert_true(put(f->ring[1], i, 240, 0)); /* 1024 bytes: no padding */
		while (tokr_next(tap, &rec, 0) == 1) {
			assert_ids(&rec);
			assert_int_equal(rec.position, end + rec.lost_bytes); /* no gap untold */
			end = rec.position + 1024;
			assert_int_equal(tokr_release(tap, &rec), 0);
			seen += 1024;
			told += rec.lost_bytes;
		}
	}
	assert_int_equal(tokr_ring_info(tap, 1, &info), 0);
	assert_int_equal(seen + info.lost_bytes, f->ring[1]->head);
	assert_int_equal(told, info.lost_bytes);
	assert_int_equal(info.records, seen / 1024);
	assert_int_equal(info.overruns, 20);
	assert_int_equal(info.broken_records, 0);
	assert_int_equal(info.unread_bytes, 0);
	assert_true(info.lost_bytes > 0);
	tokr_detach(tap);
}

FIXTURE_TEST(as_a_tap_says_that_what_it_used_was_overwritten)
{
	struct tokr *tap = attached(f, TOKR_TAP);
	struct tokr_record rec, copy;
	struct tokr_ring info;

	assert_true(put(f->ring[1], 7, 239, 0));
	assert_int_equal(tokr_next(tap, &rec, 0), 1);
	copy = rec;
	assert_int_equal(tokr_check(tap, &copy), 0);
	for (uint32_t i = 0; i < RING_BYTES / 1024; i++)
		assert_true(put(f->ring[1], 1000 * i, 240, 0));
	assert_int_not_equal(rec.ids[0], 7);
	assert_int_equal(tokr_check(tap, &copy), TOKR_OVERRUN);
	assert_int_equal(tokr_release(tap, &rec), TOKR_OVERRUN);
	assert_int_equal(tokr_ring_info(tap, 1, &info), 0);
	assert_int_equal(info.broken_records, 1);
	assert_int_equal(info.lost_bytes, 1024);
	tokr_detach(tap);
}

/* Between two turns: a drop and the space that it lets go of are seen together. */
static uint64_t
dropped(struct fixture *f)
{
	uint64_t n;

	pthread_mutex_lock(&workers);
	n = f->a.counts.dropped;
	pthread_mutex_unlock(&workers);
	return n;
}

FIXTURE_TEST(that_stalls_is_told_why_it_was_dropped)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record first, rec;
	struct tokr_ring info;
	int rc;

	assert_true(put(f->ring[1], 0, 240, 0));
	assert_int_equal(tokr_next(r, &first, 0), 1);
	for (int i = 0; i < 4000 && dropped(f) == 0; i++) {
		put(f->ring[1], 0, 240, 0);
		usleep(1000);
	}
	assert_int_equal(dropped(f), 1);
	/* Its space is let go of at once: what came over it may be nothing yet, but nobody says so.
	 */
	assert_int_equal(tokr_ring_info(r, 1, &info), 0);
	assert_int_equal(info.overwritten_bytes, info.held_bytes);
	assert_int_equal(tokr_release(r, &first), TOKR_OVERRUN);
	do
		rc = tokr_next(r, &rec, 0);
	while (rc == 1);
	assert_int_equal(rc, TOKR_DROPPED);
	assert_non_null(strstr(tokr_last_error(r)->text, "token ring of worker 1 full"));
	assert_int_equal(tokr_next(r, &rec, 0), TOKR_DROPPED);
	assert_int_equal(tokr_check(r, &first), TOKR_OVERRUN);
	for (int i = 0; i < 100; i++) /* nobody waits for it now */
		assert_true(put(f->ring[1], 0, 240, 0));
	tokr_detach(r);
}

FIXTURE_TEST(sees_all_that_was_published_before_the_end)
{
	struct tokr *r = attached(f, TOKR_READER), *tap = attached(f, TOKR_TAP);
	struct tokr_record rec;
	struct tokr_error e;

	put(f->ring[0], 1, 3, 0);
	put(f->ring[2], 2, 3, TOKD_REC_ABORT);
	stop_server();
	tokd_attach_close(&f->a);
	for (struct tokr *one = r; one != NULL; one = one == r ? tap : NULL) {
		assert_int_equal(tokr_next(one, &rec, -1), 1);
		assert_int_equal(tokr_next(one, &rec, 1000), 1);
		assert_int_equal(rec.flags, TOKR_ABORT);
		assert_int_equal(tokr_next(one, &rec, -1), TOKR_GONE);
		assert_int_equal(tokr_next(one, &rec, 0), TOKR_GONE);
		assert_ids(&rec); /* the memory is there as long as somebody maps it */
	}
	assert_null(tokr_attach(f->path, TOKR_READER, 100, &e));
	assert_int_equal(e.code, TOKR_SYSTEM);
	assert_int_equal(e.sys_errno, ENOENT);
	tokr_detach(r);
	tokr_detach(tap);
	assert_int_equal(
		tokd_attach_open(&f->a, f->path, 0600, (gid_t)-1, f->ring, N_RINGS, 42, 100), 0);
}

FIXTURE_TEST(that_has_parted_keeps_what_it_holds_and_holds_up_nobody)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record rec, none;

	put(f->ring[1], 7, 240, 0);
	assert_int_equal(tokr_next(r, &rec, -1), 1);
	tokr_part(r);
	assert_int_equal(tokr_next(r, &none, -1), TOKR_GONE);
	assert_int_equal(tokr_check(r, &rec), 0);
	assert_ids(&rec);
	while (tokr_check(r, &rec) == 0) /* the ring is filled again and again */
		(void)put(f->ring[1], 0, 240, 0);
	assert_int_equal(tokr_release(r, &rec), TOKR_OVERRUN);
	tokr_detach(r);
}

FIXTURE_TEST(waits_as_long_as_asked)
{
	struct tokr *r = attached(f, TOKR_READER);
	struct tokr_record rec;
	const uint64_t begun = monotonic_ns();

	assert_int_equal(tokr_next(r, &rec, 50), 0);
	assert_true(monotonic_ns() - begun >= 50000000);
	tokr_detach(r);
}

FIXTURE_TEST(is_refused_in_words)
{
	struct tokr *tap[TOKD_TAPS_MAX];
	struct tokr_error e;

	for (int i = 0; i < TOKD_TAPS_MAX; i++)
		tap[i] = attached(f, TOKR_TAP);
	assert_null(tokr_attach(f->path, TOKR_TAP, ATTACH_MS, &e));
	assert_int_equal(e.code, TOKR_REFUSED);
	assert_non_null(strstr(e.text, "16 taps are attached, the limit"));
	for (int i = 0; i < TOKD_TAPS_MAX; i++)
		tokr_detach(tap[i]);
	assert_null(tokr_attach(f->path, 3, ATTACH_MS, NULL));
}

FIXTURE_TEST(killed_while_it_holds_a_view_frees_the_ring)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	f->a.reader_timeout_ms = 600000; /* not by the stall limit */
	pthread_mutex_lock(&workers);	 /* no lock in the child that nobody would unlock */
	pid = fork();
	pthread_mutex_unlock(&workers);
	if (pid == 0) {
		struct tokr *r = tokr_attach(f->path, TOKR_READER, ATTACH_MS, NULL);
		struct tokr_record rec;

		if (r == NULL || write(ready[1], "a", 1) != 1 || tokr_next(r, &rec, -1) != 1 ||
			write(ready[1], "h", 1) != 1)
			_exit(1);
		pause(); /* holds its record */
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	while (put(f->ring[0], 0, 240, 0))
		;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	usleep(20000);
	assert_false(put(f->ring[0], 0, 240, 0));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 3000 && !put(f->ring[0], 0, 240, 0); i++)
		usleep(1000);
	assert_true(put(f->ring[0], 0, 240, 0));
	assert_int_equal(f->a.counts.detached, 1);
	assert_int_equal(f->a.counts.dropped, 0);
	close(ready[0]);
	close(ready[1]);
}

struct pace {
	struct fixture *f;
	int mode;
	unsigned int every, pause_us; /* sleeps so long after so many records */
	bool attached_ok;
	uint64_t records, broken, lost_bytes, out_of_order;
	uint32_t next;
	_Atomic bool attached;
};

/* Read ring 1 to the record that says LAST, checking each id twice: at once, and by release. */
static void *
read_at_pace(void *arg)
{
	struct pace *p = arg;
	struct tokr *r = tokr_attach(p->f->path, p->mode, ATTACH_MS, NULL);
	struct tokr_record rec = {0};
	struct tokr_ring info;

	p->attached_ok = r != NULL;
	atomic_store(&p->attached, true);
	while (r != NULL && (rec.flags & TOKR_LAST) == 0 && tokr_next(r, &rec, 5000) == 1) {
		bool right = true;

		for (uint32_t i = 0; i < rec.count; i++)
			right &= rec.ids[i] == rec.first + i;
		if (rec.lost_bytes == 0 && rec.first != p->next)
			p->out_of_order++;
		p->next = rec.first + rec.count;
		if (++p->records % p->every == 0)
			usleep(p->pause_us);
		if (tokr_release(r, &rec) == TOKR_OVERRUN)
			p->broken++;
		else if (!right)
			p->out_of_order++; /* wrong, and nobody said so */
	}
	if (r != NULL && tokr_ring_info(r, 1, &info) == 0)
		p->lost_bytes = info.lost_bytes;
	tokr_detach(r);
	return NULL;
}

FIXTURE_TEST(reads_at_its_own_speed_among_others)
{
	struct pace p[] = {
		{.f = f, .mode = TOKR_READER, .every = 1u << 31},
		{.f = f, .mode = TOKR_READER, .every = 64, .pause_us = 100},
		{.f = f, .mode = TOKR_READER, .every = 500, .pause_us = 20000},
		{.f = f, .mode = TOKR_TAP, .every = 1u << 31},
		{.f = f, .mode = TOKR_TAP, .every = 3, .pause_us = 3000},
	};
	pthread_t thread[RTE_DIM(p)];
	uint32_t n = 20000, first = 0;

	f->a.reader_timeout_ms = 10000;
	for (size_t i = 0; i < RTE_DIM(p); i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, read_at_pace, &p[i]), 0);
		while (!atomic_load(&p[i].attached))
			usleep(100);
		assert_true(p[i].attached_ok);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = i % 97, flags = i == n - 1 ? TOKD_REC_LAST : 0;

		while (!put(f->ring[1], first, count, flags))
			usleep(50);
		first += count;
	}
	for (size_t i = 0; i < RTE_DIM(p); i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(p[i].out_of_order, 0);
		assert_int_equal(p[i].next, first); /* all saw the end */
		if (p[i].mode == TOKR_READER) {
			assert_int_equal(p[i].records, n);
			assert_int_equal(p[i].lost_bytes + p[i].broken, 0);
		} else {
			assert_true(p[i].records == n || p[i].lost_bytes > 0);
		}
	}
	assert_true(p[4].lost_bytes > 0); /* too slow: it must have lost some */
}
