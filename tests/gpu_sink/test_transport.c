/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer's transport by shm: towards an agent that keeps the protocol, and towards liars. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent_end.h"
#include "hello.h"
#include "link.h"
#include "shm.h"
#include "transport_inside.h"
#include "verbs.h"
#include "verbs_qp.h"

#define SLOTS 8
#define OPEN_MS 300

static const uint32_t vocab = 0xabcd, n_ids = 500;
static const struct tokg_source source = {
	.n_vocabs = 1, .vocab = &vocab, .n_ids = &n_ids, .instance = 3, .worker = 1, .node = -1};

static uint32_t
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* ---- targets ---- */

static void
targets_are_parsed(void **state)
{
	static const struct {
		const char *text, *address;
		int kind;
		uint16_t port;
	} good[] = {
		{"shm", TOKG_SOCKET, TOKG_SHM, 0},
		{"shm:/run/a:b.sock", "/run/a:b.sock", TOKG_SHM, 0},
		{"cuda", TOKG_SOCKET, TOKG_CUDA, 0},
		{"cuda:x", "x", TOKG_CUDA, 0},
		{"verbs:gpu1", "gpu1", TOKG_VERBS, TOKG_TCP_PORT},
		{"verbs:gpu1:1", "gpu1", TOKG_VERBS, 1},
		{"verbs:10.0.0.1:65535", "10.0.0.1", TOKG_VERBS, 65535},
		{"verbs:[::1]", "::1", TOKG_VERBS, TOKG_TCP_PORT},
		{"verbs:[fe80::1%eth0]:7", "fe80::1%eth0", TOKG_VERBS, 7},
	};
	struct tokg_target t;
	struct tokg_error why;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(tokg_target_parse(&t, good[i].text, &why));
		assert_int_equal(t.kind, good[i].kind);
		assert_string_equal(t.address, good[i].address);
		assert_int_equal(t.port, good[i].port);
		assert_true(t.rdma_device == NULL && t.rdma_port < 0 && t.rdma_gid < 0);
	}
}

static void
wrong_targets_are_refused_with_a_remedy(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{"", "must be shm[:PATH]"},
		{"gpu", "must be shm[:PATH]"},
		{"shmx", "must be shm[:PATH]"},
		{"shm:", "is empty"},
		{"verbs", "where is the agent"},
		{"verbs:", "the host is empty"},
		{"verbs:[]", "the host is empty"},
		{"verbs::7", "the host is empty"},
		{"verbs:h:", "1 to 65535"},
		{"verbs:h:0", "1 to 65535"},
		{"verbs:h:65536", "1 to 65535"},
		{"verbs:h:99999999999999999999", "1 to 65535"},
		{"verbs:h:7x", "1 to 65535"},
		{"verbs:h:-1", "1 to 65535"},
		{"verbs:::1", "in brackets"},
		{"verbs:[::1", "no ]"},
		{"verbs:[::1]7", "must be :PORT"},
	};
	char longest[200] = "shm:";
	struct tokg_target t;
	struct tokg_error why;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(tokg_target_parse(&t, bad[i].text, &why));
		if (strstr(why.text, bad[i].says) == NULL)
			fail_msg("\"%s\": %s", bad[i].text, why.text);
	}
	memset(longest + 4, 'p', 108);
	assert_false(tokg_target_parse(&t, longest, &why));
	assert_non_null(strstr(why.text, "at most 107"));
	longest[4 + 107] = '\0';
	assert_true(tokg_target_parse(&t, longest, &why));
}

/* ---- with an agent that keeps the protocol ---- */

struct with_agent {
	struct agent_end agent;
	struct tokg_target target;
	struct tokg_transport *t;
	uint32_t files;
};

static struct tokg_transport *
open_by(const char *kind, const char *path, struct tokg_error *why)
{
	struct tokg_target target;
	char text[128], said[256] = "";
	struct tokg_transport *t;

	snprintf(text, sizeof(text), "%s:%s", kind, path);
	assert_true(tokg_target_parse(&target, text, why));
	t = tokg_transport_open(&target, &source, OPEN_MS, said, why);
	assert_true((t != NULL) == (strstr(said, "place") != NULL));
	return t;
}

static struct tokg_transport *
open_to(const char *path, struct tokg_error *why)
{
	return open_by("shm", path, why);
}

