/* SPDX-License-Identifier: BSD-3-Clause */
/* Several appliances: which has a text, which are healthy, and what becomes of a dead one's. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include "client_inside.h"
#include "engine.h"
#include "loopback.h"

#define VOCAB 5 /* of the server */
#define TEXTS 300
#define MOST 64 /* bytes of a text */

static uint8_t text[TEXTS][MOST];
static uint32_t ids[TEXTS][MOST];
static struct tokd_request request[TEXTS];

static struct tokd_client *
client_of(const char *hosts, uint32_t timeout_ms)
{
	const struct tokd_client_options options = {
		.vocab = VOCAB, .requests = TEXTS, .timeout_ms = timeout_ms};
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c = tokd_client_open(hosts, TOKD_WIRE_PORT, &options, error);

	assert_non_null(c);
	return c;
}

static void
submit_all(struct tokd_client *c)
{
	for (uint32_t i = 0; i < TEXTS; i++) {
		struct tokd_request *r = &request[i];

		*r = (struct tokd_request){
			.text = text[i], .len = i % MOST, .ids = ids[i], .max_ids = MOST};
		snprintf((char *)text[i], MOST, "%u is a text of its own, in some length or other",
			i * 7919);
		memset(ids[i], 0, sizeof(ids[i]));
		assert_int_equal(tokd_client_submit(c, r), TOKD_PENDING);
	}
}

/* Each is given out once. */
static void
finish_all(struct tokd_client *c)
{
	struct tokd_request *done[TEXTS];
	uint32_t given[TEXTS] = {0};

	for (uint32_t left = TEXTS; left > 0;) {
		const uint32_t n = tokd_client_wait(c, done, TEXTS, 20000);

		assert_in_range(n, 1, left);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(given[done[i] - request]++, 0);
		left -= n;
	}
}

static void
all_right(void)
{
	for (uint32_t i = 0; i < TEXTS; i++) {
		assert_int_equal(request[i].status, TOKD_OK);
		assert_int_equal(request[i].n_ids, request[i].len);
		assert_int_equal(request[i].total, request[i].len);
		for (uint32_t k = 0; k < request[i].n_ids; k++)
			assert_int_equal(ids[i][k], text[i][k]);
	}
}

struct pair {
	struct loopback server[2];
	struct tokd_client *c;
};

static void
start_pair_for(struct pair *p, uint32_t timeout_ms)
{
	char hosts[64];

	for (int i = 0; i < 2; i++)
		server_start(&p->server[i], AF_INET);
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", p->server[0].port,
		p->server[1].port);
	p->c = client_of(hosts, timeout_ms);
}

static void
start_pair(struct pair *p)
{
	start_pair_for(p, 2000);
}

/* A server that waits for its CPU is not taken for silent: only refusals move a text. */
static void
start_patient_pair(struct pair *p)
{
	start_pair_for(p, 60000);
	p->c->silence_most = UINT64_MAX;
}

static void
end_pair(struct pair *p)
{
	tokd_client_close(p->c);
	for (int i = 0; i < 2; i++)
		server_end(&p->server[i]);
}

/* Until so many are known to be healthy. */
static void
wait_healthy(struct tokd_client *c, uint32_t n)
{
	struct tokd_request *done[1];

	for (int i = 0; tokd_client_stats(c).healthy != n; i++) {
		assert_true(i < 10000);
		assert_int_equal(tokd_client_poll(c, done, 1), 0);
		usleep(1000);
	}
}

TEST(without_one_appliance_only_its_own_texts_are_elsewhere)
{
	static const char *const lists[] = {"127.0.0.1:1,127.0.0.1:2,127.0.0.1:3",
		"127.0.0.1:3,127.0.0.1:1", "127.0.0.1:2,127.0.0.1:3,127.0.0.1:1"};
	static const uint8_t port[3][3] = {{1, 2, 3}, {3, 1}, {2, 3, 1}};
	uint8_t at[3][TEXTS];
	uint32_t count[4] = {0};

	for (uint32_t l = 0; l < 3; l++) {
		struct tokd_client *c = client_of(lists[l], 0);

		submit_all(c);
		for (uint32_t i = 0; i < TEXTS; i++)
			at[l][i] = port[l][request[i].appliance];
		tokd_client_close(c);
	}
	for (uint32_t i = 0; i < TEXTS; i++) {
		count[at[0][i]]++;
		assert_int_equal(at[2][i], at[0][i]); /* in whichever order they are named */
		if (at[0][i] != 2)
			assert_int_equal(at[1][i], at[0][i]);
	}
	for (uint32_t i = 1; i <= 3; i++)
		assert_in_range(count[i], TEXTS / 3 - 40, TEXTS / 3 + 40);
}

