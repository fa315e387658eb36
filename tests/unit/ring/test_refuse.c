/* SPDX-License-Identifier: BSD-3-Clause */
/* Attach requests that are none. Each gets its reason, and leaves no trace. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>

#include <monotonic.h>
#include "fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

static void
refused(struct fixture *f, const void *request, size_t bytes, const char *why)
{
	uint64_t before = f->a.counts.refused;
	struct reader r = {.fd = connect_to(f)};
	char byte;

	assert_true(r.fd >= 0);
	assert_true(ask(f, &r, request, bytes));
	assert_int_equal(r.rep.magic, TOKD_ATTACH_MAGIC);
	assert_int_equal(r.rep.version, TOKD_RING_VERSION);
	assert_int_equal(r.rep.n_rings, 0);
	assert_int_equal(r.n_fds, 0);
	assert_non_null(strstr(r.rep.message, why));
	assert_int_equal(recv(r.fd, &byte, 1, 0), 0); /* closed */
	assert_int_equal(f->a.counts.refused, before + 1);
	assert_true(nobody_attached(f));
	close(r.fd);
}

FIXTURE_TEST(wrong_fields_are_named)
{
	struct tokd_attach_req req = good_request();

	req.magic = 0x12345678;
	refused(f, &req, sizeof(req), "magic 0x12345678");
	req = good_request();
	req.version = 2;
	refused(f, &req, sizeof(req), "version 2");
	req = good_request();
	req.mode = 0;
	refused(f, &req, sizeof(req), "mode 0");
	req = good_request();
	req.mode = 3;
	refused(f, &req, sizeof(req), "mode 3");
	req = good_request();
	req.mode = TOKD_MODE_TAP;
	req.reserved = 1;
	refused(f, &req, sizeof(req), "reserved 1");
	req = good_request();
	req.reserved = 9;
	refused(f, &req, sizeof(req), "reserved 9");
}

FIXTURE_TEST(wrong_lengths_are_named)
{
	static char large[60000];
	struct tokd_attach_req req = good_request();

	memcpy(large, &req, sizeof(req));
	refused(f, &req, sizeof(req) - 1, "15 bytes");
	refused(f, &req, 1, "1 bytes");
	refused(f, large, sizeof(req) + 1, "17 bytes");
	refused(f, large, sizeof(large), "60000 bytes");
}

FIXTURE_TEST(descriptors_sent_along_are_not_taken)
{
	struct tokd_attach_req req = good_request();
	int fd = connect_to(f), before, after;

	for (int i = 0; i < 5; i++)
		turn(f, true); /* accepted */
	before = dup(0);
	close(before);
	assert_int_equal(descriptors_send(fd, &req, sizeof(req), (int[]){0}, 1, 0), sizeof(req));
	close(fd);
	assert_true(turn_until(f, true, nobody_attached));
	for (int i = 0; i < 20; i++)
		turn(f, true);
	after = dup(0);
	close(after);
	/* All it had is closed: the lowest free number has not risen. */
	assert_true(after <= before);
}

FIXTURE_TEST(one_that_says_nothing_is_hung_up_on)
{
	struct reader r = {.fd = connect_to(f)};
	struct tokd_attach_rep rep;
	ssize_t n = -1;

	for (int i = 0; i < 10000 && n < 0; i++) {
		turn(f, true);
		usleep(500);
		n = recv(r.fd, &rep, sizeof(rep), MSG_DONTWAIT);
	}
	assert_int_equal(n, sizeof(rep));
	assert_non_null(strstr(rep.message, "no attach request"));
	close(r.fd);
}

FIXTURE_TEST(a_worker_that_is_silent_is_named)
{
	struct tokd_attach_req req = good_request();
	struct reader r = {.fd = connect_to(f)};
	struct tokd_attach_rep rep;
	ssize_t n = -1;

	assert_int_equal(send(r.fd, &req, sizeof(req), 0), sizeof(req));
	for (int i = 0; i < 10000 && n < 0; i++) {
		turn(f, false);
		tokd_ring_readers(f->ring[0]);
		tokd_ring_readers(f->ring[2]);
		usleep(500);
		n = recv(r.fd, &rep, sizeof(rep), MSG_DONTWAIT);
	}
	assert_int_equal(n, sizeof(rep));
	assert_int_equal(rep.n_rings, 0);
	assert_non_null(strstr(rep.message, "worker 1"));
	assert_false(nobody_attached(f)); /* its cursor stands until worker 1 has seen it go */
	assert_true(turn_until(f, true, nobody_attached));
	close(r.fd);
}

