/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers of the token rings, control side: who is connected to the control socket, and what state
 * the handshake with the workers is in. tokd/ring.h has the protocol, doc/reference/ring.md
 * explains it.
 *
 *           request good             every ring ACTIVE
 *   GREETING ──────────▶ JOINING ───────────────────▶ READING
 *    │  │ │                 │ a worker is silent         │ closed, died, or stalled a ring
 *    │  │ ▼ refused         ▼ refused                    ▼
 *    │  └FREE ◀─────────── LEAVING ◀─────────────────────┘
 *    │     ▲   every ring FREE: only now is the cursor unmapped
 *    │     │ closed or died
 *    └───▶ TAPPING: a tap's good request. No worker knows of it.
 *
 * A connection beyond TOKD_CONNS_MAX is TOLD so at once, and kept until it closes: closed by us
 * while its request is unread or on its way, it would see a reset instead of the reason.
 *
 * One thread calls open, poll and close; nothing here blocks. Any thread may call list.
 */
#ifndef TOKD_ATTACH_H
#define TOKD_ATTACH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach_socket.h"
#include "datapath/token_ring.h"

#define TOKD_TAPS_MAX 16
/* Places: readers have the first, which are their indices in every ring; taps those after. */
#define TOKD_SLOTS_MAX (TOKD_READERS_MAX + TOKD_TAPS_MAX)
/* Beyond those: connections that have not sent their request, or wait for a refusal. */
#define TOKD_CONNS_MAX (TOKD_SLOTS_MAX + 8)
#define TOKD_TOLD_MAX 24      /* beyond those: told that there are too many; others wait for that */
#define TOKD_TOLD_MS 1000     /* by then who was told has read it */
#define TOKD_GREETING_MS 1000 /* a connection without a request is closed after so long */
#define TOKD_JOIN_MS 1000     /* a worker looks at its readers far more often than that */

enum tokd_conn_state {
	TOKD_CONN_FREE = 0,
	TOKD_CONN_GREETING,
	TOKD_CONN_JOINING,
	TOKD_CONN_READING,
	TOKD_CONN_LEAVING,
	TOKD_CONN_TAPPING,
	TOKD_CONN_TOLD,
};

struct tokd_conn {
	enum tokd_conn_state state;
	int fd;		   /* -1 when closed, which LEAVING may be */
	int cursor_fd;	   /* memfd; -1 without */
	uint8_t *cursor;   /* its mapping, TOKD_CURSOR_BYTES */
	uint32_t slot;	   /* JOINING and later: its place */
	uint64_t since_ms; /* of this state, CLOCK_MONOTONIC */
	pid_t pid;	   /* of the peer, as it was when it connected */
	uid_t uid;
};

struct tokd_attach_counts {
	uint64_t attached, refused, detached, dropped; /* refused: taps among them */
	uint64_t taps_attached, taps_detached;
};

struct tokd_attach {
	struct tokd_ring *const *ring;
	uint32_t n_rings;
	uint32_t reader_timeout_ms;
	uint64_t instance;
	uint64_t tsc_per_ms;
	struct tokd_socket socket;
	int epoll; /* readable when poll has something to do */
	struct tokd_conn conn[TOKD_CONNS_MAX + TOKD_TOLD_MAX]; /* the latter are FREE or TOLD */
	uint64_t accept_again_ms;		/* no connection is taken before then; 0: at once */
	uint32_t crowd;				/* TOLD, and not yet logged */
	uint64_t crowd_log_ms;			/* not before then */
	struct tokd_conn *slot[TOKD_SLOTS_MAX]; /* NULL: free */
	struct tokd_attach_counts counts;
	pthread_mutex_t lock; /* poll against list */
};

/*
 * Serve readers of `n_rings` rings at socket `path`, with permission `mode` and group `group` as in
 * tokd_socket_open. `ring` must outlive *a. Returns 0 or -errno with a message logged.
 */
int tokd_attach_open(struct tokd_attach *a, const char *path, uint32_t mode, gid_t group,
	struct tokd_ring *const *ring, uint32_t n_rings, uint64_t instance,
	uint32_t reader_timeout_ms);

/* Do what is to be done now: requests, handshakes, departures, stalls. */
void tokd_attach_poll(struct tokd_attach *a);

/* In how many ms poll must be called again, although a->epoll stays silent. */
int tokd_attach_wait_ms(const struct tokd_attach *a);

/* Part from all readers. No worker runs any more: what they hold is unmapped without asking. */
void tokd_attach_close(struct tokd_attach *a);

struct tokd_reader_info {
	uint32_t slot;
	enum tokd_conn_state state;
	pid_t pid;
	uid_t uid;
	uint64_t state_ms;  /* in this state since */
	uint64_t lag_bytes; /* bytes published and not finished, in the ring where that is most;
			       of a tap nobody knows: 0 */
	uint32_t lag_ring;  /* that ring */
};
/*
 * Fill `info`, readers before taps, with as many as there are and room is for, at most
 * TOKD_SLOTS_MAX; returns how many were filled. Room 0, for the counts alone.
 */
uint32_t tokd_attach_list(struct tokd_attach *a, struct tokd_reader_info *info, uint32_t room,
	struct tokd_attach_counts *counts);

/* attach_answer.c: the one kind of message we send. Neither waits: who does not listen misses it.
 */
/* The good answer, with descriptors. Returns 0 or -errno. */
int tokd_attach_answer(const struct tokd_attach *a, int fd, const uint64_t *start,
	const int *descriptors, uint32_t n_descriptors);
/* The reason for a refusal, or for parting. */
void tokd_attach_say(int fd, const char *reason);

/* held[n_rings]: bytes of each ring that its slowest reader has not finished; 0 without readers. */
void tokd_attach_held(struct tokd_attach *a, uint64_t *held);

/* attach_reader.c: one reader's way through JOINING, READING and LEAVING. */
/* Returns 0, or -errno with *reason for the reader. */
int tokd_reader_join(struct tokd_attach *a, struct tokd_conn *c, const char **reason);
bool tokd_reader_all_in(
	const struct tokd_attach *a, const struct tokd_conn *c, uint32_t state, uint32_t *missing);
/* Answer with start positions and descriptors. Returns 0 or -errno. */
int tokd_reader_welcome(struct tokd_attach *a, struct tokd_conn *c);
/* Ask the workers to let go. */
void tokd_reader_leave(struct tokd_attach *a, struct tokd_conn *c);
/* They have, or they are gone: unmap, close, free the slot. */
void tokd_reader_release(struct tokd_attach *a, struct tokd_conn *c);
/* The reader that stalls ring `w` for too long, or NULL. */
struct tokd_conn *tokd_reader_overdue(const struct tokd_attach *a, uint32_t w);
/* A tap gets its place and its answer at once. Returns 0, or -errno with *reason for it. */
int tokd_tap_welcome(struct tokd_attach *a, struct tokd_conn *c, const char **reason);
uint64_t tokd_reader_lag(const struct tokd_attach *a, const struct tokd_conn *c, uint32_t w);

#endif
