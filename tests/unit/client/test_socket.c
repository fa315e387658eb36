/* SPDX-License-Identifier: BSD-3-Clause */
/* The client over real sockets on loopback, against world.c's server in a thread. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client_inside.h"
#include "loopback.h"

/* The linker has the library call this one (meson.build): a flood that never ends, if wanted. */
static bool flooded;
int __real_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags, struct timespec *t);
int __wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags, struct timespec *t);

int
__wrap_recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags, struct timespec *t)
{
	if (!flooded)
		return __real_recvmmsg(fd, msgs, n, flags, t);
	for (unsigned int i = 0; i < n; i++)
		msgs[i].msg_len = 1;
	return (int)n;
}

static struct tokd_client *
opened(const char *host, const struct loopback *f, const struct tokd_client_options *options)
{
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c = tokd_client_open(host, f->port, options, error);

	assert_non_null(c);
	return c;
}

static struct tokd_request
a_prompt(char out[TOKD_GENERATE_ROOM], uint32_t limit)
{
	return (struct tokd_request){.text = "a prompt",
		.len = 8,
		.out = out,
		.max_ids = TOKD_GENERATE_ROOM,
		.flags = TOKD_REQUEST_GENERATE,
		.limit = limit};
}

static void
leave(struct tokd_client *c, struct loopback *f)
{
	tokd_client_close(c);
	server_end(f);
}

static void
one_text(const char *host, int family, bool spin)
{
	const struct tokd_client_options options = {.spin = spin};
	static uint32_t ids[50000];
	static uint8_t text[50000];
	static char back[50000];
	struct tokd_client *c;
	struct loopback f;

	server_start(&f, family);
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7);
	c = opened(host, &f, &options);
	for (uint32_t n = 0; n <= sizeof(text); n += 25000) {
		assert_int_equal(tokd_client_tokenize(c, text, n, ids, 50000, 10000), n);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(ids[i], text[i]);
		assert_int_equal(tokd_client_detokenize(c, ids, n, 0, back, n, 10000), n);
		assert_memory_equal(back, text, n);
	}
	assert_int_equal(tokd_client_detokenize(c, ids, 1000, 0, back, 999, 0), TOKD_E_ROOM);
	assert_non_null(strstr(tokd_client_error(c), "1000 bytes or more, but max_ids is 999"));
	assert_int_equal(tokd_client_tokenize(c, text, 1000, ids, 999, 0), TOKD_E_ROOM);
	assert_non_null(strstr(tokd_client_error(c), "1000 ids or more, but max_ids is 999"));
	leave(c, &f);
}

TEST(a_text_over_ipv4)
{
	one_text("127.0.0.1", AF_INET, false);
}

TEST(a_text_over_ipv6)
{
	one_text("::1", AF_INET6, false);
}

TEST(a_text_by_busy_polling)
{
	one_text("localhost", AF_INET, true);
}

/* The last one is cancelled on the way. Its end is heard of by the call that waits for nothing. */
TEST(answers_of_a_model)
{
	const struct tokd_client_options options = {.requests = 1};
	static char out[TOKD_GENERATE_ROOM];
	struct tokd_client *c;
	struct loopback f;

	server_start(&f, AF_INET);
	server_go(&f);
	c = opened("127.0.0.1", &f, &options);
	for (uint32_t cancels = 0; cancels < 2; cancels++) {
		struct tokd_request *done, r = a_prompt(out, 5000);
		struct tokd_made made = {0};
		const char *text;
		uint32_t n = 0;

		assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
		while (r.status == TOKD_PENDING && (n == 0 || !cancels)) {
			assert_int_equal(tokd_client_wait(c, &done, 1, 20000), 1);
			while (tokd_client_made(c, &r, &made, &text)) {
				char expected[ITEM_TEXT_MAX];

				assert_int_equal(made.text, item_text(n, expected));
				assert_memory_equal(text, expected, made.text);
				n += made.end == TOKD_MADE_MORE;
			}
		}
		if (cancels) {
			tokd_client_cancel(c, &r);
			assert_int_equal(r.status, TOKD_E_CANCELLED);
			assert_true(tokd_client_next_ns(c) != UINT64_MAX);
			assert_int_equal(tokd_client_wait(c, &done, 1, -1), 0);
			assert_int_equal(tokd_client_next_ns(c), UINT64_MAX);
			assert_true(f.server->stream[1].ends == TOKD_MADE_CANCELLED);
		} else {
			assert_int_equal(r.status, TOKD_OK);
			assert_int_equal(made.end, TOKD_MADE_LENGTH);
			assert_int_equal(n, 5000);
		}
	}
	leave(c, &f);
}

