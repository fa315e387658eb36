/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the token ring as a registered reader. When a text's answer arrives, the text must be in
 * the ring once, complete and correct: records are published before replies are sent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <tokd/reader.h>

#include "../tokd-load/slices.h"

#define RING_TIMES 64 /* records of a text whose times are stored */

/* What the ring has of one text so far. Zeroed when the text starts. */
struct ring_seen {
	uint32_t ids, records; /* records with ids */
	bool last;
	bool wrong;
	uint64_t first_rx_ns, last_publish_ns;
	uint32_t wire_to_ring_ns[RING_TIMES]; /* of the first records */
};

struct ring {
	struct tokr *reader; /* NULL: not attached */
	uint64_t records, ids;
	uint64_t texts;	  /* complete and correct */
	uint64_t lost;	  /* answered, but incomplete in the ring */
	uint64_t wrong;	  /* wrong ids, wrong order, or failed */
	uint64_t doubled; /* records of a text that is not in flight */
};

/* Returns 0, or -1 after printing the error. */
int ring_open(struct ring *ring, const char *socket);
void ring_close(struct ring *ring);

/* The text of a record, and its expected ids; NULL: it is not in flight. */
struct ring_text {
	const struct slice *slice;
	struct ring_seen *seen;
};
typedef struct ring_text ring_find(void *arg, uint32_t epoch, uint64_t stream_id);

/*
 * Read all published records. Returns 0, or -1 after printing why the ring cannot be read any more.
 */
int ring_drain(struct ring *ring, ring_find *find, void *arg);
/* For an answered text, after draining the ring: what is wrong there, or NULL. */
const char *ring_judge(struct ring *ring, const struct ring_text *text);
