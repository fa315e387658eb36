/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Producer and agent over RDMA, both here, through the host's own RDMA device (soft-RoCE does):
 * verbs_pair [-d DEVICE] [-i PORT] [-x GID] [-n SLOTS] [-a ADDRESS]. Skipped where there is none.
 *
 * The consumer is a thread that reads memory as a kernel would: ticket, then header and payload,
 * every word of them; it marks slots done and the producer must read that back by RDMA.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <monotonic.h>
#include "agent_end.h"
#include "ring/check.h"
#include "transport/transport_inside.h"

#define PORT 17472
#define SLOTS 32
#define SOURCE_BYTES (2u << 20)
#define LIMIT_MS 20000

struct pair {
	struct agent_end agent;
	struct tokg_target target;
	struct tokg_source source;
	uint64_t posts;
	pthread_t consumer;
	atomic_bool stop;
	atomic_ulong seen, wrong;
	atomic_bool hold; /* the consumer takes nothing */
};

static uint32_t tests, failures;

static bool
ok(bool right, const char *name, const char *err)
{
	failures += !right;
	printf("%s %u - %s\n", right ? "ok" : "not ok", ++tests, name);
	if (!right)
		printf("# %s\n", err);
	fflush(stdout);
	return right;
}

/* Ids that say which post and which producer slot they are of. */
static uint32_t
id_of(uint64_t ticket, uint32_t slot, uint32_t i)
{
	return (uint32_t)(ticket * 2654435761u) ^ (slot << 20) ^ i;
}

static void *
consume(void *arg)
{
	struct pair *p = arg;
	uint64_t at = 0;

	while (!p->stop) {
		const uint32_t slot = at % SLOTS;
		const uint64_t ticket = at / SLOTS + 1;
		const struct tokg_hdr *h = agent_hdr(&p->agent, 0, slot);
		const uint32_t *ids = (const uint32_t *)agent_payload(&p->agent, 0, slot);
		uint32_t wrong = 0;

		if (p->hold || __atomic_load_n(&h->ticket, __ATOMIC_ACQUIRE) != ticket) {
			usleep(10);
			continue;
		}
		for (uint32_t i = 0; i < h->tokens; i++)
			wrong += ids[i] != id_of(ticket, slot, i);
		wrong += h->check != tokg_check_of(h, ids);
		wrong += h->epoch != agent_back(&p->agent, 0)->epoch;
		p->wrong += wrong != 0;
		p->seen++;
		agent_done(&p->agent, 0, slot, ticket);
		at++;
	}
	return NULL;
}

/* Into the slot's own part of the source: it stays until the slot is done. */
static uint32_t
fill(const struct pair *p, const struct tokg_transport *t, uint32_t slot, uint64_t ticket,
	struct tokg_hdr *h)
{
	uint32_t *ids = (uint32_t *)((uint8_t *)p->source.base + slot * t->geometry.slot_bytes);
	const uint32_t n = (uint32_t)(ticket * 37 + slot) % (t->geometry.slot_bytes / 4) + 1;

	memset(ids, 0, tokg_align(4ull * n, TOKG_LINE));
	for (uint32_t i = 0; i < n; i++)
		ids[i] = id_of(ticket, slot, i);
	*h = (struct tokg_hdr){.request = ticket,
		.kind = TOKG_KIND_WORD,
		.bytes = 4 * n,
		.tokens = n,
		.epoch = t->epoch,
		.flags = TOKG_FIRST | TOKG_LAST,
		.ticket = ticket};
	h->check = tokg_check_of(h, ids);
	return (uint32_t)tokg_align(4ull * n, TOKG_LINE);
}

static int
post(const struct pair *p, struct tokg_transport *t, uint64_t at, enum tokg_order order)
{
	struct tokg_hdr h;
	const uint32_t slot = at % SLOTS;
	const uint32_t bytes = fill(p, t, slot, at / SLOTS + 1, &h);

	return t->ops->post(t, slot, (uint8_t *)p->source.base + slot * t->geometry.slot_bytes,
		bytes, &h, order);
}

/* Reads the back area until slot `at` has its ticket done. */
static bool
wait_done(struct tokg_transport *t, uint64_t at)
{
	const uint64_t end = monotonic_ms() + LIMIT_MS;

	while (t->done[at % SLOTS] >> 8 != at / SLOTS + 1) {
		if (t->ops->read_back(t) < 0 || t->ops->poll(t) < 0 || monotonic_ms() > end)
			return false;
	}
	return true;
}

