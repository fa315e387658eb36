/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer's transport with agents whose answers are invalid, and agents that refuse. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"
#include "unix_socket.h"
#include "agent_end.h"
#include "handshake/hello.h"
#include "handshake/link.h"
#include "transport_fixture.h"
#include "transport/transport_inside.h"

enum gift { MEMFD, NOTHING, TWO, UNSEALED, SMALL, PIPE, READ_ONLY };

struct lie {
	const char *name;
	void (*spoil)(struct tokg_welcome *w);
	enum gift gift;
	size_t bytes;	      /* of the welcome; 0: all */
	bool silent;	      /* after that; else it closes */
	uint32_t ready_magic; /* 0: none comes; the right one comes with a descriptor */
	const char *says;
};

static void
bad_magic(struct tokg_welcome *w)
{
	w->magic ^= 1;
}
static void
bad_version(struct tokg_welcome *w)
{
	w->version++;
}
static void
bad_producer(struct tokg_welcome *w)
{
	w->producer = w->geometry.producers;
}
static void
no_epoch(struct tokg_welcome *w)
{
	w->epoch = 0;
}
static void
no_ring_epoch(struct tokg_welcome *w)
{
	w->ring_epoch = 0;
}
static void
bad_order(struct tokg_welcome *w)
{
	w->order = 2;
}
static void
no_slots(struct tokg_welcome *w)
{
	w->geometry.slots = 0;
}
static void
many_slots(struct tokg_welcome *w)
{
	w->geometry.slots = UINT32_MAX;
}
static void
moved_payload(struct tokg_welcome *w)
{
	w->geometry.payload_off -= TOKG_PAGE;
}
static void
bigger_region(struct tokg_welcome *w)
{
	w->geometry.region_bytes *= 2;
}
static void
unended_message(struct tokg_welcome *w)
{
	w->producer = TOKG_NO_PRODUCER;
	memset(w->message, 'x', sizeof(w->message));
}

#define SILENCE "no answer within 300 ms"

static const struct lie lies[] = {
	{"magic", bad_magic, MEMFD, 0, true, 0, "is it a tokd-gpu?"},
	{"version", bad_version, MEMFD, 0, true, 0, "has version"},
	{"producer beyond the last", bad_producer, MEMFD, 0, true, 0, "producer 2 of 2"},
	{"epoch 0", no_epoch, MEMFD, 0, true, 0, "must not be 0"},
	{"ring epoch 0", no_ring_epoch, MEMFD, 0, true, 0, "must not be 0"},
	{"order", bad_order, MEMFD, 0, true, 0, "order 2"},
	{"no slots", no_slots, MEMFD, 0, true, 0, "the number of slots is 0"},
	{"too many slots", many_slots, MEMFD, 0, true, 0, "the number of slots is 4294967295"},
	{"payload over the lanes' words", moved_payload, MEMFD, 0, true, 0, "is inconsistent"},
	{"region bigger than it is", bigger_region, MEMFD, 0, true, 0, "is inconsistent"},
	{"no end of message", unended_message, NOTHING, 0, false, 0, "refused: xxxx"},
	{"no memory", NULL, NOTHING, 0, true, 0, "sent no memory"},
	{"two descriptors", NULL, TWO, 0, true, 0, "unexpected descriptors"},
	{"memory that can shrink", NULL, UNSEALED, 0, true, 0, "no F_SEAL_SHRINK"},
	{"memory that is too small", NULL, SMALL, 0, true, 0, "its memory has 4096"},
	{"no memory, but a pipe", NULL, PIPE, 0, true, 0, "is not a memfd"},
	{"memory sealed against writing", NULL, READ_ONLY, 0, true, 0,
		"mapping the agent's region"},
	{"half an answer, then silence", NULL, MEMFD, 100, true, 0, SILENCE},
	{"half an answer, then the end", NULL, MEMFD, 343, false, 0, "closed during"},
	{"silence", NULL, MEMFD, SIZE_MAX, true, 0, SILENCE},
	{"the end", NULL, MEMFD, SIZE_MAX, false, 0, "closed during"},
	{"no ready", NULL, MEMFD, 0, true, 0, SILENCE},
	{"end instead of ready", NULL, MEMFD, 0, false, 0, "closed during"},
	{"another's ready", NULL, MEMFD, 0, true, 1, "ready with magic 0x1"},
	{"a ready with a descriptor", NULL, MEMFD, 0, true, TOKG_READY_MAGIC,
		"unexpected descriptors"},
};

struct liar {
	const struct lie *lie;
	int listener;
	struct tokg_welcome welcome;
	struct agent_end memory;
};

