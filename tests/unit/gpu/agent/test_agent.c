/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which producers tokd-gpu accepts, and which memory they get, if the ring is in a GPU's memory.
 * And TCP listeners, each with verbs at its own address: this file replaces verbs_server.c, and
 * looks at the calls.
 */

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "unix_socket.h"
#include "tokd-gpu/agent.h"
#include "fake_device.h"
#include "handshake/link.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

#define WAIT_MS 5000
#define LISTENERS 2 /* by TCP */

struct fixture {
	struct fake fake; /* first */
	struct tokg_device_ops ops;
	uint32_t looks; /* at the consumer's heartbeat */
	struct tokg_options options;
	struct tokg_agent agent;
	struct tokg_error err;
	pthread_t thread;
	char folder[32], subscribers[64];
	bool ran, ended;
};

struct tokg_verbs_server {
	char host[64];
	bool has; /* a queue pair of producer slot 0 */
};

static struct tokg_verbs_server servers[LISTENERS];
static uint32_t n_servers;
static bool stuck; /* queue pairs are not destroyed */
static bool both;  /* the producer slot had two queue pairs at a time */

struct tokg_verbs_server *
tokg_verbs_server_open(
	const struct tokg_verbs_server_config *c, char path[256], struct tokg_error *err)
{
	struct tokg_verbs_server *const s = &servers[n_servers++];

	*s = (struct tokg_verbs_server){};
	snprintf(s->host, sizeof(s->host), "%s", c->host != NULL ? c->host : "none");
	strcpy(path, "of the test");
	return s;
}

void
tokg_verbs_server_close(struct tokg_verbs_server *s)
{
	n_servers--;
}

bool
tokg_verbs_grant(struct tokg_verbs_server *s, uint32_t producer, const struct tokg_qp *theirs,
	struct tokg_welcome *w, struct tokg_error *err)
{
	assert_int_equal(producer, 0);
	both |= servers[0].has || servers[1].has;
	s->has = true;
	return true;
}

bool
tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer, struct tokg_error *err)
{
	if (stuck && s->has) {
		strcpy(err->text, "the queue pair stays");
		return false;
	}
	if (producer == 0)
		s->has = false;
	return true;
}

static void *
run(void *arg)
{
	struct fixture *f = arg;

	f->ran = tokg_agent_run(&f->agent, &f->err);
	return NULL;
}

/* As device_cuda has it: no memfd, and a dma-buf if the driver makes one. */
static void
open_agent(struct fixture *f, bool dmabuf)
{
	struct tokg_options *const o = &f->options;

	fake_open(&f->fake);
	f->fake.device.region_dmabuf = dmabuf ? memfd_create("dmabuf", MFD_CLOEXEC) : -1;
	strcpy(f->folder, "/tmp/tokg-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->subscribers, sizeof(f->subscribers), "%s/subscribers", f->folder);
	o->socket_mode = o->subscribers_mode = 0600;
	o->subscribers_socket = f->subscribers;
	o->subscriber_timeout_ms = 1000;
	o->stuck_ms = 60000;
	if (o->n_listen == 0) {
		snprintf(o->listen[0].path, sizeof(o->listen[0].path), "%s/ring", f->folder);
		o->n_listen = 1;
	}
	if (!tokg_agent_open(&f->agent, o, &f->fake.device, 5, 77, &f->err))
		fail_msg("%s", f->err.text);
	f->ops = *f->fake.device.ops;
	f->fake.device.ops = &f->ops;
	fake_set_word(&f->fake, offsetof(struct tokg_ctl, heartbeat), 1);
}

static void
start_agent(struct fixture *f)
{
	if (!tokg_agent_start(&f->agent, &f->err))
		fail_msg("%s", f->err.text);
	assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
}

static void
begin(struct fixture *f, bool dmabuf)
{
	open_agent(f, dmabuf);
	start_agent(f);
}

static int
setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return *state == NULL;
}

static void
end(struct fixture *f, bool by_signal)
{
	if (by_signal)
		kill(getpid(), SIGTERM); /* blocked: it comes by signalfd */
	pthread_join(f->thread, NULL);
	f->ended = true;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	if (!f->ended)
		end(f, true);
	assert_int_equal(tokg_agent_close(&f->agent), f->fake.stops);
	assert_int_equal(n_servers, 0);
	if (f->fake.device.region_dmabuf >= 0)
		close(f->fake.device.region_dmabuf);
	fake_close(&f->fake);
	rmdir(f->folder);
	free(f);
	return 0;
}

