/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring: layout shared by dpdk-tokd (the only writer) and its readers.
 * doc/reference/ring.md explains it; this file defines it.
 *
 * One ring per worker, in a memfd (on huge pages if possible), sealed against resizing and against
 * later writable mappings. A ring is one page of header (struct tokd_ring_hdr) followed by
 * `data_bytes` of records; `data_bytes` is a power of two.
 *
 * A position counts bytes since the ring was created: 64 bits, never decreasing. The record at
 * position p is at data + (p & (data_bytes - 1)). A record never wraps: the rest at the end of the
 * data is one TOKD_REC_PAD record.
 *
 * Ordering:
 *   writer: record bytes, then `head` (release). A reader that loads `head` (acquire) sees
 *           every byte of every record below it.
 *   writer: `tail` (release), then a seq_cst fence, then the bytes that reuse the space. If a
 *           reader uses bytes at position p, then issues an acquire fence, then loads
 *           `tail` <= p, these bytes were not overwritten.
 *   reader: last use of a record's bytes, then its cursor (release). The writer loads the cursor
 *           (acquire) before it reuses the space.
 */
#ifndef TOKD_RING_H
#define TOKD_RING_H

#include <assert.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#define TOKD_RING_MAGIC 0x31474e52444b4f54ull /* "TOKDRNG1" */
#define TOKD_RING_VERSION 1
#define TOKD_RING_HDR_BYTES 4096
#define TOKD_RING_ALIGN 64 /* records start at multiples of this */

struct tokd_ring_hdr {
	uint64_t magic;	   /* TOKD_RING_MAGIC */
	uint32_t version;  /* TOKD_RING_VERSION */
	uint32_t worker;   /* index of the worker that writes here */
	uint64_t data_off; /* offset of the data from the start of the memfd: TOKD_RING_HDR_BYTES */
	uint64_t data_bytes;	   /* power of two */
	uint64_t instance;	   /* random number of the run of dpdk-tokd */
	uint64_t tsc_hz;	   /* ticks per second of the time stamps in records */
	uint32_t vocab;		   /* checksum of the default vocabulary; each record has its own */
	uint32_t lcore;		   /* lcore of the worker */
	uint32_t block_size;	   /* ids of a block; 0: records have no keys */
	uint16_t key_scheme;	   /* enum tokb_scheme (block_keys.h) */
	uint16_t key_bytes;	   /* of a key: a multiple of 8 */
	alignas(64) uint64_t head; /* position one past the last published record */
	alignas(64) uint64_t tail; /* position of the oldest record that is not overwritten */
};
static_assert(sizeof(struct tokd_ring_hdr) == 192, "token ring header is ABI");
static_assert(offsetof(struct tokd_ring_hdr, block_size) == 56, "token ring header is ABI");
static_assert(offsetof(struct tokd_ring_hdr, head) == 64, "token ring header is ABI");
static_assert(offsetof(struct tokd_ring_hdr, tail) == 128, "token ring header is ABI");

enum tokd_rec_kind {
	TOKD_REC_TOKENS = 1, /* `count` ids follow the header */
	TOKD_REC_PAD = 2,    /* nothing here: skip `bytes` */
	/*
	 * Not for readers: `count` bytes for the client follow the header: the text of decoded ids;
	 * or, after LAST and without flags, a part of an answer (TOKD_F_GENERATE).
	 */
	TOKD_REC_TEXT = 3,
	TOKD_REC_BYTES = 4, /* a whole text that the GPU tokenizes: its `count` bytes follow */
};
/* A BYTES record whose flags became 0 was given back: the text's ids have their own records. */
/* Skip a record of a kind that you do not know by its `bytes`: only these are sure to be valid. */

enum tokd_rec_flags {
	TOKD_REC_FIRST = 1 << 0, /* the first record of its stream */
	TOKD_REC_LAST = 1 << 1,	 /* the last: the stream is complete */
	TOKD_REC_ABORT = 1 << 2, /* the last: the stream failed, `reason` says why; count is 0 */
	TOKD_REC_KEYS = 1 << 3,	 /* keys of the blocks that end in it follow the ids */
};

/*
 * A record: this header, then `count` ids (uint32_t, host order), padded to TOKD_RING_ALIGN. With
 * TOKD_REC_KEYS: then tokd_rec_keys() keys of key_bytes each, padded likewise.
 */