/* A datagram of another client is read after all that was sent before. */
static void
until_heard(struct loopback *f)
{
	struct tokd_client *c = opened("127.0.0.1", f, NULL);
	uint32_t id;

	assert_int_equal(tokd_client_tokenize(c, "a", 1, &id, 1, 20000), 1);
	tokd_client_close(c);
}

/* Of two answers under way, a prompt and a text that were not sent. */
TEST(closing_ends_answers_but_not_those_of_a_parent)
{
	static char out[3][TOKD_GENERATE_ROOM];
	static uint32_t ids[8];
	struct tokd_request *done, text = {.text = "a text", .len = 6, .ids = ids, .max_ids = 8};
	struct tokd_request prompt[3];
	struct tokd_client *c;
	struct loopback f;
	uint32_t n;
	int status;
	pid_t child;

	server_start(&f, AF_INET);
	f.server->make_window = 1000; /* nothing is taken: it goes no further */
	server_go(&f);
	c = opened("127.0.0.1", &f, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		prompt[i] = a_prompt(out[i], 1000);
		assert_int_equal(tokd_client_submit(c, &prompt[i]), TOKD_PENDING);
		while (i < 2 && prompt[i].n_ids == 0)
			tokd_client_wait(c, &done, 1, 20000);
	}
	assert_int_equal(tokd_client_submit(c, &text), TOKD_PENDING);
	child = fork();
	if (child == 0) {
		tokd_client_close(c);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	until_heard(&f);
	n = f.server->cancels;
	tokd_client_close(c);
	until_heard(&f);
	assert_int_equal(n, 0);
	assert_int_equal(f.server->cancels, 2);
	assert_int_equal(f.server->stream[0].ends, TOKD_MADE_CANCELLED);
	assert_int_equal(f.server->stream[1].ends, TOKD_MADE_CANCELLED);
	assert_int_equal(f.server->n, 2 + 2); /* two answers, and two of until_heard() */
	server_end(&f);
}

/*
 * Its acknowledgements, by no other call, let the model go on: the server's window is used up. Also
 * for an event loop, which would sleep until the next time-out.
 */
static void
taken_by(uint32_t most)
{
	static char out[TOKD_GENERATE_ROOM];
	struct tokd_request *done, r = a_prompt(out, 1000);
	struct tokd_client *c;
	struct tokd_made made;
	const char *text;
	struct loopback f;
	struct pollfd p;

	server_start(&f, AF_INET);
	f.server->make_window = 1000; /* in one reply */
	server_go(&f);
	c = opened("127.0.0.1", &f, NULL);
	assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
	assert_int_equal(tokd_client_wait(c, &done, 1, 20000), 1);
	assert_in_range(r.made, 20, 999);
	while (most-- > 0 && tokd_client_made(c, &r, &made, &text))
		;
	p = (struct pollfd){.fd = tokd_client_fd(c), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 20000), 1);
	leave(c, &f);
}

TEST(taking_some_or_all_lets_the_model_go_on_without_another_call)
{
	taken_by(16);
	taken_by(UINT32_MAX);
}