/* The answer on a connection, which is closed, and the descriptor that came with it: -1, none. */
static struct tokg_welcome
answer_on(int s, uint32_t transport, const struct tokg_welcome *before, int *fd)
{
	const struct tokg_hello h = {.magic = TOKG_HELLO_MAGIC,
		.version = TOKG_VERSION,
		.transport = transport,
		.instance = 9,
		.worker = transport,
		.resume = before != NULL ? before->producer : TOKG_NO_PRODUCER,
		.epoch = before != NULL ? before->epoch : 0,
		.ring_epoch = before != NULL ? before->ring_epoch : 0,
		.n_vocabs = 1,
		.n_ids = {100}};
	struct pollfd p = {.fd = s, .events = POLLIN};
	struct tokg_welcome w;
	size_t moved = 0;
	int rc = 0;

	assert_int_equal(tokg_link_write(s, &h, sizeof(h), &moved), 1);
	moved = 0;
	*fd = -1;
	while (rc == 0) {
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		rc = tokg_link_read(s, &w, sizeof(w), &moved, fd);
	}
	assert_int_equal(rc, 1);
	close(s);
	return w;
}

static struct tokg_welcome
say_hello(const struct fixture *f, uint32_t transport, int *fd)
{
	return answer_on(unix_connect(f->options.listen[0].path, SOCK_STREAM), transport, NULL, fd);
}

FIXTURE_TEST(a_cuda_producer_gets_the_dmabuf_each_time)
{
	struct stat ours, theirs;

	begin(f, true);
	assert_int_equal(fstat(f->fake.device.region_dmabuf, &ours), 0);
	for (uint32_t i = 0; i < 2; i++) {
		int fd;
		const struct tokg_welcome w = say_hello(f, TOKG_CUDA, &fd);

		if (w.producer == TOKG_NO_PRODUCER)
			fail_msg("%s", w.message);
		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &theirs), 0);
		assert_int_equal(theirs.st_ino, ours.st_ino);
		assert_int_equal(theirs.st_dev, ours.st_dev);
		close(fd);
	}
}

FIXTURE_TEST(a_shm_producer_is_referred_to_cuda)
{
	struct tokg_welcome w;
	int fd;

	begin(f, true);
	w = say_hello(f, TOKG_SHM, &fd);
	assert_int_equal(w.producer, TOKG_NO_PRODUCER);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(w.message, "use --sink gpu=cuda"));
}

FIXTURE_TEST(without_a_dmabuf_producers_are_referred_to_verbs)
{
	const uint32_t transport[] = {TOKG_SHM, TOKG_CUDA};

	begin(f, false);
	for (uint32_t i = 0; i < 2; i++) {
		int fd;
		const struct tokg_welcome w = say_hello(f, transport[i], &fd);

		assert_int_equal(w.producer, TOKG_NO_PRODUCER);
		assert_int_equal(fd, -1);
		assert_non_null(strstr(w.message, "use --sink gpu=verbs"));
	}
}

static struct tokg_subscribe_rep
ask_to_hold(const struct fixture *f)
{
	const struct tokg_subscribe_req req = {
		.magic = TOKG_SUBSCRIBE_MAGIC, .version = TOKG_EMB_VERSION};
	const int s = unix_connect(f->subscribers, SOCK_SEQPACKET);
	struct pollfd p = {.fd = s, .events = POLLIN};
	struct tokg_subscribe_rep rep;

	assert_int_equal(send(s, &req, sizeof(req), 0), sizeof(req));
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(recv(s, &rep, sizeof(rep), 0), sizeof(rep)); /* descriptors: discarded */
	close(s);
	return rep;
}

FIXTURE_TEST(a_subscriber_gets_the_ipc_handle_or_an_error)
{
	struct tokg_device *d = &f->fake.device;
	struct tokg_subscribe_rep rep;

	begin(f, true);
	rep = ask_to_hold(f);
	assert_int_equal(rep.outputs, TOKG_OUTPUTS_MEMFD);
	close(d->outputs_fd);
	d->outputs_fd = -1;
	rep = ask_to_hold(f);
	assert_int_equal(rep.outputs, 0);
	assert_non_null(strstr(rep.message, "no CUDA IPC"));
	d->ipc[63] = d->uuid[15] = 1;
	rep = ask_to_hold(f);
	assert_int_equal(rep.outputs, TOKG_OUTPUTS_CUDA_IPC);
	assert_memory_equal(rep.ipc, d->ipc, sizeof(rep.ipc));
	assert_memory_equal(rep.uuid, d->uuid, sizeof(rep.uuid));
}