static int
begin(void **state)
{
	struct with_agent *w = calloc(1, sizeof(*w));
	struct tokg_error why;

	w->files = open_files();
	agent_geometry(&w->agent.geometry, 2, SLOTS);
	w->agent.ring_epoch = 9;
	agent_region(&w->agent);
	agent_begin(&w->agent, 0);
	w->t = open_to(w->agent.path, &why);
	if (w->t == NULL)
		fprintf(stderr, "%s\n", why.text);
	*state = w;
	return w->t == NULL;
}

static int
finish(void **state)
{
	struct with_agent *w = *state;

	if (w->t != NULL)
		w->t->ops->close(w->t);
	agent_free(&w->agent);
	assert_int_equal(open_files(), w->files);
	free(w);
	return 0;
}

static void
post(struct tokg_transport *t, uint32_t slot, uint64_t ticket, uint8_t byte)
{
	uint8_t payload[4096] __attribute__((aligned(64)));
	struct tokg_hdr h = {.request = ticket * 10,
		.bytes = sizeof(payload),
		.epoch = t->epoch,
		.ticket = ticket};

	memset(payload, byte, sizeof(payload));
	assert_int_equal(t->ops->post(t, slot, payload, sizeof(payload), &h, t->order), 1);
	assert_int_equal(t->ops->flush(t), 0);
}

static void
what_is_posted_stands_in_its_slot(void **state)
{
	struct with_agent *w = *state;
	const uint32_t p = w->t->producer;

	post(w->t, 0, 1, 0x11);
	post(w->t, SLOTS - 1, 1, 0x22);
	assert_int_equal(agent_hdr(&w->agent, p, 0)->ticket, 1);
	assert_int_equal(agent_hdr(&w->agent, p, 0)->request, 10);
	assert_int_equal(agent_payload(&w->agent, p, 0)[4095], 0x11);
	assert_int_equal(agent_payload(&w->agent, p, SLOTS - 1)[0], 0x22);
	assert_int_equal(agent_hdr(&w->agent, p, 1)->ticket, 0);
	assert_int_equal(agent_payload(&w->agent, p, 1)[0], 0);
	assert_int_equal(agent_hdr(&w->agent, 1 - p, 0)->ticket, 0);
}

static void
what_is_done_is_read_back(void **state)
{
	struct with_agent *w = *state;
	const uint32_t p = w->t->producer;

	agent_done(&w->agent, p, SLOTS - 1, 77);
	agent_back(&w->agent, p)->released = 5;
	agent_back(&w->agent, p)->heartbeat = 6;
	assert_int_equal(w->t->n_reads, 0);
	assert_int_equal(w->t->ops->read_back(w->t), 1);
	assert_int_equal(w->t->ops->poll(w->t), 0);
	assert_int_equal(w->t->n_reads, 1);
	assert_int_equal(w->t->done[SLOTS - 1], TOKG_DONE(77, TOKG_OK));
	assert_int_equal(w->t->done[0], 0);
	assert_int_equal(w->t->back->released, 5);
	assert_int_equal(w->t->back->heartbeat, 6);
	assert_int_equal(w->t->back->epoch, w->t->epoch);
}

static int
again(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *why)
{
	int rc;

	while ((rc = t->ops->reconnect(t, tickets, why)) == 0)
		usleep(1000);
	return rc;
}

static void
a_lost_connection_is_made_again_for_the_same_place(void **state)
{
	struct with_agent *w = *state;
	const uint32_t p = w->t->producer, epoch = w->t->epoch;
	uint64_t tickets[SLOTS];
	struct tokg_error why;

	post(w->t, 3, 41, 1);
	assert_true(tokg_transport_look(w->t));
	agent_end(&w->agent); /* its memory and places stay */
	assert_int_equal(w->t->ops->poll(w->t), 0);
	assert_false(tokg_transport_look(w->t));
	assert_true(w->t->ops->poll(w->t) < 0);
	agent_begin(&w->agent, 0);
	assert_int_equal(again(w->t, tickets, &why), 1);
	assert_int_equal(w->t->producer, p);
	assert_int_equal(w->t->epoch, epoch);
	assert_int_equal(tickets[3], 41);
	assert_int_equal(tickets[0], 0);
	assert_int_equal(w->t->ops->poll(w->t), 0);
	assert_true(tokg_transport_look(w->t));
	post(w->t, 4, 1, 2);
	assert_int_equal(agent_hdr(&w->agent, p, 4)->ticket, 1);
}

