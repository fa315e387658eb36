/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's insides. A slot is one request under way; its stream ids are
 * first_stream_id + slot + k * slots, so that a reply's id leads to its slot without a search.
 *
 * engine.c       creation, submitting, finishing
 * engine_send.c  which packets go out
 * engine_text.c  what a reply says of the text: acknowledged, held, lost
 * engine_ids.c   ids, in whichever order they come
 * engine_made.c  GENERATE: the answer's items
 * engine_take.c  a datagram, checked and shared out
 * engine_time.c  time-outs
 * engine_window.c  congestion control
 */
#pragma once

#include <mix.h>
#include <tokd/client_engine.h>

#define WINDOW TOKD_WIRE_WINDOW
/* All that exist. */
#define REQUEST_FLAGS                                                                              \
	((uint32_t)(TOKD_REQUEST_STREAM | TOKD_REQUEST_DECODE | TOKD_REQUEST_SKIP_SPECIAL |        \
		    TOKD_REQUEST_GENERATE))
static_assert(WINDOW == 64, "the packets of a window are the bits of a uint64_t");

#define NS_A_MS UINT64_C(1000000)
#define RTO_FIRST (20 * NS_A_MS)
#define RTO_MOST (2000 * NS_A_MS)   /* of what is sent for the first time */
#define AGAIN_MOST (250 * NS_A_MS)  /* of what is sent again, unless the path is longer */
#define PROBE_MOST (100 * NS_A_MS)  /* while only a POLL can be sent */
#define MODEL_FIRST (200 * NS_A_MS) /* while only the model can go on: before the first POLL */
#define MODEL_MOST (1000 * NS_A_MS) /* between later ones */
#define TICK NS_A_MS		    /* granularity of timers (G in RFC 6298) */
#define BUSY_PAUSE (5 * NS_A_MS)    /* if the appliance says no time; doubled at each refusal */
#define BUSY_MOST (2000 * NS_A_MS)
#define RESENDS_MAX 8	/* of one text, under a new stream id each; after BUSY, see there */
#define VALIDATES_MAX 8 /* of one text: each brought another cookie */
#define CANCELS_MAX 6	/* POLLs that say so, without an answer */
#define ACK_EVERY 16	/* replies with ids, or items of an answer, per acknowledgement */
#define ACK_AFTER (200 * NS_A_MS) /* of items that a slow caller takes */
#define TURN 16			  /* packets of a text, while others wait for the window */
#define AGAIN_BURST 16	    /* packets resent per time-out: the appliance replies once per 16 */
#define REORDERED 3	    /* sent later, a packet has arrived: one is lost (RFC 9002, 6.1.1) */
#define TIME_OUTS_A_TICK 16 /* requests; if all are late, answers may be on their way */
#define EARLY_MAX 16	    /* disjoint ranges of early ids */
#define NOBODY UINT32_MAX   /* no slot */

enum poll_reason {
	POLL_NONE,
	POLL_ACK,   /* ids have arrived; a packet of text acknowledges them too */
	POLL_STATE, /* text waits for an acknowledgement, which comes only every 16 packets */
	POLL_ASK,   /* ids are missing, or there was no reply */
};

enum { TEXT, POLL, QUEUES };

struct range {
	uint32_t first, end;
};

struct sent {
	uint64_t at;	/* ns */
	uint32_t order; /* position in the stream's send order, from 1 */
};

struct slot {
	struct tokd_request *r; /* NULL: free, or `cancels` */
	uint64_t stream_id;

	/* The text. Bit i of a mask is packet ack + i. */
	uint32_t n;	  /* packets */
	uint32_t payload; /* of each but the last */
	uint32_t ack;	  /* all below were acknowledged */
	uint32_t next;	  /* the first packet not sent yet; at most ack + WINDOW */
	uint32_t limit;	  /* packets from here on may not be sent; at most ack + WINDOW */
	uint32_t before;  /* as `next`, before BUSY, under the same stream id; 0: no BUSY */
	uint64_t sacked;
	uint64_t lost;
	uint64_t gap_at; /* ns; packets overtaken by `gap_order` are lost then; 0: none are */
	uint32_t gap_order;
	uint32_t order;	  /* of the latest packet */
	uint32_t probe;	  /* end of the packets in flight at the latest POLL_STATE */
	uint32_t untimed; /* answers to packets up to this `order` are not used to measure the round
			     trip */
	bool stopped;
	bool known;	    /* the appliance has the stream */
	uint64_t doubted;   /* but said that it has not, at this time; 0: heard of it since */
	bool behind;	    /* its latest reply had fewer packets than it acknowledged before */
	uint64_t cookie;    /* of the latest VALIDATE that was heeded; 0: none */
	uint32_t validated; /* VALIDATEs heeded, of the request */
	uint32_t text_crc;  /* of all packets below `next` */

