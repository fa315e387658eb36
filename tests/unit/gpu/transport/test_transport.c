/* SPDX-License-Identifier: BSD-3-Clause */
/* A producer's transport with an agent that keeps the protocol, and without an agent. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <monotonic.h>
#include "test.h"
#include "agent_end.h"
#include "transport/shm.h"
#include "transport_fixture.h"
#include "transport/transport_inside.h"
#include "transport/verbs.h"
#include "transport/verbs_qp.h"

#define FIXTURE_TEST(name) TEST_ON(name, begin, finish, struct with_agent *w)

struct with_agent {
	struct agent_end agent;
	struct tokg_target target;
	struct tokg_transport *t;
	uint32_t files;
};

static int
begin(void **state)
{
	struct with_agent *w = calloc(1, sizeof(*w));
	struct tokg_error err;

	w->files = open_files();
	agent_geometry(&w->agent.geometry, 2, SLOTS);
	w->agent.ring_epoch = 9;
	agent_region(&w->agent);
	agent_begin(&w->agent, 0);
	w->t = open_to(w->agent.path, &err);
	if (w->t == NULL)
		fprintf(stderr, "%s\n", err.text);
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

FIXTURE_TEST(a_post_writes_its_slot_and_no_other)
{
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

FIXTURE_TEST(done_words_are_read_back)
{
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

/* A worker that posts texts connects to an agent that encodes them as it does, and to no other. */
FIXTURE_TEST(texts_go_to_an_agent_that_encodes_with_the_same_vocabulary)
{
	static const struct {
		uint32_t vocab, flags;
		const char *says;
	} cases[] = {
		{0, 0, "tokenizes no text, vocabulary 0x0000abcd is needed: start tokd-gpu with"},
		{0xabce, 4, "with vocabulary 0x0000abce, 0x0000abcd is needed: give --text-vocab"},
		{0xabcd, 1, "with flags 0x1, 0x4 are needed"},
		{0xabcd, 4, NULL},
	};
	struct tokg_source from = source;

	from.worker = 2;
	from.text_vocab = 0xabcd;
	from.text_flags = 4;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tokg_error err = {""};
		struct tokg_transport *t;

		w->agent.text_vocab = cases[i].vocab;
		w->agent.text_flags = cases[i].flags;
		t = open_of(&from, "shm", w->agent.path, &err);
		if (cases[i].says == NULL) {
			assert_non_null(t);
			t->ops->close(t);
		} else if (t != NULL || strstr(err.text, cases[i].says) == NULL) {
			fail_msg("%s", t != NULL ? "connected" : err.text);
		}
	}
}

FIXTURE_TEST(an_ask_writes_its_lane_and_tokens_are_read_on_request)
{
	const struct tokg_geometry *g = &w->t->geometry;
	const uint64_t *ended = w->t->done + SLOTS, *log = ended + g->lanes;
	const uint32_t p = w->t->producer;

	assert_int_equal(w->t->ops->ask(w->t, 1, TOKG_LANE_WORD(5, 7, 0)), 1);
	assert_int_equal(w->t->ops->flush(w->t), 0);
	assert_int_equal(*agent_word(&w->agent, tokg_ask_at(g, p, 1)), TOKG_LANE_WORD(5, 7, 0));
	assert_int_equal(*agent_word(&w->agent, tokg_ask_at(g, p, 0)), 0);
	assert_int_equal(*agent_word(&w->agent, tokg_ask_at(g, 1 - p, 1)), 0);
	*agent_word(&w->agent, tokg_ended_at(g, p, 1)) = 11;
	*agent_word(&w->agent, tokg_log_at(g, p, 7)) = 12;
	w->t->read_bytes = tokg_back_bytes(g, false);
	assert_int_equal(w->t->ops->read_back(w->t), 1);
	assert_int_equal(ended[1], 0);
	w->t->read_bytes = tokg_back_bytes(g, true);
	assert_int_equal(w->t->ops->read_back(w->t), 1);
	assert_int_equal(ended[1], 11);
	assert_int_equal(log[7], 12);
}

static int
again(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	int rc;

	while ((rc = t->ops->reconnect(t, tickets, err)) == 0)
		usleep(1000);
	return rc;
}

FIXTURE_TEST(a_reconnect_gets_the_same_producer_slot)
{
	const uint32_t p = w->t->producer, epoch = w->t->epoch;
	uint64_t tickets[SLOTS];
	struct tokg_error err;

	post(w->t, 3, 41, 1);
	assert_true(tokg_transport_check(w->t));
	agent_end(&w->agent); /* its memory and producer slots stay */
	assert_int_equal(w->t->ops->poll(w->t), 0);
	assert_false(tokg_transport_check(w->t));
	assert_true(w->t->ops->poll(w->t) < 0);
	agent_begin(&w->agent, 0);
	assert_int_equal(again(w->t, tickets, &err), 1);
	assert_int_equal(w->t->producer, p);
	assert_int_equal(w->t->epoch, epoch);
	assert_int_equal(tickets[3], 41);
	assert_int_equal(tickets[0], 0);
	assert_int_equal(w->t->ops->poll(w->t), 0);
	assert_true(tokg_transport_check(w->t));
	post(w->t, 4, 1, 2);
	assert_int_equal(agent_hdr(&w->agent, p, 4)->ticket, 1);
}

