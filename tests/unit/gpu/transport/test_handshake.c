/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's end of the handshake, towards producers that err, lie, stay silent or flood it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <monotonic.h>
#include "test.h"
#include "unix_socket.h"
#include "agent_end.h"
#include "transport/transport_inside.h"

#define FIXTURE_TEST(name) TEST_WITH(name, begin, finish)

#define SOON_MS 500 /* what is answered at once comes within it, on a busy machine too */

static struct agent_end agent;
static uint16_t port; /* of this process's own: others may run beside it */

static int
begin(void **state)
{
	memset(&agent, 0, sizeof(agent));
	agent_geometry(&agent.geometry, 2, 8);
	agent.ring_epoch = 9;
	agent_region(&agent);
	agent_begin(&agent, port);
	return 0;
}

static int
finish(void **state)
{
	agent_free(&agent);
	return access(agent.path, F_OK) == 0; /* it takes its socket file along */
}

static int
connected(bool tcp)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int s = tcp ? socket(AF_INET, SOCK_STREAM, 0) : unix_connect(agent.path, SOCK_STREAM);

	if (tcp)
		assert_int_equal(connect(s, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_true(s >= 0);
	return s;
}

static struct tokg_hello
a_hello(void)
{
	return (struct tokg_hello){.magic = TOKG_HELLO_MAGIC,
		.version = TOKG_VERSION,
		.transport = TOKG_SHM,
		.resume = TOKG_NO_PRODUCER,
		.n_vocabs = 1,
		.vocab = {1},
		.n_ids = {100}};
}

/* All of `bytes` within `ms`. False: the end, or nothing in time. */
static bool
comes(int s, void *to, size_t bytes, int ms)
{
	const uint64_t end = monotonic_ms() + (uint64_t)ms;
	size_t n = 0;

	while (n < bytes) {
		struct pollfd p = {.fd = s, .events = POLLIN};
		const uint64_t now = monotonic_ms();
		ssize_t got;

		if (now >= end || poll(&p, 1, (int)(end - now)) <= 0)
			return false;
		got = recv(s, (char *)to + n, bytes - n, 0);
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

static bool
ends(int s, int ms)
{
	struct pollfd p = {.fd = s, .events = POLLIN};
	char byte;

	return poll(&p, 1, ms) == 1 && recv(s, &byte, 1, 0) <= 0;
}

static struct tokg_welcome
answer_to(int s, const struct tokg_hello *h)
{
	struct tokg_welcome w;

	assert_int_equal(send(s, h, sizeof(*h), MSG_NOSIGNAL), sizeof(*h));
	assert_true(comes(s, &w, sizeof(w), SOON_MS));
	return w;
}

/* Gets a producer slot, and becomes ready. */
static int
joins(struct tokg_welcome *w)
{
	const int s = connected(false);
	const struct tokg_hello h = a_hello();
	struct tokg_ready ready = {TOKG_READY_MAGIC, 0};

	*w = answer_to(s, &h);
	if (w->producer == TOKG_NO_PRODUCER)
		fail_msg("refused: %s", w->message);
	ready.producer = w->producer;
	assert_int_equal(send(s, &ready, sizeof(ready), MSG_NOSIGNAL), sizeof(ready));
	memset(&ready, 0, sizeof(ready));
	assert_true(comes(s, &ready, sizeof(ready), SOON_MS));
	assert_true(ready.magic == TOKG_READY_MAGIC && ready.producer == w->producer);
	return s;
}

static void
wait_for(const atomic_uint *count, unsigned int n, int ms)
{
	for (; *count < n && ms > 0; ms--)
		usleep(1000);
	assert_int_equal(*count, n);
}

/* The agent looks at all its connections once more, and again. */
static void
wait_turns(void)
{
	const unsigned int turns = agent.turns;

	for (int ms = 20 * SOON_MS; agent.turns - turns < 3; ms--) {
		assert_true(ms > 0);
		usleep(1000);
	}
}

FIXTURE_TEST(a_producer_joins_and_its_end_is_seen)
{
	struct tokg_welcome w;
	const int s = joins(&w);

	assert_int_equal(w.producer, 0);
	assert_memory_equal(&w.geometry, &agent.geometry, sizeof(w.geometry));
	wait_for(&agent.joined, 1, SOON_MS);
	assert_int_equal(agent.left, 0);
	close(s);
	wait_for(&agent.left, 1, SOON_MS);
}

FIXTURE_TEST(a_hello_in_pieces_is_accepted)
{
	const int s = connected(false);
	const struct tokg_hello h = a_hello();
	struct tokg_welcome w;

	for (size_t i = 0; i < sizeof(h); i++)
		assert_int_equal(send(s, (const char *)&h + i, 1, 0), 1);
	assert_true(comes(s, &w, sizeof(w), SOON_MS));
	assert_int_equal(w.producer, 0);
	close(s);
}

FIXTURE_TEST(invalid_hellos_are_refused_with_a_message)
{
	const struct {
		const char *says;
		size_t at;
		uint32_t value;
		bool tcp;
	} wrong[] = {
		{"magic 0x7", offsetof(struct tokg_hello, magic), 7, false},
		{"version 99", offsetof(struct tokg_hello, version), 99, false},
		{"transport 3", offsetof(struct tokg_hello, transport), TOKG_VERBS, false},
		{"transport 0", offsetof(struct tokg_hello, transport), 0, false},
		{"transport 1", offsetof(struct tokg_hello, transport), TOKG_SHM, true},
		{"0 vocabularies", offsetof(struct tokg_hello, n_vocabs), 0, false},
		{"17 vocabularies", offsetof(struct tokg_hello, n_vocabs), 17, false},
		{"producer 64", offsetof(struct tokg_hello, resume), 64, false},
		{"producer 0, epoch 0", offsetof(struct tokg_hello, resume), 0, false},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const int s = connected(wrong[i].tcp);
		struct tokg_hello h = a_hello();
		struct tokg_welcome w;

		memcpy((char *)&h + wrong[i].at, &wrong[i].value, sizeof(wrong[i].value));
		w = answer_to(s, &h);
		assert_int_equal(w.magic, TOKG_WELCOME_MAGIC);
		assert_int_equal(w.producer, TOKG_NO_PRODUCER);
		if (strstr(w.message, wrong[i].says) == NULL)
			fail_msg("%s: %s", wrong[i].says, w.message);
		assert_true(ends(s, SOON_MS));
		close(s);
	}
	assert_int_equal(agent.asked, 0);
	assert_int_equal(agent.left, 0);
}

FIXTURE_TEST(silent_connections_time_out_and_delay_no_one)
{
	const int silent = connected(false), half = connected(true);
	const uint64_t began = monotonic_ms();
	struct tokg_welcome w;

	assert_int_equal(send(half, "abcd", 4, 0), 4);
	close(joins(&w)); /* at once, meanwhile */
	assert_true(monotonic_ms() - began < TOKG_HELLO_MS);
	assert_true(comes(silent, &w, sizeof(w), 2 * TOKG_HELLO_MS));
	assert_non_null(strstr(w.message, "no hello within"));
	assert_true(comes(half, &w, sizeof(w), SOON_MS));
	assert_true(ends(silent, SOON_MS) && ends(half, SOON_MS));
	close(silent);
	close(half);
}

FIXTURE_TEST(a_producer_without_ready_loses_its_slot)
{
	const int s = connected(false);
	const struct tokg_hello h = a_hello();

	assert_int_equal(answer_to(s, &h).producer, 0);
	wait_for(&agent.left, 1, TOKG_READY_MS + SOON_MS);
	assert_int_equal(agent.joined, 0);
	assert_true(ends(s, SOON_MS));
	close(s);
}

FIXTURE_TEST(a_wrong_ready_or_an_extra_byte_ends_the_connection)
{
	const struct tokg_ready another = {TOKG_READY_MAGIC, 1};
	const struct tokg_hello h = a_hello();
	struct tokg_welcome w;
	int s = connected(false);

	assert_int_equal(answer_to(s, &h).producer, 0);
	send(s, &another, sizeof(another), MSG_NOSIGNAL);
	wait_for(&agent.left, 1, SOON_MS);
	assert_int_equal(agent.joined, 0);
	close(s);
	s = joins(&w);
	send(s, "x", 1, MSG_NOSIGNAL);
	wait_for(&agent.left, 2, SOON_MS);
	close(s);
}

FIXTURE_TEST(descriptors_that_a_producer_sends_are_closed)
{
	const int s = connected(false);
	int pipes[2];
	struct tokg_hello h = a_hello();
	struct pollfd p;

	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(descriptors_send(s, &h, sizeof(h), &pipes[1], 1, 0), sizeof(h));
	close(pipes[1]);
	assert_true(ends(s, SOON_MS));
	/* The reading end hears that nobody has the writing one any more. */
	p = (struct pollfd){.fd = pipes[0], .events = POLLIN};
	assert_int_equal(poll(&p, 1, SOON_MS), 1);
	assert_true((p.revents & POLLHUP) != 0);
	close(pipes[0]);
	close(s);
}

FIXTURE_TEST(a_hello_waits_for_a_producer_slot_to_become_free)
{
	const int s = connected(false);
	const struct tokg_hello h = a_hello();

	agent.not_yet = 3;
	assert_int_equal(answer_to(s, &h).producer, 0);
	assert_int_equal(agent.asked, 4);
	close(s);
}

FIXTURE_TEST(a_producer_that_leaves_while_waiting_gets_no_slot)
{
	const int s = connected(false);
	const struct tokg_hello h = a_hello();
	unsigned int asked;

	agent.not_yet = 1000000;
	send(s, &h, sizeof(h), 0);
	wait_turns();
	close(s);
	wait_turns();
	asked = agent.asked;
	assert_true(asked > 0);
	wait_turns();
	assert_int_equal(agent.asked, asked);
	assert_int_equal(agent.joined, 0);
	assert_int_equal(agent.left, 0);
}

FIXTURE_TEST(the_producer_slot_moves_to_the_connection_that_resumes)
{
	struct tokg_hello h = a_hello();
	struct tokg_welcome w;
	const int old = joins(&w), new = connected(false);

	h.resume = w.producer;
	h.epoch = w.epoch;
	h.ring_epoch = w.ring_epoch;
	w = answer_to(new, &h);
	assert_int_equal(w.producer, h.resume);
	assert_int_equal(w.epoch, h.epoch);
	assert_true(ends(old, SOON_MS)); /* dropped out of grant */
	assert_int_equal(agent.left, 1);
	assert_int_not_equal(agent.owner[w.producer], 0);
	close(old);
	close(new);
}

FIXTURE_TEST(a_flood_delays_new_producers_and_keeps_connected_ones)
{
	struct tokg_welcome w;
	const int inside = joins(&w);
	const struct tokg_hello h = a_hello();
	int flood[TOKG_NEWCOMERS];
	int s;

	for (size_t i = 0; i < sizeof(flood) / sizeof(flood[0]); i++)
		flood[i] = connected(false);
	s = connected(false);
	assert_int_equal(send(s, &h, sizeof(h), MSG_NOSIGNAL), sizeof(h));
	assert_false(comes(s, &w, sizeof(w), 200)); /* neither let in nor refused */
	for (size_t i = 0; i < sizeof(flood) / sizeof(flood[0]); i++) {
		assert_true(comes(flood[i], &w, sizeof(w), TOKG_HELLO_MS + SOON_MS));
		assert_non_null(strstr(w.message, "no hello within"));
		assert_int_equal(w.again, 1);
		close(flood[i]);
	}
	assert_true(comes(s, &w, sizeof(w), SOON_MS));
	assert_int_equal(w.producer, 1);
	assert_false(ends(inside, 1));
	close(s);
	close(inside);
}

FIXTURE_TEST(a_socket_file_is_taken_over_only_from_the_dead)
{
	struct tokg_server_config c = {.path = agent.path, .mode = 0600};
	char other[128];
	struct tokg_error err;
	struct stat st;
	int fd;

	assert_null(tokg_server_open(&c, &err));
	assert_non_null(strstr(err.text, "another tokd-gpu serves"));
	assert_int_equal(stat(agent.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);

	snprintf(other, sizeof(other), "%s/file", agent.folder);
	c.path = other;
	fd = open(other, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_null(tokg_server_open(&c, &err));
	assert_non_null(strstr(err.text, "is not a socket"));
	assert_int_equal(access(other, F_OK), 0);
	unlink(other);

	c.path = NULL;
	c.host = "";
	c.port = port;
	assert_null(tokg_server_open(&c, &err));
	assert_non_null(strstr(err.text, strerror(EADDRINUSE)));
}

static void
count(void *owner, const struct tokg_error *err)
{
	assert_non_null(strstr(err->text, "LimitNOFILE="));
	++*(uint32_t *)owner;
}

static bool
has_something_to_do(struct tokg_server *server)
{
	struct pollfd p = {.fd = tokg_server_fd(server), .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* Nor is the listener looked at all the time. */
FIXTURE_TEST(without_descriptors_connections_wait_and_one_report_is_made)
{
	uint32_t said = 0;
	char path[64];
	const struct tokg_server_config c = {
		.path = path, .mode = 0600, .calls = {.starved = count}, .owner = &said};
	struct rlimit before, none;
	struct tokg_server *server;
	struct tokg_error err;
	int s, lowest_free;

	snprintf(path, sizeof(path), "%.40s/other", agent.folder);
	server = tokg_server_open(&c, &err);
	assert_non_null(server);
	s = unix_connect(path, SOCK_STREAM);
	lowest_free = dup(s);
	close(lowest_free);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest_free;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (uint64_t end = monotonic_ms() + 1500; monotonic_ms() < end;) {
		const bool first = said == 0;

		if (has_something_to_do(server)) /* again after a second */
			tokg_server_poll(server);
		else
			poll(NULL, 0, 10);
		tokg_server_poll(server);
		assert_int_equal(said, 1);
		if (first)
			assert_false(has_something_to_do(server));
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (uint64_t end = monotonic_ms() + 5000;
		monotonic_ms() < end && recv(s, &err, 1, MSG_DONTWAIT | MSG_PEEK) < 0;) {
		tokg_server_poll(server);
		poll(NULL, 0, 10);
	}
	assert_int_equal(recv(s, &err, 1, MSG_DONTWAIT), 1); /* refused for its silence: taken */
	close(s);
	tokg_server_close(server);
}

int
main(void)
{
	port = (uint16_t)(20000 + getpid() % 10000);
	return tests_run();
}
