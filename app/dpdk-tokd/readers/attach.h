/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers of the token rings, control side: connections to the control socket, and the state of
 * each reader. tokd/ring.h has the protocol, doc/reference/ring.md explains it.
 *
 *            valid request            every ring ACTIVE
 *   CONNECTED ──────────▶ JOINING ───────────────────▶ READING
 *    │  │ │                 │ a worker does not answer   │ closed, died, or kept a ring full
 *    │  │ ▼ refused         ▼ refused                    ▼
 *    │  └FREE ◀─────────── LEAVING ◀─────────────────────┘
 *    │     ▲   every ring FREE: only now is the cursor unmapped
 *    │     │ closed or died
 *    └───▶ TAPPING: a tap's valid request. The workers do not know it.
 *
 * A connection beyond TOKD_CONNS_MAX is REFUSED: it gets the reason, and we wait until it closes.
 * If we closed it with its request unread, it would see a reset instead of the reason.
 *
 * One thread calls open, poll and close; nothing here blocks. Any thread may call list.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach_socket.h"
#include "datapath/token_ring.h"

#define TOKD_TAPS_MAX 16
/* Slots: first the readers, with the same index in every ring, then taps. */
#define TOKD_SLOTS_MAX (TOKD_READERS_MAX + TOKD_TAPS_MAX)
/* Further connections: those without a request yet. */
#define TOKD_CONNS_MAX (TOKD_SLOTS_MAX + 8)
#define TOKD_REFUSED_MAX 24  /* further ones are refused; still others wait in the backlog */
#define TOKD_REFUSED_MS 1000 /* for reading the reason */
#define TOKD_REQUEST_MS 1000 /* for the request */
#define TOKD_JOIN_MS 1000    /* for the workers, which check far more often */

enum tokd_conn_state {
	TOKD_CONN_FREE = 0,
	TOKD_CONN_CONNECTED,
	TOKD_CONN_JOINING,
	TOKD_CONN_READING,
	TOKD_CONN_LEAVING,
	TOKD_CONN_TAPPING,
	TOKD_CONN_REFUSED,
};

struct tokd_conn {
	enum tokd_conn_state state;
	int fd;		   /* -1 when closed, which LEAVING may be */
	int cursor_fd;	   /* memfd; -1 without */
	uint8_t *cursor;   /* its mapping, TOKD_CURSOR_BYTES */
	uint32_t slot;	   /* JOINING and later */
	uint64_t since_ms; /* of this state, CLOCK_MONOTONIC */
	pid_t pid;	   /* of the peer, when it connected */
	uid_t uid;
	uint64_t owner; /* of a reader: tokd_drops_owner */
	uint32_t drops; /* of its owner's readers, when it joined */
};

/*
 * Readers that were dropped for keeping a ring full, by owner: the user and the control group (of a
 * service, a container, a login) of the process. After the n-th drop the owner's readers are
 * refused for --reader-timeout * 2^(n-1), and the next one may keep a ring full for a quarter of
 * what the last one could. Forgotten when TOKD_HOLD_WINDOW_MS have passed after that without
 * another drop.
 */
#define TOKD_DROPS_MAX 8     /* doublings */
#define TOKD_DROPS_OWNERS 32 /* the one that is soonest forgotten gives its place */

struct tokd_drops {
	uint64_t owner;
	uint32_t n; /* 0: free */
	uint64_t until_ms, forget_ms;
};

