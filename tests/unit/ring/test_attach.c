/* SPDX-License-Identifier: BSD-3-Clause */
/* Readers that come and go. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "datapath/token_ring_write.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

FIXTURE_TEST(gets_rings_and_starts_at_their_heads)
{
	struct reader r;

	publish(f->ring[1], 10);
	publish(f->ring[2], 100);
	attach(f, &r);
	assert_int_equal(r.rep.instance, 42);
	assert_int_equal(r.rep.start[0], 0);
	assert_int_equal(r.rep.start[1], f->ring[1]->head);
	assert_int_equal(r.rep.start[2], f->ring[2]->head);
	for (int w = 0; w < N_RINGS; w++) {
		assert_int_equal(r.hdr[w]->worker, w);
		assert_int_equal(r.hdr[w]->instance, 42);
		assert_int_equal(r.cursor[w * TOKD_CURSOR_STRIDE / 8], r.rep.start[w]);
		assert_int_equal(f->ring[w]->n_active, 1);
	}
	publish(f->ring[1], 3);
	assert_int_equal(r.hdr[1]->head, f->ring[1]->head);
	detach(&r);
}

FIXTURE_TEST(has_a_cursor_nobody_can_resize)
{
	struct reader r;

	attach(f, &r);
	assert_int_equal(fcntl(r.fds[0], F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	assert_true(ftruncate(r.fds[0], 0) < 0);
	assert_true(ftruncate(r.fds[0], 1 << 20) < 0);
	/* A hole reads as 0, which the worker clamps; it is not a missing page. */
	fallocate(r.fds[0], FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, TOKD_CURSOR_BYTES);
	turn(f, true);
	detach(&r);
}

FIXTURE_TEST(is_unmapped_only_when_all_workers_let_go)
{
	struct tokd_conn *c;
	struct reader r;

	attach(f, &r);
	c = f->a.slot[0];
	detach(&r);
	for (int i = 0; i < 20; i++)
		turn(f, false);
	assert_int_equal(c->state, TOKD_CONN_LEAVING);
	assert_non_null(c->cursor);

	tokd_ring_readers(f->ring[0]);
	tokd_ring_readers(f->ring[1]);
	turn(f, false);
	assert_non_null(c->cursor); /* one worker may still look */
	tokd_ring_readers(f->ring[2]);
	turn(f, false);
	assert_null(c->cursor);
	assert_int_equal(c->state, TOKD_CONN_FREE);
	assert_true(nobody_attached(f));
	assert_int_equal(f->a.counts.detached, 1);
	assert_int_equal(f->ring[0]->n_active, 0);
}

FIXTURE_TEST(that_dies_is_detached)
{
	struct reader r;
	pid_t pid;

	attach(f, &r);
	pid = fork();
	if (pid == 0) {
		pause(); /* holds a copy of the socket */
		_exit(0);
	}
	close(r.fd);
	r.fd = -1;
	for (int i = 0; i < 20; i++)
		turn(f, true);
	assert_false(nobody_attached(f));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(turn_until(f, true, nobody_attached));
	detach(&r);
}

FIXTURE_TEST(speaks_after_its_request_and_is_detached)
{
	struct reader r;

	attach(f, &r);
	assert_int_equal(send(r.fd, "hello", 5, 0), 5);
	assert_true(turn_until(f, true, nobody_attached));
	detach(&r);
}

FIXTURE_TEST(many_come_up_to_the_limit)
{
	const struct tokd_attach_req req = good_request();
	struct reader r[TOKD_READERS_MAX], late = {0};

	for (int i = 0; i < TOKD_READERS_MAX; i++)
		attach(f, &r[i]);
	assert_int_equal(f->ring[0]->n_active, TOKD_READERS_MAX);

	late.fd = connect_to(f);
	assert_true(ask(f, &late, &req, sizeof(req)));
	assert_int_equal(late.rep.n_rings, 0);
	assert_int_equal(late.n_fds, 0);
	assert_non_null(strstr(late.rep.message, "16"));
	close(late.fd);

	detach(&r[7]);
	for (int i = 0; i < 20; i++)
		turn(f, true);
	attach(f, &r[7]); /* the place is free again */
	for (int i = 0; i < TOKD_READERS_MAX; i++)
		detach(&r[i]);
	assert_true(turn_until(f, true, nobody_attached));
}

static void *
workers(void *arg)
{
	struct fixture *f = arg;

	while (!atomic_load(&f->workers_stop)) {
		for (uint32_t w = 0; w < N_RINGS; w++) {
			tokd_ring_readers(f->ring[w]);
			/* A reader nobody waits for is one this loop runs into. */
			if (tokd_ring_reserve(f->ring[w], 4096) != TOKD_RING_FULL)
				publish(f->ring[w], 16);
		}
	}
	return NULL;
}

/* Under ThreadSanitizer this is the proof of the handshake; without, of no crash. */
FIXTURE_TEST(come_and_go_while_workers_publish)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, workers, f), 0);
	for (int i = 0; i < 200; i++) {
		const struct tokd_attach_req req = good_request();
		struct reader r = {.fd = connect_to(f)};

		assert_int_equal(send(r.fd, &req, sizeof(req), 0), sizeof(req));
		for (int k = rand() % 20; k > 0; k--)
			turn(f, false);
		close(r.fd); /* at any point of the handshake */
		for (int k = rand() % 20; k > 0; k--)
			turn(f, false);
	}
	assert_true(turn_until(f, false, nobody_attached));
	atomic_store(&f->workers_stop, true);
	pthread_join(thread, NULL);
	for (int w = 0; w < N_RINGS; w++) {
		tokd_ring_readers(f->ring[w]);
		assert_int_equal(f->ring[w]->n_active, 0);
	}
}
