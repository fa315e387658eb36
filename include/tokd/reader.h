/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtokd-reader: token ids of a dpdk-tokd on this host, read where they were written, without
 * a copy. doc/reference/ring.md explains the rules that it keeps; tokd/ring.h is the layout
 * underneath, which a user of this library need not know. Needs nothing of DPDK.
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
 * A registered reader is waited for: what it holds stands until it releases it, and one that
 * holds a full ring for too long is dropped. A tap is never waited for: what it reads may be
 * overwritten meanwhile, which tokr_release says; and what it missed is counted.
 *
 * One thread at a time may use a struct tokr; several in one process are independent. No function
 * raises a signal, whatever the other side does, for as long as the kernel has memory.
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
	TOKR_READER = 1, /* registered: the appliance waits for it */
	TOKR_TAP = 2,	 /* it does not */

	/* Added to one of them: a signal handler that ran ends tokr_attach with EINTR. */
	TOKR_EINTR = 1 << 8,
};

/* What the functions return below zero. tokr_strerror has words for each. */
enum tokr_result {
	TOKR_SYSTEM = -1,  /* a system call failed: sys_errno; ENOENT, ECONNREFUSED: no appliance */
	TOKR_TIMEOUT = -2, /* no answer to the attach request within the time limit */
	TOKR_REFUSED = -3, /* the appliance said no: all places taken, for example */
	TOKR_INVALID = -4, /* what the socket or a ring says is not what ring.h allows */
	TOKR_GONE = -5,	   /* the appliance has ended or died, and all it published was given out */
	TOKR_DROPPED = -6, /* the appliance goes on without this reader: it stalled a ring */
	TOKR_OVERRUN = -7, /* the record may have been overwritten while it was used */
};

struct tokr_error {
	int code;	/* enum tokr_result, 0: none */
	int sys_errno;	/* with TOKR_SYSTEM */
	char text[240]; /* one line: the thing, the value, the limit, the remedy */
};

struct tokr;

/*
 * Attach to the control socket at `path` as `mode` (enum tokr_mode). timeout_ms: how long it may
 * take in all, at most; a quarter second is ample for an appliance that runs. Sees what is
 * published from then on. Returns NULL with *error filled (which may be NULL).
 */
struct tokr *tokr_attach(const char *path, int mode, int timeout_ms, struct tokr_error *error);

/* Detach, and free all. Pointers into the rings, of records held too, are invalid from here on. */
void tokr_detach(struct tokr *r);

/*
 * Detach, but leave the rings mapped: the appliance waits for this reader no more, tokr_next
 * returns TOKR_GONE, and ids given out may be read, overwritten or not, until tokr_detach.
 */
void tokr_part(struct tokr *r);

enum tokr_flags {
	TOKR_FIRST = 1 << 0, /* the first record of its stream */
	TOKR_LAST = 1 << 1,  /* the last: the stream is complete */
	TOKR_ABORT = 1 << 2, /* the last: the stream failed, `reason` (tokd/wire.h) says why */
};

/* Ids [first, first + count) of one stream. */
struct tokr_record {
	const uint32_t *ids; /* in the ring itself; until tokr_release */
	uint32_t count;
	uint32_t first;	    /* index of ids[0] within its stream */
	uint32_t flags;	    /* enum tokr_flags */
	uint32_t reason;    /* with TOKR_ABORT */
	uint64_t stream_id; /* as the client chose it: unique only together with client and epoch */
	uint64_t serial;    /* unique among the streams of one worker of one instance */
	uint64_t instance;  /* which start of dpdk-tokd published it */
	uint64_t t_rx_ns;   /* when the packet was taken from its queue, and when the record was */
	uint64_t t_publish_ns;	  /* published: only differences mean something */
	uint64_t t_rx, t_publish; /* the same in ticks of the TSC: tokr_ring.tsc_hz a second */
	uint64_t lost_bytes; /* a tap: so much of this worker's ring, just before, was missed */
	uint64_t position;   /* in the ring of its worker */
	uint32_t worker;
	uint32_t epoch;	   /* the client's */
	uint32_t vocab;	   /* checksum of the vocabulary */
	uint32_t text_end; /* bytes of the text fed so far */
	uint64_t ticket;   /* for tokr_release */
};

/*
 * The next record, of the workers in turn. timeout_ms: 0 does not wait, -1 waits for ever. Waits by
 * polling, for a moment without pause, then with pauses from 50 us to 1 ms. Returns 1 with *rec
 * filled, 0 when none came in time, or enum tokr_result: TOKR_GONE, TOKR_DROPPED, TOKR_INVALID,
 * TOKR_SYSTEM (no memory to note one more record that is held). After one of these, but for
 * TOKR_SYSTEM, each further call returns the same.
 *
 * Records may be held, several at once and for long, within what the ring holds; *rec may be
 * copied.
 */
int tokr_next(struct tokr *r, struct tokr_record *rec, int timeout_ms);

/*
 * Done with a record, in any order. The space of a registered reader's records is given back up to
 * the oldest one it still holds. Returns 0: every use of the record before this call saw what was
 * published; or TOKR_OVERRUN: it may not have (a tap, or a reader that had been dropped: throw away
 * what came of it). A registered reader's second release of a record does nothing and returns 0;
 * a tap's would count what it lost once more.
 */
int tokr_release(struct tokr *r, const struct tokr_record *rec);

/* As tokr_release says, but the record stays held. */
int tokr_check(const struct tokr *r, const struct tokr_record *rec);

/* Which start of dpdk-tokd this is attached to: random, another one after every restart. */
uint64_t tokr_instance(const struct tokr *r);

struct tokr_ring {
	uint32_t worker, lcore;
	uint32_t vocab;	     /* checksum of the vocabulary */
	uint64_t data_bytes; /* what the ring holds */
	uint64_t tsc_hz;
	/* counted since attaching */
	uint64_t records, ids;	    /* given out */
	uint64_t unread_bytes;	    /* published and not given out, now */
	uint64_t held_bytes;	    /* a registered reader: given out and not given back, now */
	uint64_t overwritten_bytes; /* of those: overwritten, which follows being dropped */
	uint64_t overruns;	    /* a tap: how often it had to skip */
	uint64_t lost_bytes; /* a tap: bytes of ring it never saw, or saw overwritten on release */
	uint64_t broken_records; /* records whose release said TOKR_OVERRUN */
};

/* How many rings (workers) there are. */
uint32_t tokr_rings(const struct tokr *r);
/* Ring `index`, below tokr_rings(). Returns 0, or -1 for another index. */
int tokr_ring_info(const struct tokr *r, uint32_t index, struct tokr_ring *info);

/* The latest error of tokr_next in words. Valid until the next call. */
const struct tokr_error *tokr_last_error(const struct tokr *r);
const char *tokr_strerror(int code);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