	/* The ids. */
	uint32_t have; /* all below have arrived */
	uint32_t told; /* value of `have` in the last acknowledgement */
	uint32_t ids_crc;
	uint32_t unacked; /* replies with ids since the last acknowledgement */
	uint32_t asked; /* value of `have` at which a gap was requested at once; UINT32_MAX: none */
	uint32_t final_crc, final_total;
	uint32_t whole;	  /* GENERATE: all below are whole items */
	uint32_t untold;  /* items taken since the last acknowledgement */
	uint64_t told_at; /* ns; of that acknowledgement */
	bool took;	  /* items since the last time-out */
	bool final;	  /* the two final_... are known */
	uint8_t n_early;
	struct range early[EARLY_MAX]; /* sorted, disjoint, above `have` */

	/* Time. */
	uint32_t resends;    /* of its text, since it was submitted here */
	uint64_t busy_at;    /* of its first BUSY */
	uint32_t n_busy;     /* times that the text was refused by BUSY */
	bool pausing;	     /* after BUSY or SHARE: the text starts again at `deadline` */
	uint64_t waits;	     /* its last time-out */
	uint64_t backed_off; /* lower limit of its next time-out */
	bool started;	     /* a packet was sent */
	uint64_t begun_at;   /* when it was submitted here */
	uint64_t moved_at;   /* when it last made progress, or sent the first packet */
	uint64_t held_at;    /* the window holds it back since then, which does not count against
				its time limit; 0: it does not hold it back */
	uint64_t deadline;
	uint64_t key; /* in the heap; at most `deadline` */
	uint32_t heap_at;
	uint32_t cancels; /* its request was cancelled: POLLs that said so */

	/* What it has to send. */
	enum poll_reason poll;
	struct link {
		uint32_t next;
		bool queued;
	} link[QUEUES];

	struct sent sent[WINDOW];
};

/* A queue of slots, first in, first out. */
struct queue {
	uint32_t head, tail;
};

struct last_ack {
	uint64_t stream_id;
	uint32_t ids;
	bool cancels; /* no acknowledgement: its request was cancelled, and the slot is in use */
};

struct tokd_engine {
	struct tokd_engine_config config;
	struct tokd_client_stats stats;
	uint64_t now; /* of the latest call that had it */
	uint64_t srtt, rttvar;
	uint64_t least_rtt;  /* of all that were measured */
	uint64_t measured;   /* the time-out that these give; at first a guess */
	uint64_t rto;	     /* the same, backed off until an answer can be timed */
	uint32_t flight;     /* packets sent that were neither acknowledged nor declared lost */
	uint32_t window;     /* while `flight` is at it, no text is sent; at most config.packets */
	uint32_t towards;    /* packets that have arrived since it last changed */
	uint32_t undo;	     /* the window before the latest time-outs, or 0: they were right */
	uint64_t reduced_at; /* ns; of its last halving: losses of what was sent before count no
				more */
	uint64_t moved_at;   /* ns; a text made progress, or began alone; 0: it is not sent yet */
	bool limited;	     /* text waits for the window */
	uint32_t turn;	     /* packets that the first text of the queue has sent */
	uint32_t pending;    /* slots that are not free */
	uint32_t cancelling; /* of these, without a request */
	uint64_t cookie;     /* of the latest VALIDATE; 0: none yet */
	struct queue queue[QUEUES];
	uint32_t n_free, n_last_acks, first_last_ack;
	struct tokd_request *done, **done_end;
	uint32_t *free;		    /* slots; a stack */
	uint32_t *heap;		    /* slots by key; the lowest first */
	struct last_ack *last_acks; /* a ring, one entry per slot */
	struct slot slot[];
};

/* Of an id, where the caller wants it; of text or an answer: a byte. */
static inline uint32_t
id_bytes(const struct tokd_request *r)
{
	return r->flags & (TOKD_REQUEST_DECODE | TOKD_REQUEST_GENERATE) ? 1 : sizeof(uint32_t);
}

static inline bool
generates(const struct tokd_request *r)
{
	return r->flags & TOKD_REQUEST_GENERATE;
}

/* The caller may have a part of an answer, which another one would not continue. */
static inline bool
has_begun(const struct tokd_request *r)
{
	return generates(r) && r->n_ids > 0;
}

/* The caller wants ids as they come. */
static inline bool
streams(const struct tokd_request *r)
{
	return r->flags & (TOKD_REQUEST_STREAM | TOKD_REQUEST_GENERATE);
}

/*
 * What the appliance need not keep. Of an answer it is what the caller has taken, and then also the
 * part of an item that has arrived: the POLL that asks for the rest begins there.
 */
static inline uint32_t
to_ack(const struct slot *s)
{
	if (s->r == NULL || !generates(s->r) || s->r->taken == s->whole)
		return s->have;
	return s->r->taken > s->told ? s->r->taken : s->told;
}

/* `out` has room for an answer's bytes below this index. */
static inline uint64_t
room_end(const struct tokd_request *r)
{
	return (uint64_t)r->base + r->max_ids;
}