TEST(many_at_once)
{
	enum { N = 400 };
	const struct tokd_client_options options = {.requests = N, .packets = 64};
	static struct tokd_request r[N];
	static uint32_t ids[N][2000];
	static uint8_t text[2000 + N];
	struct tokd_request *done[32];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ended = 0;

	server_start(&f, AF_INET);
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 31 >> 3);
	c = opened("127.0.0.1", &f, &options);
	for (uint32_t i = 0; i < N; i++) {
		r[i] = (struct tokd_request){
			.text = text + i, .len = 5 * i, .ids = ids[i], .max_ids = 2000};
		r[i].user = &ids[i];
		assert_int_equal(tokd_client_submit(c, &r[i]), TOKD_PENDING);
	}
	while (ended < N) {
		uint32_t n = tokd_client_wait(c, done, 32, 5000);

		assert_true(n > 0);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(done[i]->status, TOKD_OK);
			assert_ptr_equal(done[i]->user, &ids[done[i] - r]);
		}
		ended += n;
	}
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(r[i].n_ids, 5 * i);
		for (uint32_t k = 0; k < r[i].n_ids; k++)
			assert_int_equal(ids[i][k], text[i + k]);
	}
	assert_int_equal(tokd_client_wait(c, done, 32, -1), 0); /* nothing is under way */
	leave(c, &f);
}

TEST(a_caller_that_was_away_reads_what_came_before_it_sends_again)
{
	enum { N = 400 }; /* more than one call takes in */
	const struct tokd_client_options options = {.requests = N, .packets = N};
	static struct tokd_request r[N], *done[N];
	static uint32_t ids[N][8];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ended = 0;

	server_start(&f, AF_INET);
	server_go(&f);
	c = opened("127.0.0.1", &f, &options);
	for (uint32_t i = 0; i < N; i++) {
		r[i] = (struct tokd_request){
			.text = "a text", .len = 6, .ids = ids[i], .max_ids = 8};
		assert_int_equal(tokd_client_submit(c, &r[i]), TOKD_PENDING);
		if (i % 100 < 99)
			continue; /* no more at once than fit the server's receive buffer */
		tokd_client_flush(c);
		while (f.answered <= i)
			usleep(1000);
	}
	usleep(30000); /* now all are overdue */
	while (ended < N)
		ended += tokd_client_wait(c, done, N, 5000);
	assert_int_equal(tokd_client_stats(c).retransmits, 0);
	assert_int_equal(tokd_client_stats(c).bad, 0);
	leave(c, &f);
}

TEST(a_flood_does_not_hold_off_the_time_limit)
{
	const struct tokd_client_options options = {.timeout_ms = 50};
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	server_start(&f, AF_INET);
	c = opened("127.0.0.1", &f, &options);
	flooded = true;
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 0), TOKD_E_TIMEOUT);
	flooded = false;
	assert_non_null(strstr(tokd_client_error(c), "0 of 1 packets have arrived there"));
	tokd_client_close(c);
	server_go(&f);
	server_end(&f);
}

/* The longest that UDP carries; more is two packets. */
TEST(a_text_in_one_datagram)
{
	const struct tokd_client_options options = {.payload = 65443};
	static const uint32_t lengths[] = {65443, 65444};
	static uint32_t ids[65444];
	static uint8_t text[65444];
	struct tokd_client *c;
	struct loopback f;

	server_start(&f, AF_INET);
	f.server->payload = options.payload;
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 13 >> 2);
	c = opened("127.0.0.1", &f, &options);
	for (uint32_t l = 0; l < 2; l++) {
		assert_int_equal(
			tokd_client_tokenize(c, text, lengths[l], ids, 65444, 10000), lengths[l]);
		for (uint32_t i = 0; i < lengths[l]; i++)
			assert_int_equal(ids[i], text[i]);
	}
	leave(c, &f);
}

