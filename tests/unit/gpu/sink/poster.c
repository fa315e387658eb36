/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A producer for tests in Python: one producer slot of a tokd-gpu, by the transport that dpdk-tokd
 * takes.
 *
 *   poster SOCKET [WORKER [INSTANCE]]     says: granted PLACE EPOCH SLOTS, or refused WHY
 *   post REQUEST FIRST FLAGS ID...        in the next slot. Says: posted
 *   wait                                  for all of them. Says: done STATUS... since the last wait
 *   released N MS                         until so many are given back. Says: released HOW_MANY
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <monotonic.h>
#include "ring/check.h"
#include "transport/transport.h"

#define SOURCE_BYTES (1u << 21)
#define WAIT_MS 10000
#define POSTS_MAX 4096

struct poster {
	struct tokg_transport *t;
	uint8_t *source;
	uint64_t base[TOKG_SLOTS_MAX]; /* tickets when the epoch was granted */
	uint64_t posted, reported, out_head;
	uint64_t out_end[POSTS_MAX]; /* of each post: what is free once it is released */
};

static void
give_up(const char *what)
{
	printf("failed %s\n", what);
	exit(1);
}

/* The back area, newly read. */
static const struct tokg_back *
read_back(struct poster *p)
{
	const uint64_t before = p->t->n_reads, until = monotonic_ms() + WAIT_MS;
	const struct timespec nap = {.tv_nsec = 100000};

	while (p->t->ops->read_back(p->t) == 0 && monotonic_ms() < until)
		if (p->t->ops->poll(p->t) < 0)
			give_up("poll");
	while (p->t->n_reads == before) {
		if (p->t->ops->flush(p->t) < 0 || p->t->ops->poll(p->t) < 0 ||
			monotonic_ms() > until)
			give_up("read_back");
		nanosleep(&nap, NULL);
	}
	return p->t->back;
}

static uint64_t
ticket_of(const struct poster *p, uint64_t n)
{
	const uint32_t slots = p->t->geometry.slots;

	return p->base[n % slots] + n / slots + 1;
}

static bool
is_done(const struct poster *p, uint64_t n)
{
	return p->t->done[n % p->t->geometry.slots] >> 8 >= ticket_of(p, n);
}

/* Until post n is done, or (released) given back. */
static void
wait_for(struct poster *p, uint64_t n, bool released)
{
	const uint64_t until = monotonic_ms() + WAIT_MS;
	const struct timespec nap = {.tv_nsec = 200000};

	for (;;) {
		const struct tokg_back *b = read_back(p);

		if (released ? b->released > n : is_done(p, n))
			return;
		if (monotonic_ms() > until)
			give_up(released ? "waiting for outputs" : "waiting for a slot");
		nanosleep(&nap, NULL);
	}
}

/* Where `bytes` of outputs are free, none of them behind the wrap. */
static uint64_t
take_outputs(struct poster *p, uint64_t bytes)
{
	const uint64_t size = p->t->geometry.out_bytes;
	uint64_t at = p->out_head;

	if ((at & (size - 1)) + bytes > size)
		at = (at | (size - 1)) + 1;
	for (uint64_t n = 0; n < p->posted; n++) {
		/* Up to where post n begins all is given back. */
		if ((n > 0 ? p->out_end[n - 1] : 0) + size >= at + bytes)
			break;
		wait_for(p, n, true);
	}
	p->out_head = at + bytes;
	p->out_end[p->posted] = p->out_head;
	return at;
}