struct tokd_attach_counts {
	uint64_t attached, refused, detached, dropped; /* refused: taps among them */
	uint64_t backed_off;			       /* of the refused: too soon after a drop */
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
	struct tokd_conn conn[TOKD_CONNS_MAX + TOKD_REFUSED_MAX]; /* the last are FREE or REFUSED */
	uint64_t accept_again_ms; /* no connection is accepted before then; 0: at once */
	uint32_t n_refused;	  /* REFUSED, not logged yet */
	uint64_t refused_log_ms;  /* not logged before then */
	struct tokd_conn *slot[TOKD_SLOTS_MAX]; /* NULL: free */
	struct tokd_drops drops[TOKD_DROPS_OWNERS];
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

/* Handles connections, requests, joins, leaves and time-outs. */
void tokd_attach_poll(struct tokd_attach *a);

/* Call poll again after this many ms, even if a->epoll is not readable. */
int tokd_attach_wait_ms(const struct tokd_attach *a);

/* Disconnect all readers. After the workers have returned: cursors are unmapped at once. */
void tokd_attach_close(struct tokd_attach *a);

struct tokd_reader_info {
	uint32_t slot;
	enum tokd_conn_state state;
	pid_t pid;
	uid_t uid;
	uint64_t state_ms;  /* time in this state */
	uint64_t lag_bytes; /* bytes not finished, of the ring with the most; 0 for taps */
	uint32_t lag_ring;  /* that ring */
};
/*
 * Fill `info`, readers before taps, with at most `room` entries, of which TOKD_SLOTS_MAX suffice;
 * returns their number. room 0: only the counts.
 */
uint32_t tokd_attach_list(struct tokd_attach *a, struct tokd_reader_info *info, uint32_t room,
	struct tokd_attach_counts *counts);

/* attach_answer.c: replies. Neither call blocks. */
/* The reply to a valid request, with descriptors. Returns 0 or -errno. */
int tokd_attach_answer(const struct tokd_attach *a, int fd, const uint64_t *start,
	const int *descriptors, uint32_t n_descriptors);
/* The reason of a refusal or disconnection; lost if the socket is full. */
void tokd_attach_say(int fd, const char *reason);

/* held[n_rings]: bytes of each ring that its slowest reader has not finished; 0 without readers. */
void tokd_attach_held(struct tokd_attach *a, uint64_t *held);

/* attach_reader.c: a reader in JOINING, READING and LEAVING. */
/* Returns 0, or -errno with the *reason for the reader. */
int tokd_reader_join(struct tokd_attach *a, struct tokd_conn *c, const char **reason);
bool tokd_reader_in_state(
	const struct tokd_attach *a, const struct tokd_conn *c, uint32_t state, uint32_t *missing);
/* Reply with start positions and descriptors. Returns 0 or -errno. */
int tokd_reader_welcome(struct tokd_attach *a, struct tokd_conn *c);
/* Set LEAVE at the workers. */
void tokd_reader_leave(struct tokd_attach *a, struct tokd_conn *c);
/* After the workers have left the cursor: unmap, close, free the slot. */
void tokd_reader_release(struct tokd_attach *a, struct tokd_conn *c);
/* The time that a reader may keep a ring full, of TOKD_HOLD_WINDOW_MS. */
uint32_t tokd_reader_hold_ms(const struct tokd_attach *a, const struct tokd_conn *c);
/* A reader that has kept ring `w` full for longer, or NULL. */
struct tokd_conn *tokd_reader_overdue(const struct tokd_attach *a, uint32_t w);
/* A tap gets its slot and reply at once. Returns 0, or -errno with the *reason for it. */
int tokd_tap_welcome(struct tokd_attach *a, struct tokd_conn *c, const char **reason);
uint64_t tokd_reader_lag(const struct tokd_attach *a, const struct tokd_conn *c, uint32_t w);

/* attach_drops.c */
/* Whose reader is it? Reads /proc; a process that cannot be looked up counts for its user. */
uint64_t tokd_drops_owner(pid_t pid, uid_t uid);
/* A reader was dropped. */
void tokd_drops_add(struct tokd_attach *a, uint64_t owner, uint64_t now_ms);
/* ms for which the owner's readers are refused, and *n drops that count; 0, 0: none. */
uint64_t tokd_drops_wait(const struct tokd_attach *a, uint64_t owner, uint64_t now_ms, uint32_t *n);