TEST(packets_fit_the_path_that_the_options_name)
{
	static const struct {
		int family;
		const char *host;
		uint32_t mtu, payload, want;
	} cases[] = {{AF_INET, "127.0.0.1", 1420, 0, 1420 - 28 - 64},
		{AF_INET, "127.0.0.1", 9000, 0, 1376}, {AF_INET, "127.0.0.1", 576, 1000, 1000},
		{AF_INET6, "::1", 1420, 0, 1420 - 48 - 64}};
	static uint32_t ids[20000];
	static uint8_t text[20000];

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tokd_client_options options = {
			.mtu = cases[i].mtu, .payload = cases[i].payload};
		struct tokd_client *c;
		struct loopback f;

		server_start(&f, cases[i].family);
		f.server->payload = cases[i].want;
		server_go(&f);
		c = opened(cases[i].host, &f, &options);
		assert_int_equal(
			tokd_client_tokenize(c, text, sizeof(text), ids, 20000, 10000), 20000);
		leave(c, &f);
	}
}

/* The MTU of loopback, in a network of this thread's own. */
static void
set_mtu(int mtu)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	assert_int_equal(ioctl(fd, SIOCSIFMTU, &lo), 0);
	close(fd);
}

static void
return_to_network(int before)
{
	assert_int_equal(setns(before, CLONE_NEWNET), 0);
	close(before);
}

/*
 * A network with loopback only, also for threads to come. Returns that of before. qemu-user does
 * not say what MTU a path has.
 */
static int
leave_network(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
		.sin_port = htons(9),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int before = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), fd, mtu, rc;
	socklen_t len = sizeof(mtu);

	if (before < 0 || unshare(CLONE_NEWNET) != 0)
		test_skip("no network of its own: %s", strerror(errno));
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	rc = getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len);
	close(fd);
	if (rc == 0)
		return before;
	return_to_network(before);
	test_skip("no MTU of a path, as under qemu-user");
}

/* In one burst with a text's packets, of which the first does not fit any more. */
TEST(polls_behind_a_packet_that_is_too_long_are_sent)
{
	static char out[TOKD_GENERATE_ROOM];
	static uint32_t ids[2][5000];
	static uint8_t bytes[5000];
	const int before = leave_network();
	struct tokd_request *done[2], r = a_prompt(out, 1000);
	struct tokd_request text[2];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ended = 0;

	server_start(&f, AF_INET);
	f.server->make_window = 1000; /* nothing is taken: it goes no further */
	server_go(&f);
	c = opened("127.0.0.1", &f, NULL);
	assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
	assert_int_equal(tokd_client_wait(c, done, 1, 20000), 1);
	for (uint32_t i = 0; i < 2; i++) {
		text[i] = (struct tokd_request){.text = bytes,
			.len = i == 0 ? 8 : sizeof(bytes), /* the first packet goes alone */
			.ids = ids[i],
			.max_ids = 5000};
		assert_int_equal(tokd_client_submit(c, &text[i]), TOKD_PENDING);
	}
	set_mtu(1280);
	f.server->payload = 1280 - 28 - 64;
	tokd_client_cancel(c, &r);
	until_heard(&f);
	assert_int_equal(f.server->cancels, 1);
	while (ended < 2)
		ended += tokd_client_wait(c, done, 2, 20000);
	assert_int_equal(text[0].status, TOKD_OK);
	assert_int_equal(text[1].status, TOKD_OK);
	leave(c, &f);
	return_to_network(before);
}