static int
gift_of(const struct liar *l)
{
	const size_t bytes = l->lie->gift == SMALL ? 4096 : l->welcome.geometry.region_bytes;
	int pipes[2], fd;

	if (l->lie->gift == PIPE) {
		assert_int_equal(pipe(pipes), 0);
		close(pipes[1]);
		return pipes[0];
	}
	fd = memfd_create("gift", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (l->lie->gift != UNSEALED)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	if (l->lie->gift == READ_ONLY)
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
	return fd;
}

static void
send_gift(int s, const struct liar *l, size_t bytes)
{
	int fds[2] = {gift_of(l), gift_of(l)};
	const size_t n = l->lie->gift == NOTHING ? 0 : l->lie->gift == TWO ? 2 : 1;

	descriptors_send(s, &l->welcome, bytes, fds, n, MSG_NOSIGNAL);
	close(fds[0]);
	close(fds[1]);
}

/* One connection; stays as long as the producer does, unless it closes. */
static void *
lie_once(void *arg)
{
	const struct liar *l = arg;
	const int s = accept(l->listener, NULL, NULL);
	struct tokg_hello hello;
	struct tokg_ready ready = {l->lie->ready_magic, 0};
	char rest[64];

	if (recv(s, &hello, sizeof(hello), MSG_WAITALL) == sizeof(hello) &&
		l->lie->bytes != SIZE_MAX)
		send_gift(s, l, l->lie->bytes != 0 ? l->lie->bytes : sizeof(l->welcome));
	if (l->lie->ready_magic != 0)
		tokg_link_send_fd(s, &ready, sizeof(ready),
			ready.magic == TOKG_READY_MAGIC ? l->listener : -1);
	while (l->lie->silent && recv(s, rest, sizeof(rest), 0) > 0)
		;
	close(s);
	return NULL;
}

static void
believed(const struct lie *lie, const char *path, int listener)
{
	struct liar l = {.lie = lie, .listener = listener};
	struct tokg_error err = {""};
	struct tokg_transport *t;
	pthread_t thread;

	l.welcome = (struct tokg_welcome){
		.magic = TOKG_WELCOME_MAGIC, .version = TOKG_VERSION, .epoch = 1, .ring_epoch = 1};
	agent_geometry(&l.welcome.geometry, 2, SLOTS);
	if (lie->spoil != NULL)
		lie->spoil(&l.welcome);
	pthread_create(&thread, NULL, lie_once, &l);
	open_ms = strcmp(lie->says, SILENCE) == 0 ? 300 : PATIENCE_MS;
	t = open_to(path, &err);
	open_ms = PATIENCE_MS;
	pthread_join(thread, NULL);
	if (t != NULL || strstr(err.text, lie->says) == NULL)
		fail_msg("%s: %s", lie->name, t != NULL ? "believed" : err.text);
}

TEST(invalid_answers_of_an_agent_are_refused)
{
	char path[64];
	uint32_t files;
	int listener;

	snprintf(path, sizeof(path), "/tmp/tokg-liar-%d", getpid());
	listener = unix_listen(path, SOCK_STREAM, 4);
	assert_true(listener >= 0);
	files = open_files();
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		believed(&lies[i], path, listener);
		assert_int_equal(open_files(), files);
	}
	close(listener);
	unlink(path);
}

static bool
refusal_is_final(uint32_t again)
{
	static const struct lie refusal = {.gift = NOTHING};
	struct liar l = {.lie = &refusal,
		.welcome = {.magic = TOKG_WELCOME_MAGIC,
			.version = TOKG_VERSION,
			.producer = TOKG_NO_PRODUCER,
			.again = again,
			.message = "not now"}};
	struct tokg_target target;
	struct tokg_where where;
	struct tokg_dial d;
	struct tokg_error err = {""};
	pthread_t thread;
	char path[64], text[128];
	bool final;
	int rc;

	snprintf(path, sizeof(path), "/tmp/tokg-refuses-%d", getpid());
	snprintf(text, sizeof(text), "shm:%s", path);
	l.listener = unix_listen(path, SOCK_STREAM, 1);
	assert_true(l.listener >= 0);
	assert_true(tokg_target_parse(&target, text, &err));
	assert_true(tokg_where_resolve(&where, &target, &err));
	pthread_create(&thread, NULL, lie_once, &l);
	tokg_dial_init(&d);
	memset(&d.hello, 0, sizeof(d.hello));
	d.hello.transport = TOKG_SHM;
	tokg_dial_begin(&d);
	while ((rc = tokg_dial_step(&d, &where, &err)) == 0)
		tokg_dial_wait(&d, 10);
	assert_true(rc < 0);
	assert_non_null(strstr(err.text, "refused: not now"));
	final = d.final;
	tokg_dial_end(&d);
	pthread_join(thread, NULL);
	close(l.listener);
	unlink(path);
	return final;
}

/* A producer slot is given up for the agent's last word alone. */
TEST(a_refusal_is_final_unless_it_says_otherwise)
{
	assert_true(refusal_is_final(0));
	assert_false(refusal_is_final(1));
	assert_true(refusal_is_final(2));
}

/* By verbs nothing comes with the answer whose size could tell: the geometry alone is proved. */
TEST(a_geometry_without_memory_is_validated_too)
{
	struct tokg_hello hello = {.resume = TOKG_NO_PRODUCER};
	struct tokg_welcome w = {
		.magic = TOKG_WELCOME_MAGIC, .version = TOKG_VERSION, .epoch = 1, .ring_epoch = 1};
	struct tokg_error err;

	agent_geometry(&w.geometry, 2, SLOTS);
	assert_true(tokg_welcome_proved(&hello, &w, &err));
	w.geometry.hdr_off += 64;
	assert_false(tokg_welcome_proved(&hello, &w, &err));
}
