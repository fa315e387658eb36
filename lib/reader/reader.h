/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Internals of a reader. attach.c: handshake; map.c: maps and validates memory; read.c: records,
 * the hot path; wait.c: time limits and the end of dpdk-tokd.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tokd/reader.h>
#include <tokd/ring.h>

/* An unreleased record of a registered reader, oldest first. */
struct held {
	uint64_t pos;
	bool released;
};

/*
 *     cursor                    position                 head
 *    ---+--------------------------+-----------------------+---
 *       | returned, not released   | published, not yet    |
 *       | (held, a queue)          | returned              |
 *
 * A tap has no cursor and no queue.
 */
struct ring {
	const struct tokd_ring_hdr *hdr; /* read-only; only head and tail change */
	size_t map_bytes;
	const uint8_t *data;
	uint64_t mask;
	uint64_t position, head;
	uint64_t *cursor_word; /* NULL: a tap */
	uint64_t cursor;
	struct held *held; /* a ring of held_room, a power of two, or NULL while that is 0 */
	uint64_t held_room;
	uint64_t held_first, held_end; /* tickets: [first, end) are in the queue */
	uint64_t skipped;	       /* lost, not reported by a record yet */
	struct tokr_ring info;	       /* validated; and the counts */
	uint32_t block_size;	       /* the next three as in its header */
	uint16_t key_scheme, key_bytes;
};

struct tokr {
	int fd;		    /* control socket, -1 when it has ended */
	int mode;	    /* TOKR_READER or TOKR_TAP */
	bool interruptible; /* TOKR_EINTR */
	uint32_t n_rings;
	uint32_t turn;	/* the ring checked next */
	uint32_t given; /* records since the socket was last checked */
	uint64_t instance;
	uint8_t *cursors; /* NULL: a tap */
	size_t cursors_bytes;
	bool gone; /* ended: nothing more will be published */
	struct tokr_error error;
	char path[108];
	struct ring ring[TOKD_RINGS_MAX];
};

/* Fill *e; returns `code`. */
int reader_fail(struct tokr_error *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* map.c: map `fd`; the caller closes it. 0 or enum tokr_result with *e set. */
int reader_map_cursors(struct tokr *r, int fd, struct tokr_error *e);
int reader_map_ring(struct tokr *r, uint32_t index, int fd, uint64_t start, struct tokr_error *e);
void reader_unmap(struct tokr *r);

/* read.c: 1 with *rec set, 0: none, or enum tokr_result with r->error set. */
int reader_look(struct tokr *r, struct tokr_record *rec);

/* wait.c: 0, or TOKR_DROPPED. Sets r->gone. */
int reader_check_socket(struct tokr *r);

/* The message of a reply, with unprintable bytes replaced. */
void reader_message(const struct tokd_attach_rep *rep, char *text, size_t room);