FIXTURE_TEST(one_that_leaves_while_it_joins_is_let_go_at_once)
{
	const struct tokd_attach_req req = good_request();
	const struct tokd_conn *c = &f->a.conn[0];

	for (int told = 0; told < 2; told++) {
		const int fd = connect_to(f);

		assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
		for (int i = 0; i < 3; i++)
			turn(f, false);
		assert_int_equal(c->state, TOKD_CONN_JOINING);
		if (told == 0)
			close(fd);
		else
			assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
		turn(f, false);
		assert_int_equal(c->state, TOKD_CONN_LEAVING);
		assert_true(turn_until(f, true, nobody_attached));
		if (told == 1)
			close(fd);
	}
	assert_int_equal(f->a.counts.detached, 0); /* it never was attached */
}

FIXTURE_TEST(a_crowd_of_silent_ones_keeps_no_reader_out)
{
	int fd[TOKD_CONNS_MAX + 4];
	struct reader r;

	for (int i = 0; i < TOKD_CONNS_MAX + 4; i++) {
		fd[i] = connect_to(f);
		assert_true(fd[i] >= 0);
		turn(f, true);
	}
	assert_int_equal(f->a.counts.refused, 4); /* at once */
	for (int i = 0; i < 1200; i++) {
		turn(f, true);
		usleep(1000);
	}
	assert_int_equal(f->a.counts.refused, TOKD_CONNS_MAX + 4);
	attach(f, &r);
	detach(&r);
	for (int i = 0; i < TOKD_CONNS_MAX + 4; i++)
		close(fd[i]);
}

static bool
not_told_any_more(struct fixture *f)
{
	for (uint32_t i = TOKD_CONNS_MAX; i < RTE_DIM(f->a.conn); i++) {
		if (f->a.conn[i].state != TOKD_CONN_FREE)
			return false;
	}
	return true;
}

/* A look of the control thread at which those of `held` have just come: none is silent for too
 * long. */
static void
turn_held(struct fixture *f)
{
	for (uint32_t i = 0; i < TOKD_CONNS_MAX; i++)
		f->a.conn[i].since_ms = monotonic_ms();
	turn(f, true);
}

/* More than can be told at once. Each comes, waits, asks at some time or not at all, and closes. */
FIXTURE_TEST(a_crowd_is_told_why_whenever_it_asks)
{
	enum { CROWD = 3 * TOKD_REFUSED_MAX / 2, WHILE = 10 };
	const struct tokd_attach_req req = good_request();
	int held[TOKD_CONNS_MAX], fd[CROWD];
	struct tokd_attach_rep rep;

	for (int i = 0; i < TOKD_CONNS_MAX; i++) {
		held[i] = connect_to(f);
		turn_held(f);
	}
	for (int i = 0; i < CROWD; i++) {
		fd[i] = connect_to(f);
		if (i % 3 == 0) /* before it is accepted */
			assert_int_equal(send(fd[i], &req, sizeof(req), MSG_NOSIGNAL), sizeof(req));
		for (int k = 0; k < WHILE; k++)
			turn_held(f);
		if (i % 3 == 1) /* when it has been told */
			assert_int_equal(send(fd[i], &req, sizeof(req), MSG_NOSIGNAL), sizeof(req));
		for (int k = 0; k < WHILE; k++)
			turn_held(f);
	}
	assert_in_range(f->a.counts.refused, TOKD_REFUSED_MAX, CROWD);
	for (int i = 0; i < CROWD; i++) {
		ssize_t n = -1;

		errno = EAGAIN;
		for (int k = 0; k < 10000 && n < 0 && errno == EAGAIN; k++) {
			turn_held(f);
			usleep(200);
			n = recv(fd[i], &rep, sizeof(rep), MSG_DONTWAIT);
		}
		assert_int_equal(n, sizeof(rep));
		assert_non_null(strstr(rep.message, "too many connections at once"));
		assert_int_equal(recv(fd[i], &rep, sizeof(rep), 0), 0);
		close(fd[i]);
	}
	assert_true(turn_until(f, true, not_told_any_more));
	for (int i = 0; i < TOKD_CONNS_MAX; i++)
		close(held[i]);
}

/* Descriptors run out for a moment: readers are taken again afterwards. */
FIXTURE_TEST(nobody_for_good_when_descriptors_run_out)
{
	struct rlimit limit, none;
	struct reader r;
	int fd = connect_to(f);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = (rlim_t)fd + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn(f, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(f->a.counts.attached, 0);
	assert_int_not_equal(f->a.accept_again_ms, 0);
	for (int i = 0; i < 300 && f->a.accept_again_ms != 0; i++) {
		turn(f, true);
		usleep(10000);
	}
	assert_int_equal(f->a.accept_again_ms, 0);
	attach(f, &r);
	detach(&r);
	close(fd);
}