TEST(a_silent_appliance_loses_its_texts_and_gets_its_own_again)
{
	uint32_t before, retransmits = 0;
	struct tokd_engine *e;
	struct pair p;

	start_patient_pair(&p);
	server_go(&p.server[0]);
	server_go(&p.server[1]);
	submit_all(p.c);
	finish_all(p.c);
	all_right();
	/* As if the servers had not waited for their CPU: all texts are sent, and soon again. */
	e = p.c->appliance[1].engine;
	e->window = e->config.packets;
	e->rto = e->measured;
	assert_int_equal(tokd_client_stats(p.c).moved, 0);
	assert_true(p.server[0].answered > TEXTS / 4 && p.server[1].answered > TEXTS / 4);
	p.server[1].dead = true;
	p.c->silence_most = 2000 * MS; /* the other one may wait for its CPU */
	submit_all(p.c);
	finish_all(p.c);
	all_right();
	assert_in_range(tokd_client_stats(p.c).moved, TEXTS / 4, TEXTS);
	assert_int_equal(tokd_client_stats(p.c).healthy, 1);
	for (uint32_t i = 0; i < TEXTS; i++) {
		assert_int_equal(request[i].resends, request[i].moves);
		retransmits += request[i].moves > 0 ? request[i].retransmits : 0;
	}
	assert_true(retransmits > 0); /* by the one that was silent */
	before = p.server[1].answered;
	p.server[1].dead = false;
	wait_healthy(p.c, 2);
	submit_all(p.c);
	finish_all(p.c);
	all_right();
	assert_true(p.server[1].answered > before + TEXTS / 4);
	end_pair(&p);
}

TEST(an_appliance_that_answers_probes_but_no_texts_is_asked_less_and_less_often)
{
	struct pair p;

	start_pair(&p);
	p.server[1].deaf = true;
	server_go(&p.server[0]);
	server_go(&p.server[1]);
	for (int i = 0; i < 3; i++) {
		submit_all(p.c);
		finish_all(p.c);
		all_right();
		wait_healthy(p.c, 2);
	}
	assert_in_range(p.c->appliance[1].pause, 400 * MS, 2000 * MS);
	assert_int_equal(p.c->appliance[0].pause, 50 * MS);
	end_pair(&p);
}

/* Each takes its first packet and then is silent. */
TEST(a_text_is_moved_only_so_often)
{
	static uint8_t long_text[3 * TOKD_WIRE_PAYLOAD];
	static uint32_t room[sizeof(long_text)];
	struct tokd_request *done, r = {.text = long_text,
					   .len = sizeof(long_text),
					   .ids = room,
					   .max_ids = sizeof(long_text)};
	struct pair p;

	start_pair(&p);
	for (int i = 0; i < 2; i++) {
		p.server[i].deaf = true;
		p.server[i].takes = 1;
		server_go(&p.server[i]);
	}
	p.c->timeout_ms = 400; /* silent is one after a quarter of it */
	assert_int_equal(tokd_client_submit(p.c, &r), TOKD_PENDING);
	assert_int_equal(tokd_client_wait(p.c, &done, 1, 20000), 1);
	assert_int_equal(r.status, TOKD_E_NET);
	assert_int_equal(r.error, ETIMEDOUT);
	assert_int_equal(r.resends, 8);
	assert_int_equal(tokd_client_stats(p.c).moved, 8);
	end_pair(&p);
}

