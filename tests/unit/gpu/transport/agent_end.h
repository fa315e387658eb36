/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small agent for tests of the transports: a region in a memfd, the real server in a thread, one
 * producer slot after the other given away. Its consumer is the test itself.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "ring/geometry.h"
#include "handshake/handshake_server.h"
#include "transport/verbs_server.h"

struct agent_end {
	char folder[64], path[96];
	struct tokg_geometry geometry;
	uint32_t ring_epoch;
	enum tokg_order order;
	uint32_t text_vocab, text_flags;
	int region_fd;
	uint8_t *region;
	struct tokg_server *server;
	struct tokg_verbs_server *verbs; /* NULL: shm alone */
	pthread_t thread;
	atomic_bool stop;
	/* of the producer slots, by the server's thread */
	uint64_t owner[TOKG_PRODUCERS_MAX]; /* id of its connection; 0: none */
	uint32_t epoch[TOKG_PRODUCERS_MAX];
	atomic_uint asked, joined, left, turns;
	atomic_uint not_yet; /* so many grants are put off first */
	atomic_bool refuse;
};

void agent_geometry(struct tokg_geometry *g, uint32_t producers, uint32_t slots);
/* A region of that geometry in a sealed memfd, mapped. */
void agent_region(struct agent_end *a);
/* Listens in a folder of its own (port 0: no TCP), and serves in a thread. Dies where it cannot. */
void agent_begin(struct agent_end *a, uint16_t port);
/* Connections are cut, the memory stays the test's until agent_free. */
void agent_end(struct agent_end *a);
void agent_free(struct agent_end *a);

/* The consumer's side of a slot. */
struct tokg_hdr *agent_hdr(const struct agent_end *a, uint32_t producer, uint32_t slot);
const uint8_t *agent_payload(const struct agent_end *a, uint32_t producer, uint32_t slot);
void agent_done(const struct agent_end *a, uint32_t producer, uint32_t slot, uint64_t ticket);
struct tokg_back *agent_back(const struct agent_end *a, uint32_t producer);
uint64_t *agent_word(const struct agent_end *a, uint64_t offset);
