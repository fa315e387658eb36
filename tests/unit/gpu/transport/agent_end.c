/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent_end.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void
must(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "agent of the test: %s\n", what);
		abort();
	}
}

void
agent_geometry(struct tokg_geometry *g, uint32_t producers, uint32_t slots)
{
	struct tokg_error err;

	*g = (struct tokg_geometry){.producers = producers,
		.slots = slots,
		.slot_bytes = 4096,
		.flags = TOKG_CHECKED,
		.kind = TOKG_KIND_WORD,
		.dtype = TOKG_F32,
		.dim = 4,
		.n_ids = 1000,
		.lanes = 2,
		.log = 8,
		.out_bytes = 1u << 20};
	must(tokg_geometry_fill(g, &err), err.text);
}

void
agent_region(struct agent_end *a)
{
	const uint64_t bytes = a->geometry.region_bytes;

	a->region_fd = memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	must(a->region_fd >= 0 && ftruncate(a->region_fd, (off_t)bytes) == 0, "memfd");
	must(fcntl(a->region_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0, "seals");
	a->region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->region_fd, 0);
	must(a->region != MAP_FAILED, "mmap");
}

struct tokg_back *
agent_back(const struct agent_end *a, uint32_t producer)
{
	return (struct tokg_back *)(a->region + tokg_back_at(&a->geometry, producer));
}

struct tokg_hdr *
agent_hdr(const struct agent_end *a, uint32_t producer, uint32_t slot)
{
	return (struct tokg_hdr *)(a->region + tokg_hdr_at(&a->geometry, producer, slot));
}

const uint8_t *
agent_payload(const struct agent_end *a, uint32_t producer, uint32_t slot)
{
	return a->region + tokg_payload_at(&a->geometry, producer, slot);
}

uint64_t *
agent_word(const struct agent_end *a, uint64_t offset)
{
	return (uint64_t *)(a->region + offset);
}

void
agent_done(const struct agent_end *a, uint32_t producer, uint32_t slot, uint64_t ticket)
{
	uint64_t *done = (uint64_t *)(a->region + tokg_done_at(&a->geometry, producer, slot));

	__atomic_store_n(done, TOKG_DONE(ticket, TOKG_OK), __ATOMIC_RELEASE);
}

/* A producer slot: the one to resume, with its epoch, or the first that is free, with a new one. */
static uint32_t
producer_for(struct agent_end *a, const struct tokg_hello *h, struct tokg_welcome *w)
{
	if (h->resume != TOKG_NO_PRODUCER) {
		if (h->resume < a->geometry.producers && h->ring_epoch == a->ring_epoch &&
			h->epoch == a->epoch[h->resume])
			return h->resume;
		snprintf(w->message, sizeof(w->message), "producer %u of epoch %u is not yours",
			h->resume, h->epoch);
		return TOKG_NO_PRODUCER;
	}
	for (uint32_t i = 0; i < a->geometry.producers; i++)
		if (a->owner[i] == 0) {
			a->epoch[i]++;
			return i;
		}
	snprintf(w->message, sizeof(w->message), "all producer slots are taken (%u)",
		a->geometry.producers);
	return TOKG_NO_PRODUCER;
}

static int
grant(void *owner, uint64_t id, const struct tokg_hello *h, struct tokg_welcome *w, int *fd)
{
	struct agent_end *a = owner;
	struct tokg_error err;
	uint32_t producer;

	a->asked++;
	if (a->refuse) {
		snprintf(w->message, sizeof(w->message), "vocabulary 0x%x: not\n\x9bhere",
			h->vocab[0]);
		return -1;
	}
	if (a->not_yet > 0) {
		snprintf(w->message, sizeof(w->message), "its predecessor is not done");
		a->not_yet--;
		return 0;
	}
	producer = producer_for(a, h, w);
	if (producer == TOKG_NO_PRODUCER)
		return -1;
	if (a->owner[producer] != 0)
		tokg_server_drop(a->server, a->owner[producer]);
	if (h->transport == TOKG_VERBS) {
		if (!tokg_verbs_grant(a->verbs, producer, &h->qp, w, &err)) {
			snprintf(w->message, sizeof(w->message), "%.150s", err.text);
			return -1;
		}
	} else {
		*fd = a->region_fd;
	}
	a->owner[producer] = id;
	__atomic_store_n(&agent_back(a, producer)->epoch, a->epoch[producer], __ATOMIC_RELEASE);
	w->producer = producer;
	w->epoch = a->epoch[producer];
	w->ring_epoch = a->ring_epoch;
	w->order = a->order;
	w->instance = 7;
	w->text_vocab = a->text_vocab;
	w->text_flags = a->text_flags;
	w->geometry = a->geometry;
	return 1;
}

static void
joined(void *owner, uint64_t id)
{
	((struct agent_end *)owner)->joined++;
}

static void
left(void *owner, uint64_t id)
{
	struct agent_end *a = owner;

	for (uint32_t i = 0; i < a->geometry.producers; i++)
		if (a->owner[i] == id)
			a->owner[i] = 0;
	a->left++;
}

static void *
serve(void *arg)
{
	struct agent_end *a = arg;

	while (!a->stop) {
		struct pollfd p = {.fd = tokg_server_fd(a->server), .events = POLLIN};

		poll(&p, 1, 10);
		tokg_server_poll(a->server);
		a->turns++;
	}
	return NULL;
}

void
agent_begin(struct agent_end *a, uint16_t port)
{
	struct tokg_error err;
	struct tokg_server_config c = {.path = a->path,
		.mode = 0600,
		.host = port != 0 ? "" : NULL,
		.port = port,
		.calls = {grant, joined, left},
		.owner = a};

	if (a->folder[0] == '\0') {
		strcpy(a->folder, "/tmp/tokg-XXXXXX");
		must(mkdtemp(a->folder) != NULL, "folder");
		snprintf(a->path, sizeof(a->path), "%s/agent.sock", a->folder);
	}
	a->server = tokg_server_open(&c, &err);
	must(a->server != NULL, err.text);
	a->stop = false;
	must(pthread_create(&a->thread, NULL, serve, a) == 0, "thread");
}

void
agent_end(struct agent_end *a)
{
	a->stop = true;
	pthread_join(a->thread, NULL);
	tokg_server_close(a->server);
	a->server = NULL;
}

void
agent_free(struct agent_end *a)
{
	if (a->server != NULL)
		agent_end(a);
	munmap(a->region, a->geometry.region_bytes);
	close(a->region_fd);
	if (a->folder[0] != '\0')
		rmdir(a->folder);
}
