/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-reader: reads token ids of a dpdk-tokd on this host in place, without a copy.
 * doc/reference/ring.md has the rules; tokd/ring.h is the layout, which users of this library
 * need not know. Does not need DPDK.
 *
 *	struct tokr_error err;
 *	struct tokr *r = tokr_attach("/run/dpdk-tokd.sock", TOKR_READER, 1000, &err);
 *	struct tokr_record rec;
 *
 *	while (tokr_next(r, &rec, -1) == 1) {
 *		use(rec.stream_id, rec.first, rec.ids, rec.count);
 *		tokr_release(r, &rec);
 *	}
 *	tokr_detach(r);
 *
 * dpdk-tokd waits for a registered reader: records stay valid until it releases them; a reader that
 * keeps a ring full for too long is dropped. It does not wait for a tap: records may be overwritten
 * while they are used, which tokr_release reports, and missed records are counted.
 *
 * A struct tokr is for one thread at a time; several in one process are independent. No function
 * raises a signal, whatever the appliance does, as long as the kernel has memory.
 */
#ifndef TOKD_READER_H
#define TOKD_READER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum tokr_mode {
	TOKR_READER = 1, /* registered: dpdk-tokd waits for it */
	TOKR_TAP = 2,	 /* it does not */

	/* Flag for both: tokr_attach fails with EINTR after a signal handler. */
	TOKR_EINTR = 1 << 8,
};

/* Errors. tokr_strerror describes them. */
enum tokr_result {
	TOKR_SYSTEM = -1,  /* a system call failed: sys_errno; ENOENT, ECONNREFUSED: no appliance */
	TOKR_TIMEOUT = -2, /* no answer to the attach request within the time limit */
	TOKR_REFUSED = -3, /* refused, for example because of too many readers */
	TOKR_INVALID = -4, /* the socket or a ring violates ring.h */
	TOKR_GONE = -5,	   /* the appliance has ended, and all records were returned */
	TOKR_DROPPED = -6, /* dropped: this reader kept a ring full */
	TOKR_OVERRUN = -7, /* the record may have been overwritten while it was used */
};

struct tokr_error {
	int code;	/* enum tokr_result, 0: none */
	int sys_errno;	/* with TOKR_SYSTEM */
	char text[240]; /* one line: the thing, the value, the limit, the remedy */
};

struct tokr;

/*
 * Attach to the control socket at `path` as `mode` (enum tokr_mode), within timeout_ms; 250 ms are
 * ample for a running appliance. Returns records published from then on. NULL with *error set,
 * unless error is NULL.
 */
struct tokr *tokr_attach(const char *path, int mode, int timeout_ms, struct tokr_error *error);

/* Detach, and free everything. Pointers into the rings become invalid. */
void tokr_detach(struct tokr *r);

/*
 * Detach, but keep the rings mapped: dpdk-tokd no longer waits for this reader, tokr_next returns
 * TOKR_GONE, and returned ids can be read, perhaps overwritten, until tokr_detach.
 */
void tokr_part(struct tokr *r);

enum tokr_flags {
	TOKR_FIRST = 1 << 0, /* the first record of its stream */
	TOKR_LAST = 1 << 1,  /* the last: the stream is complete */
	TOKR_ABORT = 1 << 2, /* the last: the stream failed, `reason` (tokd/wire.h) says why */
	TOKR_KEYS = 1 << 3,  /* has keys of blocks: tokr_keys() */
};

