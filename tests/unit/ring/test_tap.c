/* SPDX-License-Identifier: BSD-3-Clause */
/* Taps: they see the rings, and no worker waits for them or knows of them. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"
#include "datapath/token_ring_write.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

static struct tokd_attach_req
tap_request(void)
{
	struct tokd_attach_req req = good_request();

	req.mode = TOKD_MODE_TAP;
	return req;
}

static void
tap(struct fixture *f, struct reader *r)
{
	const struct tokd_attach_req req = tap_request();

	memset(r, 0, sizeof(*r));
	r->fd = connect_to(f);
	assert_true(r->fd >= 0);
	assert_true(ask(f, r, &req, sizeof(req)));
}

static void
untap(struct reader *r)
{
	close(r->fd);
	for (int i = 0; i < r->n_fds; i++)
		close(r->fds[i]);
}

FIXTURE_TEST(gets_the_rings_and_no_cursor)
{
	const struct tokd_ring_hdr *hdr;
	struct reader r;

	publish(f->ring[1], 10);
	tap(f, &r);
	assert_string_equal(r.rep.message, "");
	assert_int_equal(r.rep.n_rings, N_RINGS);
	assert_int_equal(r.n_fds, N_RINGS);
	assert_int_equal(r.rep.instance, 42);
	assert_int_equal(r.rep.start[0], 0);
	assert_int_equal(r.rep.start[1], f->ring[1]->head);
	for (int w = 0; w < N_RINGS; w++) {
		assert_int_equal(f->ring[w]->n_active, 0);
		hdr = mmap(NULL, TOKD_RING_HDR_BYTES, PROT_READ, MAP_SHARED, r.fds[w], 0);
		assert_ptr_not_equal(hdr, MAP_FAILED);
		assert_int_equal(hdr->worker, w);
		munmap((void *)(uintptr_t)hdr, TOKD_RING_HDR_BYTES);
		assert_ptr_equal(mmap(NULL, TOKD_RING_HDR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
					 r.fds[w], 0),
			MAP_FAILED);
		assert_true(ftruncate(r.fds[w], 0) < 0);
	}
	untap(&r);
}

FIXTURE_TEST(is_answered_though_no_worker_runs)
{
	const struct tokd_attach_req req = tap_request();
	struct reader r = {.fd = connect_to(f)};
	struct tokd_attach_rep rep;

	assert_int_equal(send(r.fd, &req, sizeof(req), 0), sizeof(req));
	for (int i = 0; i < 5; i++)
		turn(f, false);
	assert_int_equal(recv(r.fd, &rep, sizeof(rep), MSG_DONTWAIT), sizeof(rep));
	assert_int_equal(rep.n_rings, N_RINGS);
	close(r.fd);
}

FIXTURE_TEST(is_not_waited_for)
{
	struct reader r;

	tap(f, &r);
	for (uint32_t i = 0; i < 4 * RING_BYTES / 1024; i++)
		publish(f->ring[1], (1024 - sizeof(struct tokd_rec)) / 4);
	assert_true(f->ring[1]->hdr->tail > 0); /* it went over what the tap has not read */
	for (int i = 0; i < 2 * READER_TIMEOUT_MS; i++) {
		turn(f, true);
		usleep(1000);
	}
	assert_int_equal(f->a.counts.dropped, 0);
	untap(&r);
}

FIXTURE_TEST(is_listed_and_counted_until_it_closes)
{
	struct tokd_reader_info info[TOKD_SLOTS_MAX];
	struct tokd_attach_counts counts;
	struct reader t, r;

	tap(f, &t);
	attach(f, &r);
	assert_int_equal(tokd_attach_list(&f->a, info, TOKD_SLOTS_MAX, &counts), 2);
	assert_int_equal(info[0].state, TOKD_CONN_READING);
	assert_int_equal(info[1].state, TOKD_CONN_TAPPING);
	assert_int_equal(info[1].slot, TOKD_READERS_MAX);
	assert_int_equal(info[1].pid, getpid());
	assert_int_equal(info[1].lag_bytes, 0);
	assert_int_equal(counts.attached, 1);
	assert_int_equal(counts.taps_attached, 1);
	assert_int_equal(tokd_attach_list(&f->a, info, 1, &counts), 1); /* no more than room for */

	untap(&t);
	detach(&r);
	assert_true(turn_until(f, true, nobody_attached));
	assert_int_equal(f->a.counts.taps_detached, 1);
	assert_int_equal(f->a.counts.detached, 1);
}

FIXTURE_TEST(that_speaks_is_detached_and_told)
{
	struct tokd_attach_rep rep;
	struct reader r;

	tap(f, &r);
	assert_int_equal(send(r.fd, "hello", 5, 0), 5);
	assert_true(turn_until(f, true, nobody_attached));
	assert_int_equal(recv(r.fd, &rep, sizeof(rep), 0), sizeof(rep));
	assert_non_null(strstr(rep.message, "after its request"));
	assert_int_equal(recv(r.fd, &rep, sizeof(rep), 0), 0);
	untap(&r);
}

FIXTURE_TEST(takes_no_place_of_a_reader_and_has_a_limit_of_its_own)
{
	struct reader t[TOKD_TAPS_MAX], r[TOKD_READERS_MAX], late;

	for (int i = 0; i < TOKD_TAPS_MAX; i++)
		tap(f, &t[i]);
	tap(f, &late);
	assert_int_equal(late.rep.n_rings, 0);
	assert_int_equal(late.n_fds, 0);
	assert_non_null(strstr(late.rep.message, "16 taps are attached"));
	close(late.fd);
	for (int i = 0; i < TOKD_READERS_MAX; i++)
		attach(f, &r[i]);
	untap(&t[3]);
	for (int i = 0; i < 20; i++)
		turn(f, true);
	tap(f, &t[3]); /* the place is free again */
	assert_int_equal(t[3].rep.n_rings, N_RINGS);
	for (int i = 0; i < TOKD_TAPS_MAX; i++)
		untap(&t[i]);
	for (int i = 0; i < TOKD_READERS_MAX; i++)
		detach(&r[i]);
	assert_true(turn_until(f, true, nobody_attached));
}