static int
beat_late(struct tokg_device *d, uint64_t offset, void *to, size_t bytes)
{
	struct fixture *f = (struct fixture *)d;

	if (offset == offsetof(struct tokg_ctl, heartbeat))
		fake_set_word(&f->fake, offset, ++f->looks >= 3);
	memcpy(to, (uint8_t *)d->region + offset, bytes);
	return 0;
}

static int
start_fails(struct tokg_device *d, uint32_t incarnation, struct tokg_error *err)
{
	strcpy(err->text, "no room for its blocks");
	return -1;
}

/* What waits for tokd-gpu is told after that. */
FIXTURE_TEST(start_waits_for_the_first_heartbeat)
{
	open_agent(f, true);
	f->ops.read = beat_late;
	start_agent(f);
	assert_true(f->looks >= 3);
}

FIXTURE_TEST(a_consumer_that_cannot_start_is_an_error)
{
	int (*own)(struct tokg_device *, uint32_t, struct tokg_error *);

	open_agent(f, true);
	own = f->ops.start;
	f->ops.start = start_fails;
	assert_false(tokg_agent_start(&f->agent, &f->err));
	assert_string_equal(f->err.text, "no room for its blocks");
	f->ops.start = own;
	start_agent(f);
}

static struct sockaddr_in
address(const char *host, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};

	assert_int_equal(inet_pton(AF_INET, host, &at.sin_addr), 1);
	return at;
}

/* One that nobody has. */
static uint16_t
free_port(void)
{
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = address("127.0.0.1", 0);
	socklen_t len = sizeof(at);

	assert_int_equal(bind(s, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&at, &len), 0);
	close(s);
	return ntohs(at.sin_port);
}

static void
begin_by_tcp(struct fixture *f)
{
	const uint16_t port = free_port();

	f->options.listen[0] = (struct tokg_listen){.host = "127.0.0.1", .port = port};
	f->options.listen[1] = (struct tokg_listen){.host = "127.0.0.2", .port = port};
	f->options.n_listen = LISTENERS;
	begin(f, false);
	assert_int_equal(n_servers, LISTENERS);
}

static struct tokg_welcome
say_hello_to(const struct fixture *f, uint32_t listener, const struct tokg_welcome *before)
{
	const struct tokg_listen *const l = &f->options.listen[listener];
	const struct sockaddr_in at = address(l->host, l->port);
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd;

	assert_int_equal(connect(s, (const struct sockaddr *)&at, sizeof(at)), 0);
	return answer_on(s, TOKG_VERBS, before, &fd);
}

FIXTURE_TEST(each_listener_has_verbs_and_a_producer_slot_has_one_queue_pair)
{
	struct tokg_welcome w;

	begin_by_tcp(f);
	assert_string_equal(servers[0].host, "127.0.0.1");
	assert_string_equal(servers[1].host, "127.0.0.2");
	w = say_hello_to(f, 1, NULL);
	if (w.producer != 0)
		fail_msg("%s", w.message);
	assert_true(servers[1].has && !servers[0].has);
	w = say_hello_to(f, 0, &w);
	if (w.producer != 0)
		fail_msg("%s", w.message);
	assert_true(servers[0].has && !servers[1].has);
	assert_false(both);
	end(f, true);
	assert_true(f->ran);
}

FIXTURE_TEST(a_queue_pair_that_cannot_be_destroyed_ends_the_agent)
{
	struct tokg_welcome w;

	begin_by_tcp(f);
	w = say_hello_to(f, 1, NULL);
	assert_int_equal(w.producer, 0);
	stuck = true;
	w = say_hello_to(f, 0, &w);
	stuck = false;
	assert_int_equal(w.producer, TOKG_NO_PRODUCER);
	assert_string_equal(w.message, "the queue pair stays");
	end(f, false);
	assert_false(f->ran);
	assert_non_null(strstr(f->err.text, "the queue pair stays: it could write"));
}

int
main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return tests_run();
}
