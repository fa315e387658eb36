/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between producer and agent before the first WRITE, over a stream socket: AF_UNIX (shm,
 * cuda; the welcome carries the region's memfd) or TCP (verbs). Fixed sizes, little-endian.
 *
 *   producer                       agent
 *     │ tokg_hello ───────────────▶│ version, vocabularies; verbs: its queue pair
 *     │◀──────────── tokg_welcome ─│ producer slot, geometry, epoch, key and address
 *     │ tokg_ready ───────────────▶│ verbs: the producer's queue pair is ready to send
 *     │◀───────────── tokg_ready ──│ the agent's is ready to receive: post
 *     │            ...             │ the connection stays open; its end means that the peer ended
 *
 * A producer whose queue pair broke sends another hello, on a new connection, with its producer
 * slot and epoch (`resume`). The agent destroys the old queue pair first. After a connection ends,
 * the agent keeps the producer slot for 1 s. Then the epoch ends (back.epoch = 0: what was
 * published and not claimed becomes STALE). When all its slots are done and all its outputs are
 * released, the producer slot is free. A new epoch begins at slot 0, position 0 and released 0;
 * tickets continue.
 */
#pragma once

#include "ring/gpu_ring.h"

#define TOKG_HELLO_MAGIC 0x4c484754u   /* "TGHL" */
#define TOKG_WELCOME_MAGIC 0x45574754u /* "TGWE" */
#define TOKG_READY_MAGIC 0x59524754u   /* "TGRY" */
#define TOKG_TCP_PORT 7472
#define TOKG_SOCKET "/run/tokd-gpu.sock"
#define TOKG_VOCABS_MAX 16
#define TOKG_NO_PRODUCER UINT32_MAX

/* One end of a queue pair. */
struct tokg_qp {
	uint32_t qpn, psn;
	uint16_t lid; /* InfiniBand; 0 on Ethernet */
	uint8_t mtu;  /* enum ibv_mtu */
	uint8_t is_roce;
	uint32_t pad;
	uint8_t gid[16];
};
static_assert(sizeof(struct tokg_qp) == 32, "handshake is ABI");

struct tokg_hello {
	uint32_t magic, version;
	uint32_t transport; /* TOKG_SHM, TOKG_CUDA, TOKG_VERBS */
	uint32_t worker;
	uint64_t instance;
	uint32_t resume; /* producer slot to resume, or TOKG_NO_PRODUCER */
	uint32_t epoch;	 /* of that producer slot */
	uint32_t ring_epoch;
	uint32_t n_vocabs;
	uint32_t vocab[TOKG_VOCABS_MAX];
	uint32_t n_ids[TOKG_VOCABS_MAX]; /* at most the rows of the agent's table */
	/* What was not embedded of texts with a lower serial never will be; 0: none was shed. */
	uint64_t shed_below;
	struct tokg_qp qp; /* verbs */
};
static_assert(sizeof(struct tokg_hello) == 208, "handshake is ABI");

struct tokg_welcome {
	uint32_t magic, version;
	uint32_t producer; /* TOKG_NO_PRODUCER: refused, `message` says why */
	uint32_t epoch;
	uint32_t ring_epoch;
	uint32_t order;	   /* enum tokg_order that the memory needs */
	uint64_t instance; /* of the agent */
	struct tokg_geometry geometry;
	uint64_t address; /* verbs: of the region */
	uint32_t key;	  /* rkey */
	uint32_t again;	  /* refused: 1: a later attempt may succeed */
	struct tokg_qp qp;
	char message[152];
	/* How the consumer encodes TEXT slots: with this vocabulary and these flags (enum
	 * tok_flags). 0: it encodes none. */
	uint32_t text_vocab, text_flags;
};
static_assert(sizeof(struct tokg_welcome) == 360, "handshake is ABI");

struct tokg_ready {
	uint32_t magic, producer;
};
static_assert(sizeof(struct tokg_ready) == 8, "handshake is ABI");