FIXTURE_TEST(a_restarted_agent_refuses_the_reconnect)
{
	uint64_t tickets[SLOTS];
	struct tokg_error err;

	agent_end(&w->agent);
	w->agent.ring_epoch++;
	agent_begin(&w->agent, 0);
	assert_true(again(w->t, tickets, &err) < 0);
	assert_non_null(strstr(err.text, "refused: producer"));
}

FIXTURE_TEST(a_reconnect_to_another_region_is_refused)
{
	uint64_t tickets[SLOTS];
	struct tokg_error err;

	agent_end(&w->agent);
	munmap(w->agent.region, w->agent.geometry.region_bytes);
	close(w->agent.region_fd);
	agent_region(&w->agent);
	agent_begin(&w->agent, 0);
	assert_true(again(w->t, tickets, &err) < 0);
	assert_non_null(strstr(err.text, "has another region"));
}

FIXTURE_TEST(a_reconnect_without_an_agent_gives_up)
{
	uint64_t tickets[SLOTS];
	struct tokg_error err;
	uint64_t began = monotonic_ms();

	agent_end(&w->agent);
	assert_int_equal(w->t->ops->reconnect(w->t, tickets, &err), 0);
	assert_true(again(w->t, tickets, &err) < 0);
	assert_non_null(strstr(err.text, "is tokd-gpu running"));
	assert_true(monotonic_ms() - began < 2 * TOKG_RECONNECT_MS);
}

FIXTURE_TEST(the_agents_refusal_is_in_the_error)
{
	struct tokg_error err;

	w->agent.refuse = true;
	assert_null(open_to(w->agent.path, &err));
	/* and cannot write on a terminal as they please */
	assert_non_null(strstr(err.text, "refused: vocabulary 0xabcd: not??here"));
}

FIXTURE_TEST(the_agent_chooses_strict)
{
	struct tokg_error err;
	struct tokg_transport *t;

	assert_int_equal(w->t->order, TOKG_ORDER_FAST);
	w->agent.order = TOKG_ORDER_STRICT;
	t = open_to(w->agent.path, &err);
	assert_non_null(t);
	assert_int_equal(t->order, TOKG_ORDER_STRICT);
	t->ops->close(t);
}

/* What the agent gives decides: here it is host memory. */
FIXTURE_TEST(cuda_accepts_host_memory)
{
	struct tokg_error err;
	struct tokg_transport *t = open_by("cuda", w->agent.path, &err);

	assert_non_null(t);
	assert_string_equal(t->ops->name, "cuda");
	post(t, 2, 5, 0x33);
	assert_int_equal(agent_hdr(&w->agent, t->producer, 2)->ticket, 5);
	assert_int_equal(agent_payload(&w->agent, t->producer, 2)[100], 0x33);
	t->ops->close(t);
}

/* No GPU: what is written and read is proved on ordinary memory, their order is not. */
FIXTURE_TEST(stores_for_gpu_memory_write_and_read_the_right_words)
{
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

TEST(invalid_queue_pairs_are_refused)
{
	const struct tokg_rdma roce = {.roce = true};
	const struct tokg_qp right = {
		.qpn = 1, .psn = 0xffffff, .mtu = IBV_MTU_4096, .is_roce = 1, .gid = {0xfe}};
	struct tokg_qp wrong[] = {right, right, right, right, right, right, right};
	struct tokg_error err;

	assert_true(tokg_qp_proved(&roce, &right, &err));
	wrong[0].qpn = 0;
	wrong[1].qpn = 1u << 24;
	wrong[2].psn = 1u << 24;
	wrong[3].mtu = 0;
	wrong[4].mtu = 6;
	wrong[5].is_roce = 0;
	wrong[6].gid[0] = 0;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(tokg_qp_proved(&roce, &wrong[i], &err));
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
TEST(one_poll_reaps_all_completions)
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

TEST(a_missing_listener_is_an_error_that_names_it)
{
	struct tokg_error err;

	assert_null(open_to("/tmp/tokg-nobody", &err));
	assert_non_null(strstr(err.text, "GPU agent at /tmp/tokg-nobody: is tokd-gpu running"));
}

/* So a machine without an RDMA device gets the more useful error. */
TEST(verbs_reports_a_missing_listener_before_it_needs_a_device)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int s = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(in);
	struct tokg_error err = {""};
	char to[32];

	/* Bound, so nobody else's; but no process listens. */
	assert_int_equal(bind(s, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(getsockname(s, (struct sockaddr *)&in, &len), 0);
	snprintf(to, sizeof(to), "127.0.0.1:%u", ntohs(in.sin_port));
	assert_null(open_by("verbs", to, &err));
	if (strstr(err.text, "is tokd-gpu running there? connect") == NULL)
		fail_msg("%s", err.text);
	close(s);
}

TEST(more_vocabularies_than_a_hello_has_are_refused)
{
	struct tokg_source many = source;
	struct tokg_target target;
	struct tokg_error err;
	char path[256];

	many.n_vocabs = TOKG_VOCABS_MAX + 1;
	assert_true(tokg_target_parse(&target, "shm", &err));
	assert_null(tokg_transport_open(&target, &many, PATIENCE_MS, path, &err));
	assert_non_null(strstr(err.text, "17 vocabularies"));
}