/* Ids [first, first + count) of one stream. */
struct tokr_record {
	const uint32_t *ids; /* in the ring; valid until tokr_release */
	uint32_t count;
	uint32_t first;		  /* index of ids[0] within its stream */
	uint32_t flags;		  /* enum tokr_flags */
	uint32_t reason;	  /* with TOKR_ABORT */
	uint64_t stream_id;	  /* the client's: unique with client and epoch */
	uint64_t serial;	  /* unique among the streams of one worker of one instance */
	uint64_t instance;	  /* identifies the run of dpdk-tokd */
	uint64_t t_rx_ns;	  /* when the packet was received, and when the record was */
	uint64_t t_publish_ns;	  /* published: use only differences */
	uint64_t t_rx, t_publish; /* the same in ticks of the TSC: tokr_ring.tsc_hz a second */
	uint64_t lost_bytes;	  /* a tap: bytes of this ring missed just before */
	uint64_t position;	  /* in the ring of its worker */
	uint32_t worker;
	uint32_t epoch;	   /* the client's */
	uint32_t vocab;	   /* checksum of the vocabulary */
	uint32_t text_end; /* bytes of the text fed so far */
	uint64_t ticket;   /* for tokr_release */
};

/*
 * The next record, from the workers round robin. timeout_ms: 0 does not wait, -1 has no limit.
 * Waits by polling, first without pauses, then with pauses from 50 us to 1 ms. Returns 1 with *rec
 * set, 0 after the time limit, or enum tokr_result: TOKR_GONE, TOKR_DROPPED, TOKR_INVALID,
 * TOKR_SYSTEM (no memory to track another unreleased record). Except after TOKR_SYSTEM, further
 * calls return the same error.
 *
 * Several records may be unreleased at a time, as far as they fit the ring; *rec may be copied.
 */
int tokr_next(struct tokr *r, struct tokr_record *rec, int timeout_ms);

/*
 * Release a record, in any order. A registered reader's space is freed up to its oldest unreleased
 * record. Returns 0: every use of the record before this call saw the published bytes;
 * TOKR_OVERRUN: perhaps not (a tap; or a dropped reader: tokr_last_error has the reason): discard
 * the results. A second release by a registered reader does nothing and returns 0; by a tap it
 * would count lost bytes again.
 */
int tokr_release(struct tokr *r, const struct tokr_record *rec);

/* The result of tokr_release, without releasing. */
int tokr_check(const struct tokr *r, const struct tokr_record *rec);

/*
 * Keys of the blocks of ids that end in a record, as tokb_feed() (tokd/block_keys.h) gives them:
 * with dpdk-tokd --block-keys.
 */
struct tokr_keys {
	const void *keys;    /* in the ring, aligned to 64; valid until tokr_release; NULL: none */
	uint32_t count;	     /* blocks that end in this record */
	uint32_t first;	     /* the first one's index in its text */
	uint32_t block_size; /* ids of a block; 0: without --block-keys */
	uint32_t key_bytes;
	uint32_t scheme; /* enum tokb_scheme */
};

/* With rec NULL only what all records have in common. */
void tokr_keys(const struct tokr *r, const struct tokr_record *rec, struct tokr_keys *keys);

/* Random number of the run of dpdk-tokd. */
uint64_t tokr_instance(const struct tokr *r);

struct tokr_ring {
	uint32_t worker, lcore;
	uint32_t vocab;	     /* checksum of the vocabulary */
	uint64_t data_bytes; /* size of the ring */
	uint64_t tsc_hz;
	/* counted since attaching */
	uint64_t records, ids;	    /* returned */
	uint64_t unread_bytes;	    /* published, not returned */
	uint64_t held_bytes;	    /* a registered reader: returned, not released */
	uint64_t overwritten_bytes; /* of these: overwritten, after it was dropped */
	uint64_t overruns;	    /* a tap: number of skips */
	uint64_t lost_bytes;	    /* a tap: bytes missed, or overwritten before release */
	uint64_t broken_records;    /* releases with TOKR_OVERRUN */
};

/* The number of rings (workers). */
uint32_t tokr_rings(const struct tokr *r);
/* Ring `index`, below tokr_rings(). Returns 0, or -1 for another index. */
int tokr_ring_info(const struct tokr *r, uint32_t index, struct tokr_ring *info);

/* The last error of tokr_next. Valid until the next call. */
const struct tokr_error *tokr_last_error(const struct tokr *r);
const char *tokr_strerror(int code);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
