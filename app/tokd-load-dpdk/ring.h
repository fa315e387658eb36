/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token ring as a registered reader sees it: every text of ours must stand there once, whole
 * and right, by the time its answer has come, since records are published before replies are sent.
 */
#ifndef TOKD_LOAD_RING_H
#define TOKD_LOAD_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <tokd/reader.h>

#include "../tokd-load/slices.h"

#define RING_TIMES 64 /* records of a text whose times are kept */

/* What has been seen of one text. Zeroed when it begins. */
struct ring_seen {
	uint32_t ids, records; /* records with ids */
	bool last;
	bool wrong;
	uint64_t first_rx_ns, last_publish_ns;
	uint32_t wire_to_ring_ns[RING_TIMES]; /* of the first so many records */
};

struct ring {
	struct tokr *reader; /* NULL: not attached */
	uint64_t records, ids;
	uint64_t texts;	  /* seen to their end, and right */
	uint64_t lost;	  /* answered, but not whole in the ring */
	uint64_t wrong;	  /* other ids, out of order, or failed */
	uint64_t doubled; /* records of no text that is under way */
};

/* Prints what is wrong and returns -1. */
int ring_open(struct ring *ring, const char *socket);
void ring_close(struct ring *ring);

/* The text that a record is of, and what it must give; NULL: none is under way. */
struct ring_text {
	const struct slice *slice;
	struct ring_seen *seen;
};
typedef struct ring_text ring_find(void *arg, uint32_t epoch, uint64_t stream_id);

/* All that has been published so far. Prints why the ring cannot be read any more: -1. */
int ring_drain(struct ring *ring, ring_find *find, void *arg);
/* The text's answer has come and the ring is drained: what is wrong there, or NULL. */
const char *ring_judge(struct ring *ring, const struct ring_text *text);

#endif
