/* SPDX-License-Identifier: BSD-3-Clause */
/* Subscribers: when one is dropped, and what happens without free descriptors. */

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "test.h"
#include "unix_socket.h"
#include "tokd-gpu/subscribers.h"
#include "tokd-gpu/log.h"
#include "producers_fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, begin, end, struct fixture *f)

#define TIMEOUT_MS 1000
#define MS 1000000ull
#define PAGE 4096
#define HELD 14 /* of the 16 that there is room for: more than half, so producers wait */

struct one {
	int fd;
	_Atomic uint64_t *cursor;
	uint64_t passed;
};

static struct tokg_subscribers subscribers;
static char path[64];
static uint64_t posted;

static int
begin(void **state)
{
	struct fixture *f;
	struct tokg_error err;

	assert_int_equal(setup(state), 0);
	f = *state;
	f->now = monotonic_ns();
	posted = 0;
	granted(f, 0, 1);
	snprintf(path, sizeof(path), "/tmp/tokg-subscribers-%d", getpid());
	f->fake.device.outputs_fd = memfd_create("outputs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!tokg_subscribers_open(
		    &subscribers, &f->delivery, &f->fake.device, path, 0600, TIMEOUT_MS, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int
end(void **state)
{
	struct fixture *f = *state;

	tokg_subscribers_close(&subscribers);
	close(f->fake.device.outputs_fd);
	f->fake.device.outputs_fd = -1;
	return teardown(state);
}

static int
knock(void)
{
	const struct tokg_subscribe_req req = {
		.magic = TOKG_SUBSCRIBE_MAGIC, .version = TOKG_EMB_VERSION};
	const int fd = unix_connect(path, SOCK_SEQPACKET);

	assert_int_equal(send(fd, &req, sizeof(req), 0), sizeof(req));
	return fd;
}

/* The cursor is the first descriptor of the answer. */
static struct one
attached(const struct fixture *f)
{
	struct one o = {.fd = knock()};
	struct tokg_subscribe_rep rep;
	int fds[DESCRIPTORS_MAX], n;

	tokg_subscribers_poll(&subscribers, f->now); /* accepted */
	tokg_subscribers_poll(&subscribers, f->now);
	assert_int_equal(descriptors_receive(o.fd, &rep, sizeof(rep), fds, &n, 0), sizeof(rep));
	assert_int_equal(rep.outputs, TOKG_OUTPUTS_MEMFD);
	assert_int_equal(n, 3);
	o.cursor = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_ptr_not_equal(o.cursor, MAP_FAILED);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	o.passed = rep.start;
	return o;
}

static void
leave(struct one *o)
{
	munmap((void *)o->cursor, PAGE);
	close(o->fd);
}

static void
move_on(struct one *o)
{
	atomic_store_explicit(o->cursor, ++o->passed, memory_order_release);
}

/* One more posting, embedded and handed out at the time of the test. */
static void
post(struct fixture *f)
{
	const uint32_t slot = posted % FAKE_SLOTS;
	const uint64_t ticket = posted / FAKE_SLOTS + 1;
	struct tokg_out_entry e = entry(slot, ticket);
	const uint64_t head = f->delivery.head;

	e.out_off = PAGE * posted++;
	fake_tell(&f->fake, &e);
	fake_done(&f->fake, 0, slot, ticket, TOKG_OK);
	assert_true(tokg_delivery_poll(&f->delivery) > 0);
	assert_int_equal(f->delivery.head, head + 1);
	f->delivery.entry[head & (f->delivery.ring->entries - 1)].t_ready = f->now;
}

/* As tokd-gpu does, and once more in the middle. */
static void
look(struct fixture *f)
{
	tokg_subscribers_poll(&subscribers, f->now);
	tokg_delivery_passed(&f->delivery, tokg_subscribers_passed(&subscribers));
	tokg_subscribers_poll(&subscribers, f->now);
}

/* Producers wait, from now on. */
static void
fill(struct fixture *f)
{
	for (int i = 0; i < HELD; i++)
		post(f);
	look(f);
	assert_true(tokg_postings_full(&f->producers.producer[0].postings));
}

/* In each step the subscriber passes an embedding, and another is posted. Returns the steps until
 * it is dropped, at most `most`. */
static uint32_t
steps_of(struct fixture *f, struct one *o, uint64_t step_ns, uint32_t most)
{
	uint32_t n = 0;

	fill(f);
	for (; n < most && subscribers.counts.dropped == 0; n++) {
		f->now += step_ns;
		move_on(o);
		look(f);
		if (subscribers.counts.dropped == 0)
			post(f);
	}
	return n;
}

FIXTURE_TEST(a_subscriber_that_blocks_producers_and_stalls_is_dropped)
{
	struct one o = attached(f);

	fill(f);
	f->now += TIMEOUT_MS * MS;
	look(f);
	assert_int_equal(subscribers.counts.dropped, 0);
	f->now += 1;
	look(f);
	assert_int_equal(subscribers.counts.dropped, 1);
	tokg_delivery_passed(&f->delivery, tokg_subscribers_passed(&subscribers));
	assert_int_equal(released(f, 0), HELD);
	leave(&o);
}

FIXTURE_TEST(a_subscriber_that_keeps_blocking_is_dropped_though_it_progresses)
{
	struct one o = attached(f);
	struct tokg_subscribe_rep rep;

	assert_in_range(steps_of(f, &o, TIMEOUT_MS * MS - 1, 100), 11, HELD);
	assert_int_equal(recv(o.fd, &rep, sizeof(rep), 0), sizeof(rep));
	assert_string_equal(rep.message,
		"dropped: it blocked producers and kept one embedding for more than 10000 ms: "
		"raise --out-bytes or --subscriber-timeout");
	leave(&o);
}

/* Producers always wait for it, but it holds no embedding for long. */
FIXTURE_TEST(a_slow_subscriber_is_not_dropped)
{
	struct one o = attached(f);

	assert_int_equal(steps_of(f, &o, TIMEOUT_MS * MS / 2, 200), 200);
	leave(&o);
}

/* It has held one for long, but no producer waited: its time begins now. */
FIXTURE_TEST(the_timeout_starts_when_producers_are_blocked)
{
	struct one o = attached(f);

	post(f);
	look(f);
	f->now += 100 * TOKG_SUBSCRIBER_SLOW * TIMEOUT_MS * MS;
	look(f);
	fill(f);
	f->now += TIMEOUT_MS * MS;
	look(f);
	assert_int_equal(subscribers.counts.dropped, 0);
	leave(&o);
}

static bool
has_something_to_do(void)
{
	struct pollfd p = {.fd = tokg_subscribers_fd(&subscribers), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

FIXTURE_TEST(without_descriptors_connections_wait_and_the_listener_is_not_polled)
{
	const int s = knock(), lowest_free = dup(s);
	const struct timespec nap = {.tv_nsec = 10000000};
	struct rlimit before, none;

	close(lowest_free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest_free;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_true(has_something_to_do());
	tokg_subscribers_poll(&subscribers, f->now);
	assert_false(has_something_to_do());
	tokg_subscribers_poll(&subscribers, f->now);
	assert_false(has_something_to_do());
	assert_true(subscribers.listener.reported);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int i = 0; i < 500 && subscribers.counts.attached == 0; i++) {
		nanosleep(&nap, NULL);
		tokg_subscribers_poll(&subscribers, f->now);
	}
	assert_int_equal(subscribers.counts.attached, 1);
	assert_false(subscribers.listener.reported);
	close(s);
}

/* More than are accepted at once wait in the backlog, and the agent does not spin. */
FIXTURE_TEST(with_all_connections_taken_the_listener_is_not_polled)
{
	int s[TOKG_SUBSCRIBERS_CONNS + 1];

	for (int i = 0; i <= TOKG_SUBSCRIBERS_CONNS; i++) {
		s[i] = unix_connect(path, SOCK_SEQPACKET);
		assert_true(s[i] >= 0);
		tokg_subscribers_poll(&subscribers, f->now);
	}
	assert_false(has_something_to_do());
	f->now += TOKG_SUBSCRIBE_NS + 1;
	tokg_subscribers_poll(&subscribers, f->now); /* silent ones make room */
	assert_true(has_something_to_do());
	for (int i = 0; i <= TOKG_SUBSCRIBERS_CONNS; i++)
		close(s[i]);
}
