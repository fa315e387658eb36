/* SPDX-License-Identifier: BSD-3-Clause */
/* The client over real sockets on loopback, against world.c's server in a thread. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

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

static void
one_text(const char *host, int family, bool spin)
{
	const struct tokd_client_options options = {.spin = spin};
	char error[TOKD_ERROR_MAX];
	static uint32_t ids[50000];
	static uint8_t text[50000];
	static char back[50000];
	struct tokd_client *c;
	struct loopback f;

	if (!server_start(&f, family))
		skip();
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 7);
	c = tokd_client_open(host, f.port, &options, error);
	assert_non_null(c);
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
	tokd_client_close(c);
	server_end(&f);
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

TEST(many_at_once)
{
	enum { N = 400 };
	const struct tokd_client_options options = {.requests = N, .packets = 64};
	static struct tokd_request r[N];
	static uint32_t ids[N][2000];
	static uint8_t text[2000 + N];
	struct tokd_request *done[32];
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ended = 0;

	if (!server_start(&f, AF_INET))
		skip();
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 31 >> 3);
	c = tokd_client_open("127.0.0.1", f.port, &options, error);
	assert_non_null(c);
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
	tokd_client_close(c);
	server_end(&f);
}

TEST(a_caller_that_was_away_reads_what_came_before_it_sends_again)
{
	enum { N = 400 }; /* more than one call takes in */
	const struct tokd_client_options options = {.requests = N, .packets = N};
	static struct tokd_request r[N], *done[N];
	static uint32_t ids[N][8];
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ended = 0;

	if (!server_start(&f, AF_INET))
		skip();
	server_go(&f);
	c = tokd_client_open("127.0.0.1", f.port, &options, error);
	assert_non_null(c);
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
	tokd_client_close(c);
	server_end(&f);
}

TEST(a_flood_does_not_hold_off_the_time_limit)
{
	const struct tokd_client_options options = {.timeout_ms = 50};
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	if (!server_start(&f, AF_INET))
		skip();
	c = tokd_client_open("127.0.0.1", f.port, &options, error);
	assert_non_null(c);
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
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;

	if (!server_start(&f, AF_INET))
		skip();
	f.server->payload = options.payload;
	server_go(&f);
	for (uint32_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t)(i * 13 >> 2);
	c = tokd_client_open("127.0.0.1", f.port, &options, error);
	assert_non_null(c);
	for (uint32_t l = 0; l < 2; l++) {
		assert_int_equal(
			tokd_client_tokenize(c, text, lengths[l], ids, 65444, 10000), lengths[l]);
		for (uint32_t i = 0; i < lengths[l]; i++)
			assert_int_equal(ids[i], text[i]);
	}
	tokd_client_close(c);
	server_end(&f);
}

TEST(a_call_ends_at_its_own_time_limit)
{
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	if (!server_start(&f, AF_INET))
		skip();
	c = tokd_client_open("127.0.0.1", f.port, NULL, error); /* bound, but nobody answers */
	assert_non_null(c);
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 50), TOKD_E_TIMEOUT);
	assert_non_null(strstr(tokd_client_error(c), "after 50 ms"));
	tokd_client_close(c);
	server_go(&f);
	server_end(&f);
}

TEST(nobody_there_is_an_error_at_once)
{
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct loopback f;
	uint32_t ids[8];

	if (!server_start(&f, AF_INET))
		skip();
	c = tokd_client_open("127.0.0.1", f.port, NULL, error);
	assert_non_null(c);
	server_go(&f);
	server_end(&f); /* its port is closed now */
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids, 8, 4000), TOKD_E_NET);
	assert_non_null(strstr(tokd_client_error(c), "refused"));
	tokd_client_close(c);
}

TEST(what_cannot_be_opened_says_why)
{
	const struct tokd_client_options too_many = {.requests = 70000};
	const struct tokd_client_options too_long = {.payload = 65444};
	char error[TOKD_ERROR_MAX];

	assert_null(tokd_client_open("no such host", 9000, NULL, error));
	assert_non_null(strstr(error, "no such host:9000"));
	assert_int_equal(errno, EAI_NONAME);
	assert_null(tokd_client_open("127.0.0.1", 9000, &too_many, error));
	assert_string_equal(error, "requests = 70000: must be at most 65536");
	assert_int_equal(errno, EINVAL);
	assert_null(tokd_client_open("127.0.0.1", 9000, &too_long, error));
	assert_string_equal(error, "payload = 65444: must be at most 65443");
}

TEST(every_end_of_a_request_has_words)
{
	char error[TOKD_ERROR_MAX], text[TOKD_ERROR_MAX];
	struct tokd_client *c = tokd_client_open("127.0.0.1", 9, NULL, error);

	assert_non_null(c);
	tokd_client_describe(c,
		&(struct tokd_request){.status = TOKD_E_REFUSED,
			.reason = TOKD_R_LENGTH,
			.flags = TOKD_REQUEST_DECODE},
		text);
	assert_string_equal(text,
		"127.0.0.1:9: LENGTH (3): the appliance is of a release that cannot decode: use a "
		"newer one");
	for (int status = TOKD_E_CANCELLED; status <= TOKD_PENDING; status++) {
		for (uint32_t reason = 0; reason < 40; reason++) {
			struct tokd_request r = {.status = status,
				.reason = reason / 2,
				.flags = reason % 2 ? TOKD_REQUEST_DECODE : 0,
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