/* The kernel forgets what a router said, or an interface is set to more. */
TEST(packets_grow_with_the_path_up_to_what_the_options_name)
{
	static const uint32_t most[] = {0, 1300}, packets[] = {9, 10};
	static uint8_t bytes[10 * (1300 - 28 - 64)];
	static uint32_t ids[sizeof(bytes)];
	const int before = leave_network();

	for (uint32_t i = 0; i < 2; i++) {
		const struct tokd_client_options options = {.mtu = most[i]};
		struct tokd_request *done, r = {.text = bytes,
						   .len = sizeof(bytes),
						   .ids = ids,
						   .max_ids = sizeof(bytes)};
		struct tokd_client *c;
		struct loopback f;

		server_start(&f, AF_INET);
		set_mtu(1280);
		f.server->payload = 1280 - 28 - 64;
		server_go(&f);
		c = opened("127.0.0.1", &f, &options);
		assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
		assert_int_equal(tokd_client_wait(c, &done, 1, 20000), 1);
		assert_int_equal(r.packets, 11);
		set_mtu(1500);
		f.server->payload = i == 0 ? TOKD_WIRE_PAYLOAD : 1300 - 28 - 64;
		c->appliance[0].path_at = 0; /* 10 s later */
		tokd_client_poll(c, &done, 1);
		assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
		assert_int_equal(tokd_client_wait(c, &done, 1, 20000), 1);
		assert_int_equal(r.status, TOKD_OK);
		assert_int_equal(r.packets, packets[i]);
		leave(c, &f);
	}
	return_to_network(before);
}

TEST(a_call_ends_at_its_own_time_limit)
{
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	server_start(&f, AF_INET);
	c = opened("127.0.0.1", &f, NULL); /* bound, but nobody answers */
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 50), TOKD_E_TIMEOUT);
	assert_non_null(strstr(tokd_client_error(c), "after 50 ms"));
	assert_null(strstr(tokd_client_error(c), "refuses")); /* it has said nothing */
	tokd_client_close(c);
	server_go(&f);
	server_end(&f);
}

TEST(nobody_there_is_an_error_at_once)
{
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	server_start(&f, AF_INET);
	c = opened("127.0.0.1", &f, NULL);
	server_go(&f);
	server_end(&f); /* its port is closed now */
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 4000), TOKD_E_NET);
	assert_non_null(strstr(tokd_client_error(c), "refused"));
	tokd_client_close(c);
}

/* An event loop is told to look for them: no datagram comes any more. */
TEST(texts_that_fail_in_a_flush_are_there_at_once)
{
	struct tokd_request r[2] = {{.text = "one", .len = 3}, {.text = "two", .len = 3}}, *done[2];
	struct tokd_client *c;
	struct loopback f;

	server_start(&f, AF_INET);
	c = opened("127.0.0.1", &f, NULL);
	server_go(&f);
	server_end(&f); /* its port is closed now */
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(tokd_client_submit(c, &r[i]), TOKD_PENDING);
		tokd_client_flush(c);
	}
	assert_int_equal(r[1].status, TOKD_E_NET);
	assert_int_equal(tokd_client_next_ns(c), 0);
	assert_int_equal(tokd_client_poll(c, done, 2), 2);
	assert_true(tokd_client_next_ns(c) > 0);
	tokd_client_close(c);
}

/*
 * Begins a text while nothing has the port. Returns the text's end, when `back` is there again, and
 * in `said` its description.
 */
static int64_t
over_a_restart(
	struct loopback *f, struct loopback *back, uint32_t ids[8], char said[TOKD_ERROR_MAX])
{
	const struct tokd_client_options options = {.timeout_ms = 5000};
	struct tokd_request r = {.text = "again", .len = 5, .ids = ids, .max_ids = 8}, *done;
	struct tokd_client *c;
	int64_t end;

	server_go(f);
	c = opened("127.0.0.1", f, &options);
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 4000), 4);
	server_end(f);
	assert_int_equal(tokd_client_submit(c, &r), TOKD_PENDING);
	for (uint32_t i = 0; i < 20; i++)
		assert_int_equal(tokd_client_wait(c, &done, 1, 5), 0);
	if (back != NULL) {
		server_start_at(back, AF_INET, f->port);
		server_go(back);
	}
	assert_int_equal(tokd_client_wait(c, &done, 1, 20000), 1);
	end = r.status == TOKD_OK ? (int64_t)r.n_ids : r.status;
	tokd_client_describe(c, &r, said);
	tokd_client_close(c);
	if (back != NULL)
		server_end(back);
	return end;
}