static inline uint64_t
low_bits(uint32_t n)
{
	return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static inline uint64_t
shift_down(uint64_t mask, uint32_t by)
{
	return by >= 64 ? 0 : mask >> by;
}

static inline uint64_t
shift_up(uint64_t mask, uint32_t by)
{
	return by >= 64 ? 0 : mask << by;
}

static inline uint32_t
slot_index(const struct tokd_engine *e, const struct slot *s)
{
	return (uint32_t)(s - e->slot);
}

/* Differs between texts, and between times. */
static inline uint32_t
at_random(const struct slot *s, uint64_t now)
{
	return (uint32_t)tokd_mix(now ^ s->stream_id);
}

/* Of the packets from `ack` on. */
static inline uint64_t
flying(const struct slot *s)
{
	return low_bits(s->next - s->ack) & ~(s->sacked | s->lost);
}

static inline uint32_t
in_flight(const struct slot *s)
{
	return (uint32_t)__builtin_popcountll(flying(s));
}

/*
 * RFC 6298, section 3: answers to anything sent so far are ambiguous, as a lost reply or a gap may
 * have delayed the acknowledgement. Do not time them.
 */
static inline void
engine_time_none(struct slot *s)
{
	s->untimed = s->order;
}

static inline struct sent *
sent_of(struct slot *s, uint32_t packet)
{
	return &s->sent[packet % WINDOW];
}

/* Packets that may be sent: lost ones, and new ones. */
static inline bool
may_send(const struct slot *s)
{
	uint32_t end = s->limit < s->n ? s->limit : s->n;

	return s->next < end || (s->lost & low_bits(s->limit - s->ack)) != 0;
}

/* The window alone holds it back. */
static inline bool
is_held_back(const struct tokd_engine *e, const struct slot *s)
{
	return e->limited && s->link[TEXT].queued && in_flight(s) == 0 && may_send(s);
}

/* Its time limit runs from then. What the window holds it back for is left out. */
static inline uint64_t
counts_from(const struct slot *s, uint64_t now)
{
	if (s->started)
		return s->moved_at + (s->held_at != 0 ? now - s->held_at : 0);
	return s->r->since != 0 ? s->r->since + (now - s->begun_at) : now;
}

/* engine.c */
void engine_begin(struct tokd_engine *e, struct slot *s); /* a new stream for the slot's text */
/* The same for a text in progress. Packets and replies of the old stream count no more. */
void engine_cut_again(struct tokd_engine *e, struct slot *s, uint64_t now);
void engine_finish(struct tokd_engine *e, struct slot *s, enum tokd_status status);
void engine_list(struct tokd_engine *e, struct tokd_request *r);
/* Frees the slot. Packets still in flight belong to another stream then. */
void engine_let_go(struct tokd_engine *e, struct slot *s);
/* Ids of a finished stream: with their acknowledgement the appliance may drop them. */
void engine_owe_last_ack(struct tokd_engine *e, uint64_t stream_id, uint32_t ids);
/* The CANCEL of a stream whose slot is in use again. It is sent once. */
void engine_owe_cancel(struct tokd_engine *e, uint64_t stream_id, uint32_t ids);

/* engine_send.c */
void engine_queue_text(struct tokd_engine *e, struct slot *s);
void engine_queue_poll(struct tokd_engine *e, struct slot *s, enum poll_reason reason);
void engine_dequeue(struct tokd_engine *e, struct slot *s);
/* Asks for the state of a text in progress, unless it was asked behind what is in flight. */
void engine_queue_probe(struct tokd_engine *e, struct slot *s);
/* End of the ids to request; 0: none are known to be missing, or there is no room for them. */
uint32_t engine_missing_end(const struct slot *s);

/* engine_text.c: true if the reply has news. */
bool engine_text_heard(
	struct tokd_engine *e, struct slot *s, const struct tokd_rep *rep, uint64_t now);
/* The time `gap_at` has come. */
void engine_text_gap(struct tokd_engine *e, struct slot *s, uint64_t now);

/* engine_ids.c: true if there are new ids. `ids`: bytes at any alignment. */
bool engine_ids_take(struct slot *s, const struct tokd_rep *rep, const void *ids);

/* engine_made.c: looks at new items. TOKD_PENDING, or what is wrong with them. */
enum tokd_status engine_made_check(struct slot *s);

/* engine_window.c */
void engine_window_arrived(struct tokd_engine *e, uint32_t packets);
void engine_window_lost(struct tokd_engine *e, uint64_t sent_at, bool timed_out, uint64_t now);
/* The latest time-outs were too early (RFC 4015): the window is as before. */
void engine_window_undo(struct tokd_engine *e);

/* engine_time.c */
void engine_time_sample(struct tokd_engine *e, uint64_t rtt, uint64_t now);
void engine_time_wait(struct tokd_engine *e, struct slot *s, uint64_t now);
void engine_time_set(struct tokd_engine *e, struct slot *s, uint64_t deadline);
void engine_time_add(struct tokd_engine *e, struct slot *s);
void engine_time_remove(struct tokd_engine *e, struct slot *s);