static void
an_agent_that_restarted_is_not_the_same(void **state)
{
	struct with_agent *w = *state;
	uint64_t tickets[SLOTS];
	struct tokg_error why;

	agent_end(&w->agent);
	w->agent.ring_epoch++;
	agent_begin(&w->agent, 0);
	assert_true(again(w->t, tickets, &why) < 0);
	assert_non_null(strstr(why.text, "refused: place"));
}

static void
a_region_of_the_same_place_but_another_memory_is_refused(void **state)
{
	struct with_agent *w = *state;
	uint64_t tickets[SLOTS];
	struct tokg_error why;

	agent_end(&w->agent);
	munmap(w->agent.region, w->agent.geometry.region_bytes);
	close(w->agent.region_fd);
	agent_region(&w->agent);
	agent_begin(&w->agent, 0);
	assert_true(again(w->t, tickets, &why) < 0);
	assert_non_null(strstr(why.text, "is another one"));
}

static void
reconnecting_to_nobody_ends(void **state)
{
	struct with_agent *w = *state;
	uint64_t tickets[SLOTS];
	struct tokg_error why;
	uint64_t began = tokg_now_ms();

	agent_end(&w->agent);
	assert_int_equal(w->t->ops->reconnect(w->t, tickets, &why), 0);
	assert_true(again(w->t, tickets, &why) < 0);
	assert_non_null(strstr(why.text, "is tokd-gpu running"));
	assert_true(tokg_now_ms() - began < 2 * TOKG_RECONNECT_MS);
}

static void
the_agents_words_are_given(void **state)
{
	struct with_agent *w = *state;
	struct tokg_error why;

	w->agent.refuse = true;
	assert_null(open_to(w->agent.path, &why));
	/* and cannot write on a terminal as they please */
	assert_non_null(strstr(why.text, "refused: vocabulary 0xabcd: not??here"));
}

static void
strict_is_the_agents_or_the_users(void **state)
{
	struct with_agent *w = *state;
	struct tokg_error why;
	struct tokg_transport *t;

	assert_int_equal(w->t->order, TOKG_ORDER_FAST);
	w->agent.order = TOKG_ORDER_STRICT;
	t = open_to(w->agent.path, &why);
	assert_non_null(t);
	assert_int_equal(t->order, TOKG_ORDER_STRICT);
	t->ops->close(t);
}

/* What the agent gives decides: here it is host memory. */
static void
cuda_takes_host_memory_as_well(void **state)
{
	struct with_agent *w = *state;
	struct tokg_error why;
	struct tokg_transport *t = open_by("cuda", w->agent.path, &why);

	assert_non_null(t);
	assert_string_equal(t->ops->name, "cuda");
	post(t, 2, 5, 0x33);
	assert_int_equal(agent_hdr(&w->agent, t->producer, 2)->ticket, 5);
	assert_int_equal(agent_payload(&w->agent, t->producer, 2)[100], 0x33);
	t->ops->close(t);
}

/* No GPU: what is written and read is proved on ordinary memory, their order is not. */
static void
stores_for_gpu_memory_write_and_read_what_they_should(void **state)
{
	struct with_agent *w = *state;
	struct tokg_shm gpu = *(struct tokg_shm *)w->t;
	uint8_t payload[128] __attribute__((aligned(64)));
	struct tokg_hdr h = {.request = 3, .flags = TOKG_LAST, .ticket = 9};
	const uint32_t p = gpu.t.producer;

	memset(payload, 0x44, sizeof(payload));
	assert_int_equal(
		tokg_cuda_post(&gpu.t, 1, payload, sizeof(payload), &h, TOKG_ORDER_FAST), 1);
	h.ticket = 10;
	assert_int_equal(
		tokg_cuda_post(&gpu.t, 2, payload, sizeof(payload), &h, TOKG_ORDER_STRICT), 1);
	assert_int_equal(tokg_cuda_post(&gpu.t, 3, NULL, 0, &h, TOKG_ORDER_STRICT), 1);
	assert_int_equal(tokg_cuda_flush(&gpu.t), 0);
	assert_int_equal(agent_hdr(&w->agent, p, 1)->ticket, 9);
	assert_int_equal(agent_hdr(&w->agent, p, 2)->ticket, 10);
	assert_memory_equal(agent_hdr(&w->agent, p, 3), &h, sizeof(h));
	assert_memory_equal(agent_payload(&w->agent, p, 2), payload, sizeof(payload));
	assert_int_equal(agent_payload(&w->agent, p, 2)[sizeof(payload)], 0);
	agent_done(&w->agent, p, SLOTS - 1, 8);
	assert_int_equal(tokg_cuda_read_back(&gpu.t), 1);
	assert_int_equal(gpu.t.done[SLOTS - 1], TOKG_DONE(8, TOKG_OK));
	assert_int_equal(gpu.t.back->epoch, gpu.t.epoch);
	assert_int_equal(gpu.t.n_reads, 1);
}