static bool
run(struct pair *p, struct tokg_transport *t, uint64_t from, uint64_t n, enum tokg_order order)
{
	for (uint64_t at = from; at < from + n; at++) {
		if (at >= SLOTS && !wait_done(t, at - SLOTS))
			return false;
		while (post(p, t, at, order) == 0)
			if (t->ops->poll(t) < 0)
				return false;
		if (at % 4 == 3 && t->ops->flush(t) < 0)
			return false;
	}
	if (t->ops->flush(t) < 0)
		return false;
	for (uint64_t at = from + n > SLOTS ? from + n - SLOTS : 0; at < from + n; at++)
		if (!wait_done(t, at))
			return false;
	return true;
}

static bool
comes(const uint64_t *word, uint64_t value)
{
	const uint64_t end = monotonic_ms() + LIMIT_MS;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		if (monotonic_ms() > end)
			return false;
	return true;
}

/* The last words of what belongs to lanes, and an ask. */
static void
lanes(struct pair *p, struct tokg_transport *t)
{
	const struct tokg_geometry *g = &t->geometry;
	const uint64_t before = t->n_reads, end = monotonic_ms() + LIMIT_MS;
	bool right;

	right = t->ops->ask(t, g->lanes - 1, 77) == 1 && t->ops->flush(t) == 0 &&
		comes(agent_word(&p->agent, tokg_ask_at(g, 0, g->lanes - 1)), 77);
	ok(right, "an ask comes to its lane", "");
	*agent_word(&p->agent, tokg_ended_at(g, 0, g->lanes - 1)) = 11;
	*agent_word(&p->agent, tokg_log_at(g, 0, g->log - 1)) = 12;
	t->read_bytes = tokg_back_bytes(g, true);
	right = t->ops->poll(t) == 0;
	/* One may have been under way. */
	while (right && t->n_reads < before + 2)
		right = t->ops->read_back(t) >= 0 && t->ops->poll(t) == 0 && monotonic_ms() < end;
	ok(right && t->done[g->slots + g->lanes - 1] == 11 &&
			t->done[g->slots + g->lanes + g->log - 1] == 12,
		"what belongs to lanes is read", "");
}

static int
again(struct tokg_transport *t, uint64_t *tickets, struct tokg_error *err)
{
	int rc;

	while ((rc = t->ops->reconnect(t, tickets, err)) == 0)
		usleep(1000);
	return rc;
}

/* The agent takes the queue pair away: it breaks, and is made again with nothing lost. */
static void
broken_queue_pair(struct pair *p, struct tokg_transport *t, uint64_t from)
{
	uint64_t tickets[SLOTS];
	struct tokg_error err = {"poll never failed"};
	const uint64_t end = monotonic_ms() + LIMIT_MS;
	bool right = true;
	int rc = 0;

	(void)tokg_verbs_end(p->agent.verbs, 0, &err);
	for (uint32_t i = 0; i < 2; i++)
		(void)post(p, t, from + i, TOKG_ORDER_FAST);
	while (rc == 0 && monotonic_ms() < end)
		rc = t->ops->flush(t) < 0 || t->ops->poll(t) < 0 ? -1 : 0;
	ok(rc < 0, "a queue pair that the agent ended breaks the connection", err.text);
	if (!ok(again(t, tickets, &err) > 0, "it is made again for the same producer slot",
		    err.text))
		return;
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		right = right && tickets[slot] == from / SLOTS;
	ok(right, "what is published is read from the headers, and the dead key wrote nothing", "");
	ok(run(p, t, from, 3 * SLOTS, TOKG_ORDER_FAST) && p->wrong == 0,
		"what was not published is posted again", "broken, or wrong at the consumer");
}

/* Two at one region: the second's hello must not touch the first's producer slot. */
static void
second_producer(struct pair *p)
{
	struct tokg_error err;
	char path[256];
	struct tokg_transport *t = tokg_transport_open(&p->target, &p->source, 5000, path, &err);

	ok(t == NULL && strstr(err.text, "all producer slots are taken") != NULL,
		"without a producer slot the agent's words are given",
		t == NULL ? err.text : "let in");
}