struct tokd_rec {
	uint32_t bytes;	    /* of the whole record, header and padding included */
	uint16_t kind;	    /* enum tokd_rec_kind */
	uint16_t flags;	    /* enum tokd_rec_flags */
	uint64_t stream_id; /* the client's: unique with client and epoch */
	uint64_t serial;    /* unique in this ring: distinguishes streams with equal ids */
	uint64_t t_rx;	    /* TSC when the worker received the packet */
	uint64_t t_publish; /* TSC when the record was published */
	uint32_t first;	    /* index of the first id within the stream; TEXT: of the first byte */
	uint32_t count;	    /* number of ids; TEXT, BYTES: of bytes */
	uint32_t vocab;	    /* checksum of the vocabulary */
	uint32_t epoch;	    /* the client's */
	uint32_t reason;    /* enum tokd_reason (wire.h), with TOKD_REC_ABORT; BYTES: no meaning */
	uint32_t text_end;  /* bytes of the text fed so far; TEXT: of the ids, 4 each */
};
static_assert(sizeof(struct tokd_rec) == 64, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, stream_id) == 8, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, serial) == 16, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, t_rx) == 24, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, t_publish) == 32, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, first) == 40, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, count) == 44, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, vocab) == 48, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, epoch) == 52, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, reason) == 56, "token ring record is ABI");
static_assert(offsetof(struct tokd_rec, text_end) == 60, "token ring record is ABI");

/* Blocks that end in ids [first, first + count) of a stream; the first is first / block_size. */
static inline uint32_t
tokd_rec_keys(uint32_t first, uint32_t count, uint32_t block_size)
{
	return (uint32_t)(((uint64_t)first + count) / block_size - first / block_size);
}

/*
 * Attaching. A reader connects to the control socket (AF_UNIX, SOCK_SEQPACKET), sends one
 * struct tokd_attach_req and receives one struct tokd_attach_rep with descriptors (SCM_RIGHTS). A
 * registered reader gets n_rings + 1: first its cursor memfd, then one ring memfd per worker. A tap
 * gets the n_rings ring memfds only. A refusal has n_rings 0, no descriptor and the reason. Closing
 * the socket detaches.
 *
 * When dpdk-tokd drops a reader, it sends another tokd_attach_rep with n_rings 0 and the reason,
 * and closes the socket. End of file without it means that dpdk-tokd has ended.
 *
 * A tap has no cursor; the writer does not wait for it. It must compare `tail` with the position of
 * a record after its last use, as above, and continue at `tail` after an overrun.
 *
 * The cursor memfd is one page, created by dpdk-tokd and sealed against resizing: at byte 64 * w
 * the position in ring w up to which the reader has finished. It starts at start[w]. The writer
 * clamps it to [tail, head] and ignores decreases.
 */
#define TOKD_RINGS_MAX 63
#define TOKD_CURSOR_STRIDE 64
#define TOKD_CURSOR_BYTES 4096
#define TOKD_ATTACH_MAGIC 0x54544144u /* "DATT" */

enum tokd_attach_mode {
	TOKD_MODE_READER = 1, /* registered: has a cursor; the writer waits for it */
	TOKD_MODE_TAP = 2,    /* no cursor; may be overrun */
};

struct tokd_attach_req {
	uint32_t magic;	  /* TOKD_ATTACH_MAGIC */
	uint32_t version; /* TOKD_RING_VERSION */
	uint32_t mode;	  /* enum tokd_attach_mode */
	uint32_t reserved;
};
static_assert(sizeof(struct tokd_attach_req) == 16, "attach request is ABI");

struct tokd_attach_rep {
	uint32_t magic;	  /* TOKD_ATTACH_MAGIC */
	uint32_t version; /* TOKD_RING_VERSION */
	uint32_t n_rings; /* ring memfds among the descriptors; 0: refused or dropped */
	uint32_t reserved;
	uint64_t instance;		/* as in every ring header */
	uint64_t start[TOKD_RINGS_MAX]; /* first position of this reader, per ring */
	char message[128]; /* reason if refused or dropped, else empty; NUL-terminated */
};
static_assert(sizeof(struct tokd_attach_rep) == 24 + 8 * 63 + 128, "attach reply is ABI");

#endif