/* ---- with liars ---- */

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

static const struct lie lies[] = {
	{"magic", bad_magic, MEMFD, 0, true, 0, "not a GPU agent"},
	{"version", bad_version, MEMFD, 0, true, 0, "speaks version"},
	{"place beyond the last", bad_producer, MEMFD, 0, true, 0, "place 2 of 2"},
	{"epoch 0", no_epoch, MEMFD, 0, true, 0, "never 0"},
	{"ring epoch 0", no_ring_epoch, MEMFD, 0, true, 0, "never 0"},
	{"order", bad_order, MEMFD, 0, true, 0, "order 2"},
	{"no slots", no_slots, MEMFD, 0, true, 0, "the number of slots is 0"},
	{"too many slots", many_slots, MEMFD, 0, true, 0, "the number of slots is 4294967295"},
	{"payload over the stamps", moved_payload, MEMFD, 0, true, 0, "contradicts itself"},
	{"region bigger than it is", bigger_region, MEMFD, 0, true, 0, "contradicts itself"},
	{"no end of message", unended_message, NOTHING, 0, false, 0, "refused: xxxx"},
	{"no memory", NULL, NOTHING, 0, true, 0, "sent no memory"},
	{"two descriptors", NULL, TWO, 0, true, 0, "belong to nothing"},
	{"memory that can shrink", NULL, UNSEALED, 0, true, 0, "no F_SEAL_SHRINK"},
	{"memory that is too small", NULL, SMALL, 0, true, 0, "its memory has 4096"},
	{"no memory, but a pipe", NULL, PIPE, 0, true, 0, "is no memfd"},
	{"memory sealed against writing", NULL, READ_ONLY, 0, true, 0,
		"mapping the agent's region"},
	{"half an answer, then silence", NULL, MEMFD, 100, true, 0, "no answer within 300 ms"},
	{"half an answer, then the end", NULL, MEMFD, 343, false, 0, "closed before"},
	{"silence", NULL, MEMFD, SIZE_MAX, true, 0, "no answer within 300 ms"},
	{"the end", NULL, MEMFD, SIZE_MAX, false, 0, "closed before"},
	{"no ready", NULL, MEMFD, 0, true, 0, "no answer within 300 ms"},
	{"end instead of ready", NULL, MEMFD, 0, false, 0, "closed before"},
	{"another's ready", NULL, MEMFD, 0, true, 1, "ready with magic 0x1"},
	{"a ready with a descriptor", NULL, MEMFD, 0, true, TOKG_READY_MAGIC, "belong to nothing"},
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
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(fds))];
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)&l->welcome, bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, n * sizeof(int));
	}
	sendmsg(s, &m, MSG_NOSIGNAL);
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
	struct tokg_error why = {""};
	struct tokg_transport *t;
	pthread_t thread;

	l.welcome = (struct tokg_welcome){
		.magic = TOKG_WELCOME_MAGIC, .version = TOKG_VERSION, .epoch = 1, .ring_epoch = 1};
	agent_geometry(&l.welcome.geometry, 2, SLOTS);
	if (lie->spoil != NULL)
		lie->spoil(&l.welcome);
	pthread_create(&thread, NULL, lie_once, &l);
	t = open_to(path, &why);
	pthread_join(thread, NULL);
	if (t != NULL || strstr(why.text, lie->says) == NULL)
		fail_msg("%s: %s", lie->name, t != NULL ? "believed" : why.text);
}

static void
an_agent_that_lies_is_found_out(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	const uint32_t files = open_files();

	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/tokg-liar-%d", getpid());
	assert_int_equal(bind(listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(listener, 4), 0);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		believed(&lies[i], un.sun_path, listener);
		assert_int_equal(open_files(), files);
	}
	close(listener);
	unlink(un.sun_path);
}