static void
all_tests(struct pair *p)
{
	struct tokg_error err;
	char path[256];
	struct tokg_transport *t = tokg_transport_open(&p->target, &p->source, 5000, path, &err);
	uint64_t at = 0, began;

	if (!ok(t != NULL, "handshake and queue pairs", err.text))
		return;
	printf("# %s\n", path);
	began = monotonic_ms();
	ok(run(p, t, at, p->posts, TOKG_ORDER_FAST) && p->wrong == 0, "FAST: every slot whole",
		"broken, or wrong at the consumer");
	at += p->posts;
	printf("# %" PRIu64 " slots FAST in %" PRIu64 " ms\n", p->posts, monotonic_ms() - began);
	began = monotonic_ms();
	ok(run(p, t, at, p->posts, TOKG_ORDER_STRICT) && p->wrong == 0, "STRICT: every slot whole",
		"broken, or wrong at the consumer");
	at += p->posts;
	printf("# %" PRIu64 " slots STRICT in %" PRIu64 " ms\n", p->posts, monotonic_ms() - began);
	lanes(p, t);
	second_producer(p);
	broken_queue_pair(p, t, at);
	at += 3 * SLOTS;
	agent_end(&p->agent);
	ok(!tokg_transport_check(t) && t->ops->poll(t) < 0, "the agent's end is seen", "");
	t->ops->close(t);
}

static bool
open_pair(struct pair *p, int fd)
{
	static uint32_t vocab = 0x1234, n_ids = 1000;
	struct tokg_error err;
	char path[256];
	const struct tokg_verbs_server_config c = {.geometry = &p->agent.geometry,
		.region = p->agent.region,
		.region_dmabuf = -1,
		.host = p->target.address,
		.rdma_device = p->target.rdma_device,
		.rdma_port = p->target.rdma_port,
		.rdma_gid = p->target.rdma_gid};

	p->source = (struct tokg_source){.bytes = SOURCE_BYTES,
		.fd = fd,
		.instance = 1,
		.n_vocabs = 1,
		.vocab = &vocab,
		.n_ids = &n_ids,
		.node = -1};
	p->source.base = mmap(NULL, SOURCE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p->source.base == MAP_FAILED)
		return ok(false, "source memory", strerror(errno));
	p->agent.verbs = tokg_verbs_server_open(&c, path, &err);
	if (!ok(p->agent.verbs != NULL, "the region is registered", err.text))
		return false;
	printf("# %s\n", path);
	return true;
}

static void
with_memory(struct pair *p, int fd, const char *kind)
{
	printf("# source: %s\n", kind);
	agent_geometry(&p->agent.geometry, 1, SLOTS);
	p->agent.ring_epoch = 5;
	agent_region(&p->agent);
	if (open_pair(p, fd)) {
		agent_begin(&p->agent, PORT);
		pthread_create(&p->consumer, NULL, consume, p);
		all_tests(p);
		p->stop = true;
		pthread_join(p->consumer, NULL);
	}
	munmap(p->source.base, SOURCE_BYTES);
	agent_free(&p->agent);
	tokg_verbs_server_close(p->agent.verbs);
}

static const char *
no_device(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (list != NULL)
		ibv_free_device_list(list);
	return n > 0 ? NULL
		     : "no RDMA device here (soft-RoCE: rdma link add NAME type rxe netdev DEV)";
}

int
main(int argc, char **argv)
{
	static struct pair plain, huge;
	const char *skip = no_device();
	struct tokg_target target = {.rdma_port = -1, .rdma_gid = -1};
	const char *address = "127.0.0.1";
	uint64_t posts = 2000;
	int c, fd;

	while ((c = getopt(argc, argv, "d:i:x:n:a:")) >= 0)
		switch (c) {
		case 'd':
			target.rdma_device = optarg;
			break;
		case 'i':
			target.rdma_port = atoi(optarg);
			break;
		case 'x':
			target.rdma_gid = atoi(optarg);
			break;
		case 'n':
			posts = strtoull(optarg, NULL, 10);
			break;
		case 'a':
			address = optarg;
			break;
		default:
			return 2;
		}
	if (skip != NULL) {
		printf("1..0 # SKIP %s\n", skip);
		return 0;
	}
	target.kind = TOKG_VERBS;
	target.port = PORT;
	snprintf(target.address, sizeof(target.address), "%s", address);
	plain.target = huge.target = target;
	plain.posts = huge.posts = posts / SLOTS * SLOTS;
	fd = memfd_create("source", MFD_CLOEXEC);
	if (ftruncate(fd, SOURCE_BYTES) == 0)
		with_memory(&plain, fd, "memfd");
	close(fd);
	fd = memfd_create("source", MFD_CLOEXEC | MFD_HUGETLB);
	if (fd < 0 || ftruncate(fd, SOURCE_BYTES) != 0 || fallocate(fd, 0, 0, SOURCE_BYTES) != 0)
		printf("ok %u - source in huge pages # SKIP none reserved\n", ++tests);
	else
		with_memory(&huge, fd, "memfd of huge pages");
	printf("1..%u\n", tests);
	return failures > 0;
}