TEST(nothing_that_listens_there)
{
	char hosts[64];
	struct loopback one;
	struct tokd_client *c;

	server_start(&one, AF_INET);
	server_go(&one);
	snprintf(hosts, sizeof(hosts), "127.0.0.1:9,localhost:%u", one.port);
	c = client_of(hosts, 0);
	submit_all(c);
	finish_all(c);
	all_right();
	assert_int_equal(tokd_client_stats(c).healthy, 1);
	server_end(&one);
	assert_int_equal(tokd_client_tokenize(c, "text", 4, ids[0], MOST, 0), TOKD_E_NET);
	assert_non_null(strstr(tokd_client_error(c), "refused"));
	assert_non_null(strstr(tokd_client_error(c), "all the others are down, too"));
	assert_int_equal(tokd_client_stats(c).healthy, 0);
	tokd_client_close(c);
}

TEST(a_refusal_of_the_appliance_moves_a_text_one_of_the_text_does_not)
{
	static const struct {
		enum tokd_reason reason;
		bool moves;
	} cases[] = {{TOKD_R_SHUTDOWN, true}, {TOKD_R_VOCAB, true}, {TOKD_R_EXPIRED, true},
		{TOKD_R_UTF8, false}, {TOKD_R_CARRY, false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pair p;

		start_patient_pair(&p);
		p.server[1].server->refuse_first = UINT32_MAX;
		p.server[1].server->reason = cases[i].reason;
		server_go(&p.server[0]);
		server_go(&p.server[1]);
		submit_all(p.c);
		finish_all(p.c);
		if (cases[i].moves)
			all_right();
		assert_int_equal(tokd_client_stats(p.c).moved > 0, cases[i].moves);
		for (uint32_t k = 0; k < TEXTS && !cases[i].moves; k++) {
			if (request[k].appliance == 0)
				continue;
			assert_int_equal(request[k].status, TOKD_E_REFUSED);
			assert_int_equal(request[k].reason, cases[i].reason);
		}
		end_pair(&p);
	}
}

TEST(shutdown_sends_a_text_to_one_that_was_down)
{
	struct pair p;

	start_pair(&p);
	p.server[0].dead = true;
	server_go(&p.server[0]);
	server_go(&p.server[1]);
	submit_all(p.c);
	finish_all(p.c);
	assert_int_equal(tokd_client_stats(p.c).healthy, 1);
	p.server[0].dead = false; /* nobody has asked it since */
	p.server[1].server->refuse_first = UINT32_MAX;
	p.server[1].server->reason = TOKD_R_SHUTDOWN;
	submit_all(p.c);
	finish_all(p.c);
	all_right();
	end_pair(&p);
}

TEST(a_text_that_all_refuse_fails)
{
	char error[TOKD_ERROR_MAX];
	struct pair p;

	start_patient_pair(&p);
	for (int i = 0; i < 2; i++) {
		p.server[i].server->refuse_first = UINT32_MAX;
		p.server[i].server->reason = TOKD_R_SHUTDOWN;
		server_go(&p.server[i]);
	}
	submit_all(p.c);
	finish_all(p.c);
	for (uint32_t i = 0; i < TEXTS; i++)
		assert_int_equal(request[i].status, TOKD_E_REFUSED);
	tokd_client_describe(p.c, &request[0], error);
	assert_non_null(strstr(error, "SHUTDOWN"));
	end_pair(&p);
}

TEST(the_time_limit_of_a_text_is_that_of_all_its_appliances)
{
	struct pair p;

	start_pair(&p);
	for (int i = 0; i < 2; i++) {
		p.server[i].dead = true;
		server_go(&p.server[i]);
	}
	assert_int_equal(tokd_client_tokenize(p.c, "text", 4, ids[0], MOST, 10000), TOKD_E_TIMEOUT);
	assert_non_null(strstr(tokd_client_error(p.c), "no progress for 2000 ms"));
	assert_int_equal(tokd_client_stats(p.c).healthy, 0);
	end_pair(&p);
}

TEST(more_requests_than_there_is_room_for)
{
	struct tokd_client *c = client_of("127.0.0.1:1,127.0.0.1:2", 0);
	struct tokd_request more = {.text = "text", .len = 4};

	submit_all(c);
	assert_int_equal(tokd_client_submit(c, &more), TOKD_E_FULL);
	tokd_client_cancel(c, &request[0]);
	assert_int_equal(tokd_client_submit(c, &more), TOKD_PENDING);
	tokd_client_close(c);
}

TEST(a_list_that_is_wrong_is_refused)
{
	static const struct {
		const char *hosts;
		uint32_t vocab;
		const char *error;
	} wrong[] = {
		{"127.0.0.1,127.0.0.2", 0, "2 appliances: give the checksum of the vocabulary"},
		{"127.0.0.1,,127.0.0.2", 1, "host '': expected a name or an address, and no comma"},
		{"127.0.0.1,", 0, "host '': expected a name or an address, and no comma"},
		{"", 0, "host '': expected a name or an address"},
		{"fe80::1%lo:9000", 1, "host fe80::1%lo:9000: \":\" in the interface's name"},
		{"[fe80::1%lo:1]:9000", 1, "needs brackets, as in [fe80::1%eth0]:9000"},
		{"127.0.0.1:1,127.0.0.1:1", 1, "127.0.0.1:1: the same address as 127.0.0.1:1"},
		{"127.0.0.1:1,127.1:1", 1, "127.1:1: the same address as 127.0.0.1:1"},
		{"127.0.0.1:0,127.0.0.2", 1, "port 0: give a number from 1 to 65535"},
		{"127.0.0.1:65536", 1, "port 65536: give a number"},
		{"127.0.0.1:1x,127.0.0.2", 1, "port 1x: give a number"},
		{"127.0.0.1:", 1, "port : give a number"},
		{"[::1,127.0.0.1", 1, "host [::1: expected [ADDRESS]:PORT"},
		{"[::1]9000", 1, "host [::1]9000: expected [ADDRESS]:PORT"},
		{"1,2,3,4,5,6,7,8,9,,,,,,,,,,,,,,,,,,,,,,,,", 1, "33 appliances: at most 32"},
	};
	char error[TOKD_ERROR_MAX];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const struct tokd_client_options options = {.vocab = wrong[i].vocab};

		assert_null(tokd_client_open(wrong[i].hosts, 9000, &options, error));
		assert_int_equal(errno, EINVAL);
		if (strstr(error, wrong[i].error) == NULL)
			fail_msg("%s: %s", wrong[i].hosts, error);
	}
}