static bool
refusal_is_final(uint32_t again)
{
	static const struct lie refusal = {.gift = NOTHING};
	struct liar l = {.lie = &refusal,
		.listener = socket(AF_UNIX, SOCK_STREAM, 0),
		.welcome = {.magic = TOKG_WELCOME_MAGIC,
			.version = TOKG_VERSION,
			.producer = TOKG_NO_PRODUCER,
			.again = again,
			.message = "not now"}};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct tokg_target target;
	struct tokg_where where;
	struct tokg_dial d;
	struct tokg_error why = {""};
	pthread_t thread;
	char text[128];
	bool final;
	int rc;

	snprintf(un.sun_path, sizeof(un.sun_path), "/tmp/tokg-refuses-%d", getpid());
	snprintf(text, sizeof(text), "shm:%s", un.sun_path);
	assert_int_equal(bind(l.listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(l.listener, 1), 0);
	assert_true(tokg_target_parse(&target, text, &why));
	assert_true(tokg_where_resolve(&where, &target, &why));
	pthread_create(&thread, NULL, lie_once, &l);
	tokg_dial_init(&d);
	memset(&d.hello, 0, sizeof(d.hello));
	d.hello.transport = TOKG_SHM;
	tokg_dial_begin(&d);
	while ((rc = tokg_dial_step(&d, &where, &why)) == 0)
		tokg_dial_wait(&d, 10);
	assert_true(rc < 0);
	assert_non_null(strstr(why.text, "refused: not now"));
	final = d.final;
	tokg_dial_end(&d);
	pthread_join(thread, NULL);
	close(l.listener);
	unlink(un.sun_path);
	return final;
}

/* A place is given up for the agent's last word alone. */
static void
a_refusal_is_final_unless_it_says_otherwise(void **state)
{
	assert_true(refusal_is_final(0));
	assert_false(refusal_is_final(1));
	assert_true(refusal_is_final(2));
}

/* By verbs nothing comes with the answer whose size could tell: the geometry alone is proved. */
static void
a_geometry_without_memory_is_proved_as_well(void **state)
{
	struct tokg_hello hello = {.resume = TOKG_NO_PRODUCER};
	struct tokg_welcome w = {
		.magic = TOKG_WELCOME_MAGIC, .version = TOKG_VERSION, .epoch = 1, .ring_epoch = 1};
	struct tokg_error why;

	agent_geometry(&w.geometry, 2, SLOTS);
	assert_true(tokg_welcome_proved(&hello, &w, &why));
	w.geometry.hdr_off += 64;
	assert_false(tokg_welcome_proved(&hello, &w, &why));
}

static void
a_queue_pair_that_is_none_is_refused(void **state)
{
	const struct tokg_rdma roce = {.roce = true};
	const struct tokg_qp right = {
		.qpn = 1, .psn = 0xffffff, .mtu = IBV_MTU_4096, .is_roce = 1, .gid = {0xfe}};
	struct tokg_qp wrong[] = {right, right, right, right, right, right, right};
	struct tokg_error why;

	assert_true(tokg_qp_proved(&roce, &right, &why));
	wrong[0].qpn = 0;
	wrong[1].qpn = 1u << 24;
	wrong[2].psn = 1u << 24;
	wrong[3].mtu = 0;
	wrong[4].mtu = 6;
	wrong[5].is_roce = 0;
	wrong[6].gid[0] = 0;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(tokg_qp_proved(&roce, &wrong[i], &why));
}

/* A completion queue without a device: `there` completions, then none. */
struct fake_cq {
	struct ibv_cq cq; /* first */
	uint64_t there, reaped;
};

static int
poll_fake(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	struct fake_cq *f = (struct fake_cq *)cq;
	int i;

	for (i = 0; i < n && f->reaped < f->there; i++)
		wc[i] = (struct ibv_wc){.wr_id = ++f->reaped, .status = IBV_WC_SUCCESS};
	return i;
}

/* A worker that was away for long finds more than it takes from the queue at once. */
static void
all_that_has_come_is_reaped_in_one_poll(void **state)
{
	struct ibv_context context = {.ops.poll_cq = poll_fake};
	struct fake_cq f = {.cq.context = &context, .there = 100};
	struct tokg_back back[2];
	struct tokg_verbs v = {.cq = &f.cq, .depth = 128, .taken = 100, .back_wr = 97};

	v.t.back = &back[0];
	v.landing = &back[1];
	assert_int_equal(tokg_verbs_poll(&v.t), 0);
	assert_int_equal(v.t.n_reads, 1);
	assert_ptr_equal(v.t.back, &back[1]);
	assert_int_equal(v.reaped, 100);
	assert_int_equal(tokg_verbs_poll(&v.t), 0);
	assert_int_equal(v.t.n_reads, 1);
}

static void
where_nobody_listens_is_said(void **state)
{
	struct tokg_error why;

	assert_null(open_to("/tmp/tokg-nobody", &why));
	assert_non_null(strstr(why.text, "GPU agent at /tmp/tokg-nobody: is tokd-gpu running"));
}

/* Before anything is made of an RDMA device, which need not be there. */
static void
by_verbs_too_it_is_said_first(void **state)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int s = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(in);
	struct tokg_error why = {""};
	char to[32];

	/* Bound, so nobody else's; but nobody listens. */
	assert_int_equal(bind(s, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&in, &len), 0);
	snprintf(to, sizeof(to), "127.0.0.1:%u", ntohs(in.sin_port));
	assert_null(open_by("verbs", to, &why));
	if (strstr(why.text, "is tokd-gpu running there? connect") == NULL)
		fail_msg("%s", why.text);
	close(s);
}