TEST(a_text_waits_while_the_host_of_an_appliance_that_restarts_refuses)
{
	char said[TOKD_ERROR_MAX];
	struct loopback f, back;
	uint32_t ids[8];

	server_start(&f, AF_INET);
	assert_int_equal(over_a_restart(&f, &back, ids, said), 5);
	assert_int_equal(ids[0], 'a');
	assert_null(strstr(said, "refuses"));
}

TEST(it_waits_no_longer_than_its_time_limit_and_says_that_the_host_refuses)
{
	char said[TOKD_ERROR_MAX], want[80];
	struct loopback f;
	uint32_t ids[8];

	server_start(&f, AF_INET);
	assert_int_equal(over_a_restart(&f, NULL, ids, said), TOKD_E_TIMEOUT);
	snprintf(want, sizeof(want),
		"127.0.0.1:%u refuses (nothing listens there): no progress for", f.port);
	assert_non_null(strstr(said, want));
}

TEST(what_cannot_be_opened_says_why)
{
	const struct tokd_client_options too_many = {.requests = 70000};
	const struct tokd_client_options too_long = {.payload = 65444}, too_narrow = {.mtu = 575};
	char error[TOKD_ERROR_MAX];

	assert_null(tokd_client_open("no such host", 9000, NULL, error));
	assert_non_null(strstr(error, "no such host:9000"));
	assert_int_equal(errno, EAI_NONAME);
	assert_null(tokd_client_open("127.0.0.1", 9000, &too_many, error));
	assert_string_equal(error, "requests = 70000: must be at most 65536");
	assert_int_equal(errno, EINVAL);
	assert_null(tokd_client_open("127.0.0.1", 9000, &too_long, error));
	assert_string_equal(error, "payload = 65444: must be at most 65443");
	assert_null(tokd_client_open("127.0.0.1", 9000, &too_narrow, error));
	assert_string_equal(error, "mtu = 575: must be at least 576");
	assert_null(tokd_client_open("127.0.0.1", 0, NULL, error));
	assert_string_equal(error, "port 0: give a number from 1 to 65535");
	assert_null(tokd_client_open("fe80::1", 9000, NULL, error));
	assert_string_equal(error,
		"[fe80::1]:9000: Invalid argument: an address of fe80::/10 needs its interface, as "
		"in fe80::1%eth0");
}

TEST(every_end_of_a_request_has_words)
{
	char error[TOKD_ERROR_MAX], text[TOKD_ERROR_MAX];
	struct tokd_client *c = tokd_client_open("127.0.0.1", 9, NULL, error);

	assert_non_null(c);
	tokd_client_describe(c,
		&(struct tokd_request){
			.status = TOKD_E_REFUSED, .reason = TOKD_R_VERSION, .error = 2},
		text);
	assert_string_equal(text,
		"127.0.0.1:9: VERSION (1): the appliance speaks version 2 of the protocol, this "
		"client 1: upgrade the client");
	for (int status = TOKD_E_ANSWER; status <= TOKD_PENDING; status++) {
		for (uint32_t reason = 0; reason < 3 * (TOKD_R_MAX + 1); reason++) {
			static const uint32_t flags[] = {
				0, TOKD_REQUEST_DECODE, TOKD_REQUEST_GENERATE};
			struct tokd_request r = {.status = status,
				.reason = reason / 3,
				.flags = flags[reason % 3],
				.error = ECONNREFUSED,
				.resends = 8,
				.n_ids = UINT32_MAX,
				.total = UINT32_MAX,
				.max_ids = UINT32_MAX};

			tokd_client_describe(c, &r, text);
			assert_in_range(strlen(text), 10, TOKD_ERROR_MAX - 2);
			assert_null(strchr(text, '\n'));
		}
	}
	tokd_client_close(c);
}