/* A prompt whose appliance dies, before or after it has begun to answer: to which it was given. */
static uint8_t
prompt_to_a_dying_one(struct pair *p, struct tokd_request *r, bool begins, uint32_t *items)
{
	struct tokd_request *done[1];
	struct tokd_made made;
	const char *said;

	uint8_t first;

	assert_int_equal(tokd_client_submit(p->c, r), TOKD_PENDING);
	first = r->appliance;
	p->server[first].dead = !begins;
	while (r->status == TOKD_PENDING) {
		(void)tokd_client_wait(p->c, done, 1, 20000);
		while (tokd_client_made(p->c, r, &made, &said)) {
			if (made.end == 0)
				assert_int_equal(made.id, item_id((*items)++));
			p->server[first].dead = true;
		}
	}
	return first;
}

TEST(a_prompt_moves_and_an_answer_that_has_begun_does_not)
{
	for (int begins = 0; begins < 2; begins++) {
		static char out[TOKD_GENERATE_ROOM];
		struct tokd_request r = {.text = "a prompt",
			.len = 8,
			.out = out,
			.max_ids = sizeof(out),
			.flags = TOKD_REQUEST_GENERATE,
			.limit = 2000};
		uint32_t items = 0;
		struct pair p;
		uint8_t first;

		start_pair(&p);
		server_go(&p.server[0]);
		server_go(&p.server[1]);
		first = prompt_to_a_dying_one(&p, &r, begins, &items);
		if (begins) {
			assert_int_equal(r.status, TOKD_E_NET);
			assert_int_equal(r.appliance, first);
			assert_in_range(items, 1, 1999);
		} else {
			assert_int_equal(r.status, TOKD_OK);
			assert_int_equal(r.appliance, !first);
			assert_int_equal(items, 2000);
		}
		assert_int_equal(tokd_client_stats(p.c).moved, !begins);
		end_pair(&p);
	}
}
