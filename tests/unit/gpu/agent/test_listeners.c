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

#define LISTENERS 2
#define WAIT_MS 5000

struct tokg_verbs_server {
	char host[64];
	bool has; /* a queue pair of producer slot 0 */
};

static struct tokg_verbs_server servers[LISTENERS];
static uint32_t n_servers;
static bool both; /* the producer slot had two queue pairs at a time */

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

void
tokg_verbs_end(struct tokg_verbs_server *s, uint32_t producer)
{
	if (producer == 0)
		s->has = false;
}

static void *
run(void *arg)
{
	struct tokg_error err;

	tokg_agent_run(arg, &err);
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
	if (w.producer != 0)
		fail_msg("%s", w.message);
	return w;
}

TEST(each_listener_has_verbs_at_its_address_and_a_producer_slot_is_with_one)
{
	char folder[] = "/tmp/tokg-XXXXXX", subscribers[64];
	const uint16_t port = free_port();
	const struct tokg_options o = {.subscribers_mode = 0600,
		.subscribers_socket = subscribers,
		.subscriber_timeout_ms = 1000,
		.stuck_ms = 60000,
		.listen = {{.host = "127.0.0.1", .port = port},
			{.host = "127.0.0.2", .port = port}},
		.n_listen = LISTENERS};
	struct tokg_error err;
	struct tokg_welcome w;
	struct tokg_agent a;
	pthread_t thread;
	struct fake fake;

	fake_open(&fake);
	assert_non_null(mkdtemp(folder));
	snprintf(subscribers, sizeof(subscribers), "%s/subscribers", folder);
	if (!tokg_agent_open(&a, &o, &fake.device, 5, 77, &err))
		fail_msg("%s", err.text);
	assert_int_equal(n_servers, LISTENERS);
	assert_string_equal(servers[0].host, "127.0.0.1");
	assert_string_equal(servers[1].host, "127.0.0.2");
	assert_int_equal(pthread_create(&thread, NULL, run, &a), 0);

	w = say_hello(&o.listen[1], NULL);
	assert_true(servers[1].has && !servers[0].has);
	say_hello(&o.listen[0], &w);
	assert_true(servers[0].has && !servers[1].has);
	assert_false(both);

	kill(getpid(), SIGTERM); /* blocked: it comes by signalfd */
	pthread_join(thread, NULL);
	assert_true(tokg_agent_close(&a));
	assert_int_equal(n_servers, 0);
	fake_close(&fake);
	rmdir(folder);
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