static void
post(struct poster *p, char *line)
{
	const struct tokg_geometry *g = &p->t->geometry;
	const uint32_t slot = p->posted % g->slots;
	uint32_t *ids = (uint32_t *)(p->source + (size_t)slot * g->slot_bytes);
	struct tokg_hdr h = {.kind = (uint16_t)g->kind, .epoch = p->t->epoch};
	unsigned int flags;
	int used, n;

	if (p->posted == POSTS_MAX)
		give_up("post: too many");
	if (p->posted >= g->slots)
		wait_for(p, p->posted - g->slots, false);
	if (sscanf(line, "post %" SCNu64 " %" SCNu32 " %u%n", &h.request, &h.first, &flags,
		    &used) != 3)
		give_up("post: REQUEST FIRST FLAGS");
	memset(ids, 0, g->slot_bytes);
	for (line += used; sscanf(line, "%" SCNu32 "%n", &ids[h.tokens], &n) == 1; line += n)
		if (++h.tokens * 4 >= g->slot_bytes)
			break;
	h.flags = flags;
	h.bytes = h.tokens * 4;
	h.position0 = h.first;
	h.t_post = monotonic_ms();
	h.out_off = take_outputs(p, tokg_out_bytes(h.tokens, g->row_bytes));
	h.ticket = ticket_of(p, p->posted);
	h.check = g->flags & TOKG_CHECKED ? tokg_check_of(&h, ids) : 0;
	while (p->t->ops->post(p->t, slot, ids, (uint32_t)tokg_align(h.bytes, TOKG_LINE), &h,
		       p->t->order) == 0)
		if (p->t->ops->poll(p->t) < 0)
			give_up("poll");
	if (p->t->ops->flush(p->t) < 0)
		give_up("flush");
	p->posted++;
	printf("posted\n");
}

static void
report(struct poster *p)
{
	const uint32_t slots = p->t->geometry.slots;

	printf("done");
	for (; p->reported < p->posted; p->reported++) {
		wait_for(p, p->reported, false);
		if (p->posted - p->reported <= slots) /* else its word is another's by now */
			printf(" %u", (unsigned int)(p->t->done[p->reported % slots] & 0xff));
	}
	printf("\n");
}

static void
report_released(struct poster *p, const char *line)
{
	const struct timespec nap = {.tv_nsec = 1000000};
	uint64_t n, ms, until;

	if (sscanf(line, "released %" SCNu64 " %" SCNu64, &n, &ms) != 2)
		give_up("released: N MS");
	until = monotonic_ms() + ms;
	while (read_back(p)->released < n && monotonic_ms() < until)
		nanosleep(&nap, NULL);
	printf("released %" PRIu64 "\n", p->t->back->released);
}

int
main(int argc, char **argv)
{
	static const uint32_t vocab[1] = {0x1234}, n_ids[1] = {1};
	static struct poster p;
	struct tokg_source source = {.bytes = SOURCE_BYTES,
		.fd = memfd_create("source", MFD_CLOEXEC),
		.worker = argc > 2 ? (uint32_t)atoi(argv[2]) : 0,
		.instance = argc > 3 ? strtoull(argv[3], NULL, 10) : 99,
		.n_vocabs = 1,
		.vocab = vocab,
		.n_ids = n_ids,
		.node = -1};
	struct tokg_target target;
	struct tokg_error err = {""};
	char text[128], path[256];
	static char line[1 << 16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || ftruncate(source.fd, SOURCE_BYTES) != 0)
		return 2;
	p.source = mmap(NULL, SOURCE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, source.fd, 0);
	source.base = p.source;
	snprintf(text, sizeof(text), "shm:%s", argv[1]);
	if (tokg_target_parse(&target, text, &err))
		p.t = tokg_transport_open(&target, &source, 5000, path, &err);
	if (p.t == NULL) {
		printf("refused %s\n", err.text);
		return 1;
	}
	read_back(&p);
	for (uint32_t s = 0; s < p.t->geometry.slots; s++)
		p.base[s] = p.t->done[s] >> 8;
	printf("granted %u %u %u\n", p.t->producer, p.t->epoch, p.t->geometry.slots);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		if (strncmp(line, "post", 4) == 0)
			post(&p, line);
		else if (strncmp(line, "wait", 4) == 0)
			report(&p);
		else
			report_released(&p, line);
	}
	p.t->ops->close(p.t);
	return 0;
}
