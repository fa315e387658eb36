/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as a subscriber: when it is accepted, what it gets, and when it is detached. */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tokd/engine.h>

#include <monotonic.h>
#include "test.h"
#include "unix_socket.h"
#include "tokd-gpu/log.h"
#include "tokd-gpu/subscribers.h"
#include "producers_fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, begin, end, struct fixture *f)

static struct tokg_subscribers subscribers;
static char path[64];

static int
begin_as(void **state, bool external)
{
	struct fixture *f;
	struct tokg_error err;

	assert_int_equal(setup(state), 0);
	f = *state;
	f->now = monotonic_ns();
	granted(f, 0, 1);
	f->fake.device.external_engine = external;
	f->fake.device.made_fd = external ? memfd_create("made", MFD_CLOEXEC) : -1;
	f->delivery.area = tokg_engine_area_plan(&f->fake.device.geometry);
	snprintf(path, sizeof(path), "/tmp/tokg-engine-%d", getpid());
	if (!tokg_subscribers_open(
		    &subscribers, &f->delivery, &f->fake.device, path, 0600, 1000, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int
begin(void **state)
{
	return begin_as(state, true);
}

static int
begin_with_rule(void **state)
{
	return begin_as(state, false);
}

static int
end(void **state)
{
	struct fixture *f = *state;

	tokg_subscribers_close(&subscribers);
	if (f->fake.device.made_fd >= 0)
		close(f->fake.device.made_fd);
	return teardown(state);
}

/* What comes back: the reply's bytes and how many descriptors, which are closed. */
struct answer {
	struct tokg_engine_rep rep;
	ssize_t bytes;
	int fds;
	int fd; /* the connection */
};

static struct answer
asked(const struct fixture *f, uint32_t flags, uint32_t reserved)
{
	const struct tokg_subscribe_req req = {.magic = TOKG_SUBSCRIBE_MAGIC,
		.version = TOKG_EMB_VERSION,
		.flags = flags,
		.reserved = reserved};
	struct answer a = {.fd = unix_connect(path, SOCK_SEQPACKET)};
	int fds[DESCRIPTORS_MAX];

	assert_int_equal(send(a.fd, &req, sizeof(req), 0), sizeof(req));
	tokg_subscribers_poll(&subscribers, f->now); /* accepted */
	tokg_subscribers_poll(&subscribers, f->now);
	a.bytes = descriptors_receive(a.fd, &a.rep, sizeof(a.rep), fds, &a.fds, 0);
	for (int i = 0; i < a.fds; i++)
		close(fds[i]);
	return a;
}

static uint64_t
engine_word(const struct fixture *f)
{
	return fake_word(&f->fake, offsetof(struct tokg_ctl, engine));
}

static void
refused(const struct answer *a, const char *why)
{
	assert_int_equal(a->bytes, sizeof(struct tokg_subscribe_rep));
	assert_int_equal(a->rep.rep.outputs, 0);
	if (strstr(a->rep.rep.message, why) == NULL)
		fail_msg("%s", a->rep.rep.message);
	close(a->fd);
}

FIXTURE_TEST(an_engine_gets_its_memory_and_the_consumer_its_number)
{
	struct answer a = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);

	assert_int_equal(a.bytes, sizeof(a.rep));
	assert_int_equal(a.fds, 4);
	assert_int_equal(a.rep.rep.reserved, TOKG_SUBSCRIBE_ENGINE);
	assert_int_equal(a.rep.lanes, FAKE_PRODUCERS * 2);
	assert_int_equal(a.rep.room, 4);
	assert_int_equal(a.rep.n_ids, 100);
	assert_int_equal(a.rep.shown_off, f->delivery.area.shown_off);
	assert_int_equal(a.rep.made_off, 0);
	assert_int_equal(engine_word(f), 1);
	close(a.fd);
	tokg_subscribers_poll(&subscribers, f->now);
	assert_int_equal(engine_word(f), 0);
}

FIXTURE_TEST(subscribers_get_no_engine_memory)
{
	struct answer a = asked(f, 0, 0);

	assert_int_equal(a.bytes, sizeof(struct tokg_subscribe_rep));
	assert_int_equal(a.fds, 3);
	assert_int_equal(a.rep.rep.reserved, 0);
	assert_int_equal(engine_word(f), 0);
	close(a.fd);
}

FIXTURE_TEST(a_second_engine_is_refused_until_the_first_detaches)
{
	struct answer first = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);
	struct answer second = asked(f, TOKG_SUBSCRIBE_ENGINE, 0), third;

	refused(&second, "is attached: there is one at a time");
	assert_int_equal(engine_word(f), 1);
	close(first.fd);
	tokg_subscribers_poll(&subscribers, f->now);
	third = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);
	assert_int_equal(third.bytes, sizeof(third.rep));
	assert_int_equal(engine_word(f), 2); /* not the number of the one before */
	close(third.fd);
}

FIXTURE_TEST(an_engine_that_sends_anything_is_detached)
{
	struct answer a = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);

	assert_int_equal(send(a.fd, "x", 1, 0), 1);
	tokg_subscribers_poll(&subscribers, f->now);
	assert_int_equal(engine_word(f), 0);
	close(a.fd);
}

FIXTURE_TEST(an_engine_that_keeps_prompts_is_dropped_like_any_subscriber)
{
	struct answer a = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);

	for (uint32_t i = 0; i < 14; i++) {
		struct tokg_out_entry e = entry(i % FAKE_SLOTS, i / FAKE_SLOTS + 1);

		e.out_off = TOKG_OUT_ALIGN * (uint64_t)i;
		fake_tell(&f->fake, &e);
		fake_done(&f->fake, 0, e.slot, e.ticket, TOKG_OK);
		assert_true(tokg_delivery_poll(&f->delivery) > 0);
	}
	tokg_subscribers_poll(&subscribers, f->now);
	assert_int_equal(engine_word(f), 1);
	f->now += 1000000001ull;
	tokg_subscribers_poll(&subscribers, f->now);
	assert_int_equal(subscribers.counts.dropped, 1);
	assert_int_equal(engine_word(f), 0);
	close(a.fd);
}

FIXTURE_TEST(unknown_request_fields_are_refused)
{
	struct answer a = asked(f, 2, 0), b = asked(f, TOKG_SUBSCRIBE_ENGINE, 1);

	refused(&a, "version 3, or a field it lacks, is not supported");
	refused(&b, "version 3, or a field it lacks, is not supported");
	assert_int_equal(engine_word(f), 0);
}

TEST_WITH(without_engine_external_an_engine_is_refused, begin_with_rule, end)
{
	struct fixture *f = *state;
	struct answer a = asked(f, TOKG_SUBSCRIBE_ENGINE, 0);

	refused(&a, "no engine is wanted: start tokd-gpu with --engine external");
	assert_int_equal(engine_word(f), 0);
}
