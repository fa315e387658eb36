/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokd-gpu with several TCP listeners: each has its end of verbs, at its own address. RDMA is this
 * file's, in place of verbs_server.c: what was asked of it is looked at.
 */

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"
#include "tokd-gpu/agent.h"
#include "fake_device.h"
#include "handshake/link.h"

#define FIXTURE_TEST(name) TEST_ON(name, setup, teardown, struct fixture *f)

#define LISTENERS 2
#define WAIT_MS 5000

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

struct fixture {
	struct fake fake;
	struct tokg_options options;
	struct tokg_agent agent;
	struct tokg_error err;
	pthread_t thread;
	char folder[32], subscribers[64];
	bool ran;
};

static void *
run(void *arg)
{
	struct fixture *f = arg;

	f->ran = tokg_agent_start(&f->agent, &f->err) && tokg_agent_run(&f->agent, &f->err);
	return NULL;
}

static struct sockaddr_in
address(const struct tokg_listen *l)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(l->port)};

	assert_int_equal(inet_pton(AF_INET, l->host, &at.sin_addr), 1);
	return at;
}

/* One that nobody has. */
static uint16_t
free_port(void)
{
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct tokg_listen any = {.host = "127.0.0.1"};
	struct sockaddr_in at = address(&any);
	socklen_t len = sizeof(at);

	assert_int_equal(bind(s, (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&at, &len), 0);
	close(s);
	return ntohs(at.sin_port);
}

static struct tokg_welcome
say_hello(const struct tokg_listen *l, const struct tokg_welcome *before)
{
	const struct tokg_hello h = {.magic = TOKG_HELLO_MAGIC,
		.version = TOKG_VERSION,
		.transport = TOKG_VERBS,
		.instance = 9,
		.resume = before != NULL ? before->producer : TOKG_NO_PRODUCER,
		.epoch = before != NULL ? before->epoch : 0,
		.ring_epoch = before != NULL ? before->ring_epoch : 0,
		.n_vocabs = 1,
		.n_ids = {100}};
	const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_in at = address(l);
	struct pollfd p = {.fd = s, .events = POLLIN};
	struct tokg_welcome w;
	size_t moved = 0;

	assert_int_equal(connect(s, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(tokg_link_write(s, &h, sizeof(h), &moved), 1);
	moved = 0;
	do
		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	while (tokg_link_read(s, &w, sizeof(w), &moved, NULL) == 0);
	close(s);
	return w;
}

static int
setup(void **state)
{
	struct fixture *const f = *state = calloc(1, sizeof(*f));
	const uint16_t port = free_port();

	fake_open(&f->fake);
	fake_set_word(&f->fake, offsetof(struct tokg_ctl, heartbeat), 1);
	strcpy(f->folder, "/tmp/tokg-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->subscribers, sizeof(f->subscribers), "%s/subscribers", f->folder);
	f->options = (struct tokg_options){.subscribers_mode = 0600,
		.subscribers_socket = f->subscribers,
		.subscriber_timeout_ms = 1000,
		.stuck_ms = 60000,
		.listen = {{.host = "127.0.0.1", .port = port},
			{.host = "127.0.0.2", .port = port}},
		.n_listen = LISTENERS};
	if (!tokg_agent_open(&f->agent, &f->options, &f->fake.device, 5, 77, &f->err))
		fail_msg("%s", f->err.text);
	assert_int_equal(n_servers, LISTENERS);
	return pthread_create(&f->thread, NULL, run, f);
}

/* It has ended. */
static int
teardown(void **state)
{
	struct fixture *const f = *state;

	assert_true(tokg_agent_close(&f->agent));
	assert_int_equal(n_servers, 0);
	fake_close(&f->fake);
	rmdir(f->folder);
	free(f);
	return 0;
}

FIXTURE_TEST(each_listener_has_verbs_at_its_address_and_a_producer_slot_is_with_one)
{
	struct tokg_welcome w;

	assert_string_equal(servers[0].host, "127.0.0.1");
	assert_string_equal(servers[1].host, "127.0.0.2");
	w = say_hello(&f->options.listen[1], NULL);
	if (w.producer != 0)
		fail_msg("%s", w.message);
	assert_true(servers[1].has && !servers[0].has);
	w = say_hello(&f->options.listen[0], &w);
	if (w.producer != 0)
		fail_msg("%s", w.message);
	assert_true(servers[0].has && !servers[1].has);
	assert_false(both);
	kill(getpid(), SIGTERM); /* blocked: it comes by signalfd */
	pthread_join(f->thread, NULL);
	assert_true(f->ran);
}

FIXTURE_TEST(a_producer_that_cannot_be_kept_from_writing_ends_it)
{
	struct tokg_welcome w = say_hello(&f->options.listen[1], NULL);

	assert_int_equal(w.producer, 0);
	stuck = true;
	w = say_hello(&f->options.listen[0], &w);
	stuck = false;
	assert_int_equal(w.producer, TOKG_NO_PRODUCER);
	assert_string_equal(w.message, "the queue pair stays");
	pthread_join(f->thread, NULL);
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