static void
a_host_is_asked_for_once(void **state)
{
	struct tokg_target t;
	struct tokg_where w;
	struct tokg_error why;

	assert_true(tokg_target_parse(&t, "verbs:127.0.0.1:7", &why));
	assert_int_equal(t.n_at, 0);
	assert_true(tokg_target_resolve(&t, &why));
	assert_int_equal(t.n_at, 1);
	strcpy(t.address, "256.0.0.1"); /* no address, and no name that is looked up anywhere */
	assert_true(tokg_where_resolve(&w, &t, &why));
	assert_int_equal(w.n, 1);
	assert_int_equal(
		((struct sockaddr_in *)&w.addr[0])->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_non_null(strstr(w.name, "256.0.0.1 port 7"));
}

static void
more_vocabularies_than_a_hello_has_are_refused(void **state)
{
	struct tokg_source many = source;
	struct tokg_target target;
	struct tokg_error why;
	char path[256];

	many.n_vocabs = TOKG_VOCABS_MAX + 1;
	assert_true(tokg_target_parse(&target, "shm", &why));
	assert_null(tokg_transport_open(&target, &many, OPEN_MS, path, &why));
	assert_non_null(strstr(why.text, "17 vocabularies"));
}

#define WITH_AGENT(test) cmocka_unit_test_setup_teardown(test, begin, finish)

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_parsed),
		cmocka_unit_test(wrong_targets_are_refused_with_a_remedy),
		WITH_AGENT(what_is_posted_stands_in_its_slot),
		WITH_AGENT(what_is_done_is_read_back),
		WITH_AGENT(a_lost_connection_is_made_again_for_the_same_place),
		WITH_AGENT(an_agent_that_restarted_is_not_the_same),
		WITH_AGENT(a_region_of_the_same_place_but_another_memory_is_refused),
		WITH_AGENT(reconnecting_to_nobody_ends),
		WITH_AGENT(the_agents_words_are_given),
		WITH_AGENT(strict_is_the_agents_or_the_users),
		WITH_AGENT(cuda_takes_host_memory_as_well),
		WITH_AGENT(stores_for_gpu_memory_write_and_read_what_they_should),
		cmocka_unit_test(an_agent_that_lies_is_found_out),
		cmocka_unit_test(a_refusal_is_final_unless_it_says_otherwise),
		cmocka_unit_test(a_geometry_without_memory_is_proved_as_well),
		cmocka_unit_test(a_queue_pair_that_is_none_is_refused),
		cmocka_unit_test(all_that_has_come_is_reaped_in_one_poll),
		cmocka_unit_test(where_nobody_listens_is_said),
		cmocka_unit_test(by_verbs_too_it_is_said_first),
		cmocka_unit_test(a_host_is_asked_for_once),
		cmocka_unit_test(more_vocabularies_than_a_hello_has_are_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("gpu transport", tests, NULL, NULL);
}
