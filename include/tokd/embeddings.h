/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Embeddings for other processes: the messages between tokd-gpu and a subscriber, and the ring of
 * embeddings. doc/reference/gpu-ring.md, "Subscribers", explains it; this file defines it.
 *
 * A subscriber connects to --subscribers-socket (AF_UNIX, SOCK_SEQPACKET), sends one
 * tokg_subscribe_req, and gets one tokg_subscribe_rep with descriptors:
 *
 *   cursor    one page of its own: the word at byte 0 is the position up to which it has finished
 *   ring      struct tokg_emb_ring, then at byte 4096 the entries; sealed against writing
 *   outputs   device cpu: the rows, sealed against writing; cuda: no descriptor, `ipc` opens them
 *
 * A position counts entries since the agent started and never decreases; the entry at position p is
 * at p & (entries - 1). Three ordering rules, those of the token ring (tokd/ring.h):
 *
 *   1  agent       entry, then `head` (release)
 *      subscriber  `head` (acquire), then entries below it
 *   2  subscriber  last use of rows, then cursor (release)
 *      agent       cursor (acquire), then releases the rows
 *   3  agent       `tail` (release), seq_cst fence, then releases the rows
 *      subscriber  uses rows of p, acquire fence, loads tail <= p: the rows were intact
 *
 * Rule 3 is for a subscriber that was dropped: producers no longer wait for it.
 *
 * An entry with status SHED is a notice, without rows: dpdk-tokd did not wait for tokd-gpu
 * (--sink-full=shed). Every text of its `instance` and `worker` with a serial up to its `request`
 * that had neither LAST nor ABORT before the notice is shed: nothing more of it comes. Discard what
 * you have of it. The notice is repeated when a subscriber attaches, and after a restart of the
 * agent.
 */
#ifndef TOKD_EMBEDDINGS_H
#define TOKD_EMBEDDINGS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TOKG_EMB_MAGIC 0x3144424d454b4f54ull /* "TOKEMBD1" */
#define TOKG_SUBSCRIBE_MAGIC 0x4d454754u     /* "TGEM" */
#define TOKG_EMB_VERSION 3
#define TOKG_EMB_DATA 4096 /* byte of the first entry */
#define TOKG_CURSOR_BYTES 4096

/* One request, or the part of one that came in one slot: rows [first, first + tokens) of a text. */
struct tokg_embedding {
	/* These three identify the text: */
	uint64_t instance; /* of the dpdk-tokd */
	uint64_t request;  /* serial in the token ring */
	uint32_t worker;
	/* These identify the posting: */
	uint32_t producer; /* index of the producer slot in the GPU ring */
	uint32_t epoch;	   /* of that producer slot */
	uint32_t slot;
	uint64_t ticket; /* of this use of the slot */
	uint16_t part;	 /* record of a BATCH */
	uint16_t flags;	 /* enum tokg_flags of gpu_ring.h: FIRST, LAST, ABORT */
	uint8_t status;	 /* enum tokg_status: OK, BADID, BADPOS or SHED */
	uint8_t pad0[3];
	uint32_t first;		    /* index within the text of the first row */
	uint32_t tokens;	    /* rows; 0 of an empty text, and of ABORT */
	uint64_t offset;	    /* of the first row in the outputs, bytes */
	uint64_t t_post;	    /* TSC of the producer */
	uint64_t visible, embedded; /* consumer's clock, ns */
	uint64_t t_ready;	    /* CLOCK_MONOTONIC when the agent published it, ns */
	/* For an engine (tokd/engine.h). 0 without --engine external; all subscribers see them. */
	uint64_t ids;	    /* offset of the first row's id in the outputs: uint32_t[tokens] */
	uint32_t lane, use; /* with GENERATE */
	uint64_t pad[2];
};
static_assert(sizeof(struct tokg_embedding) == 128, "embedding entry is ABI");
static_assert(offsetof(struct tokg_embedding, ticket) == 32, "embedding entry is ABI");
static_assert(offsetof(struct tokg_embedding, first) == 48, "embedding entry is ABI");
static_assert(offsetof(struct tokg_embedding, offset) == 56, "embedding entry is ABI");
static_assert(offsetof(struct tokg_embedding, t_ready) == 88, "embedding entry is ABI");

struct tokg_emb_ring {
	uint64_t magic;	   /* TOKG_EMB_MAGIC */
	uint32_t version;  /* TOKG_EMB_VERSION */
	uint32_t entries;  /* a power of two */
	uint64_t instance; /* of the agent */
	uint8_t pad0[40];
	uint64_t head; /* one past the last entry */
	uint8_t pad1[56];
	uint64_t tail; /* the rows of all before it may be overwritten */
	uint8_t pad2[56];
};
static_assert(offsetof(struct tokg_emb_ring, head) == 64, "embedding ring is ABI");
static_assert(offsetof(struct tokg_emb_ring, tail) == 128, "embedding ring is ABI");

struct tokg_subscribe_req {
	uint32_t magic, version;
	uint32_t flags; /* 0, or TOKG_SUBSCRIBE_ENGINE (tokd/engine.h) */
	uint32_t reserved;
};
static_assert(sizeof(struct tokg_subscribe_req) == 16, "subscribe request is ABI");

enum tokg_outputs_kind { TOKG_OUTPUTS_MEMFD = 1, TOKG_OUTPUTS_CUDA_IPC = 2 };

struct tokg_subscribe_rep {
	uint32_t magic, version;
	uint32_t outputs; /* enum tokg_outputs_kind; 0: refused or dropped: `message` says why */
	uint32_t reserved;
	uint64_t instance;
	uint64_t start;			      /* first position of this subscriber */
	uint64_t out_bytes;		      /* of all outputs together */
	uint32_t kind, dtype, dim, row_bytes; /* gpu_ring.h */
	uint8_t ipc[64];		      /* cudaIpcMemHandle_t, on the GPU with this */
	uint8_t uuid[16];		      /* UUID (cudaDeviceProp): indices may differ */
	char message[128];		      /* NUL-terminated */
};
static_assert(sizeof(struct tokg_subscribe_rep) == 264, "subscribe reply is ABI");

#endif
