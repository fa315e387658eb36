/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slot protocol of lib/gpu_sink/ring/gpu_ring.h, for Spin: every interleaving at small sizes. run.py
 * runs it in the sizes and orders of its table, and with single steps changed, which must be found.
 *
 *   producer ──posts──▶ wire ──lands──▶ region ◀──▶ workers ──▶ outbox ──▶ agent ──▶ subscriber
 *      ▲                                  │                                  │
 *      └────── done[], released: one READ ┴──────────────────────────────────┘
 *
 * What is as in the code: a write that was posted is not in memory yet. It waits in `wire`, lands at
 * any later time, and is lost if the queue pair is destroyed before. ORDER says what of that is in
 * order. A READ's answer comes after the writes before it have landed (PCIe: reads push writes).
 *
 * What is simpler: a payload is the number of its text, a row too. The check word is perfect: the
 * model says what follows if it finds every mixture, not how good NH is. A header is two pieces,
 * `ticket` and the rest. Consumer, agent and subscriber see one memory, in the order of their steps;
 * steps that release and acquire order in C stand one after the other here, and run.py swaps them.
 * A slot holds one record (no BATCH) and takes one unit of outputs. The consumer looks at all slots.
 */

/* ORDER, of writes to the region. */
#define IN_ORDER 0 /* as posted: FAST where the memory promises it, shm */
#define LOOSE 1	   /* a header is whole, but may land before its payload and before other slots */
#define ANY 2	   /* any piece before any other: new ticket over old header, over old payload */

#ifndef ORDER
#define ORDER IN_ORDER
#endif
#ifndef CHECK
#define CHECK 1 /* TOKG_CHECKED */
#endif
#ifndef P
#define P 1 /* places */
#endif
#ifndef S
#define S 2 /* slots of each */
#endif
#ifndef TEXTS
#define TEXTS 3 /* that a producer posts, one slot each */
#endif
#ifndef OUTS
#define OUTS 2 /* units of outputs of each place */
#endif
#ifndef WORKERS
#define WORKERS 2 /* of the consumer, in each incarnation */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* of the consumer */
#endif
#ifndef DEATHS
#define DEATHS 0 /* of the producer at place 0; a successor comes */
#endif
#ifndef BREAKS
#define BREAKS 0 /* of the connection of place 0, which is resumed */
#endif
/* Workers of an older incarnation are gone before the next begins. 0: they go on, late. Then only
 * what `claim` and `done` promise by themselves is looked at, and nothing of outputs. */
#ifndef FENCED
#define FENCED 1
#endif
/* A GPU stores an entry's seq and `done` after one fence, so `done` may be seen first. It does not
 * end between the two. */
#ifndef SEQ_LATE
#define SEQ_LATE 0
#endif
/* 0: header and payload may be older than the ticket (S=1 alone), as on a GPU with a check word. The
 * epoch is not: a GPU does not load ahead of a branch. */
#ifndef ACQUIRE
#define ACQUIRE 1
#endif
#ifndef RETRIES
#define RETRIES 1 /* of the check */
#endif

#define INSTANCES (P + DEATHS)	   /* of producers; place 0's first */
#define N_TEXTS (INSTANCES * TEXTS) /* numbered from 1 on; 0: nothing */
#define GARBAGE 255		   /* source bytes that were used again */
#define CONNS (1 + BREAKS + DEATHS)
#define AT(p, s) ((p) * S + (s))
#define WIRE(p, c) ((p) * CONNS + (c))

#define OK 1
#define BADSUM 2
#define STALE 3

/* -- memory -- */

typedef slot {
	byte pay;			    /* payload */
	byte text, epoch, out, made;	    /* header; made: the ticket that its check word was made with */
	byte ticket;			    /* its last word */
	byte claim_inc, claim_t;	    /* one word */
	byte done_t, done_s		    /* one word */
};
slot m[P * S];
byte back_epoch[P];
byte back_released[P];
byte row[P * OUTS]; /* outputs */

typedef entry {
	bool seq; /* written last */
	byte at, ticket, text, out, status
};
/* As many as there are units of outputs: device.h says that it cannot overflow. */
#ifndef OUTBOX
#define OUTBOX (P * OUTS)
#endif
entry outbox[OUTBOX];
byte reserved, taken; /* entries, in all; taken: by the agent */

/* Writes on their way: one queue for each connection there ever was. */
mtype = { PAYLOAD, HEADER, TICKET };
chan wire[P * CONNS] = [3 * S] of { mtype, byte /* slot */, byte, byte, byte, byte };
byte conn[P]; /* the one that is used */

/* -- what happens to the parts -- */

bool dead[P], gone[P], broken[P], resumed[P];
byte running = 1; /* incarnation of the consumer */
byte alive;	  /* its workers, and older ones */
bool stopped;	  /* it was told to end, or was killed: a worker ends at any step */
byte held[P * OUTS]; /* the text whose rows a subscriber has; 0: none */

/* -- what must hold: nothing below is in the code -- */

byte posted_text[P * S], posted_ticket[P * S], posted_epoch[P * S];
bool source_free[N_TEXTS + 1];
bool entered[N_TEXTS + 1];   /* an entry says OK */
byte unmarked[N_TEXTS + 1];  /* ... without `redo`: so many */
byte delivered[N_TEXTS + 1]; /* times that a subscriber got it */
byte said[N_TEXTS + 1];	     /* status by which its producer has ended it */
byte finished;		     /* producers that have ended all of their texts */

#define promise(x) assert(!FENCED || (x))

/* -- the NIC -- */

inline land_payload()
{
	assert(!source_free[v]); /* the NIC reads the source only now */
	m[AT(p, s)].pay = v
}

inline land_header()
{
	m[AT(p, s)].text = v;
	m[AT(p, s)].epoch = e;
	m[AT(p, s)].out = o;
	m[AT(p, s)].made = t
}

inline land_ticket()
{
	assert(t > m[AT(p, s)].ticket); /* tickets rise */
	m[AT(p, s)].ticket = t
}

inline clear()
{
	s = 0; v = 0; e = 0; o = 0; t = 0
}

#define TAKE(kind, slot) wire[WIRE(p, c)] ?? kind, slot, v, e, o, t

/* No step here is interrupted: each lands one piece. */
proctype nic(byte p; byte c)
{
	byte s, v, e, o, t;
end:	do
#if ORDER == IN_ORDER
	:: atomic { wire[WIRE(p, c)] ? PAYLOAD, s, v, e, o, t -> land_payload(); clear() }
	:: atomic { wire[WIRE(p, c)] ? HEADER, s, v, e, o, t -> land_header(); clear() }
	:: atomic { wire[WIRE(p, c)] ? TICKET, s, v, e, o, t -> land_ticket(); clear() }
#else
	:: atomic { TAKE(PAYLOAD, 0) -> land_payload(); clear() }
#if ORDER == ANY
	:: atomic { TAKE(HEADER, 0) -> land_header(); clear() }
	:: atomic { TAKE(TICKET, 0) -> land_ticket(); clear() }
#else
	:: atomic { TAKE(HEADER, 0) -> land_header(); TAKE(TICKET, 0); land_ticket(); clear() }
#endif
#if S > 1
	:: atomic { TAKE(PAYLOAD, 1) -> s = 1; land_payload(); clear() }
#if ORDER == ANY
	:: atomic { TAKE(HEADER, 1) -> s = 1; land_header(); clear() }
	:: atomic { TAKE(TICKET, 1) -> s = 1; land_ticket(); clear() }
#else
	:: atomic { TAKE(HEADER, 1) -> s = 1; land_header(); TAKE(TICKET, 1); s = 1; land_ticket(); clear() }
#endif
#endif
#endif
	od
}

#define IN_FLIGHT(s)                                                                               \
	(wire[WIRE(p, conn[p])] ?? [PAYLOAD, eval(s), _, _, _, _] ||                               \
		wire[WIRE(p, conn[p])] ?? [HEADER, eval(s), _, _, _, _] ||                         \
		wire[WIRE(p, conn[p])] ?? [TICKET, eval(s), _, _, _, _])

/* -- the producer: sink.c and a transport -- */

/* Payload WRITE, header WRITE. */
inline post_payload()
{
	assert(!source_free[text[s]]);
	posted_text[AT(p, s)] = text[s];
	posted_ticket[AT(p, s)] = ticket[s];
	posted_epoch[AT(p, s)] = epoch;
	wire[WIRE(p, conn[p])] ! PAYLOAD, s, text[s], 0, 0, 0
}

inline post_header()
{
	wire[WIRE(p, conn[p])] ! HEADER, s, text[s], epoch, out[s], ticket[s];
	wire[WIRE(p, conn[p])] ! TICKET, s, 0, 0, 0, ticket[s]
}

/* Takes the next slot in circular order, the next unit of outputs, and the slot's next ticket. */
inline give()
{
	s = n_posted % S;
	ticket[s]++;
	out[s] = n_posted % OUTS;
	n_posted++
}

/* One READ: the back area as it is when all that this slot was posted with has landed. */
#define MAY_READ(s) (text[s] != 0 && !IN_FLIGHT(s))
#define DONE_READ(s) (MAY_READ(s) && m[AT(p, s)].done_t == ticket[s])

inline take_done()
{
	if
	:: m[AT(p, s)].done_s == OK ->
		assert(entered[text[s]]);
		said[text[s]] = OK;
		source_free[text[s]] = true
	:: m[AT(p, s)].done_s != OK && !strict[s] ->
		again ! text[s]
	:: else ->
		assert(strict[s]);    /* given up only after that */
		assert(ORDER == ANY); /* and never where headers are whole */
		said[text[s]] = m[AT(p, s)].done_s;
		source_free[text[s]] = true
	fi;
	text[s] = 0;
	strict[s] = false
}

/* A crash is no step of the producer: of what it posted, any part has landed or will, until the
 * agent destroys the queue pair. So a post may be one step here. */
proctype producer(byte p; byte instance; byte epoch)
{
	byte text[S], ticket[S], out[S];
	bool strict[S];
	byte s, n_posted, released, next, ended;
	chan again = [S] of { byte };

	/* Tickets go on from where the place stands. */
	d_step {
		next = instance * TEXTS + 1;
		ended = next + TEXTS;
		do
		:: s < S -> ticket[s] = m[AT(p, s)].ticket; s++
		:: else -> s = 0; break
		od
	}
go:
	{
		{
			do
			/* post: the slot is free, there is room for its rows */
			:: atomic { text[n_posted % S] == 0 && n_posted - released < OUTS &&
					next < ended && empty(again) ->
				give();
				text[s] = next;
				next++;
				post_payload();
				post_header();
				s = 0 }
			/* post again, STRICT: payload; READ of its tail, which pushes; header behind it */
			:: atomic { text[n_posted % S] == 0 && n_posted - released < OUTS && nempty(again) ->
				give();
				again ? text[s];
				strict[s] = true;
				post_payload() };
				atomic { !IN_FLIGHT(s) -> post_header(); s = 0 }
			/* read_back */
			:: atomic { DONE_READ(0) -> s = 0; take_done(); s = 0 }
#if S > 1
			:: atomic { DONE_READ(1) -> s = 1; take_done(); s = 0 }
#endif
			:: atomic { n_posted > released && back_released[p] > released -> released = back_released[p] }
			:: atomic { next == ended && empty(again) && text[0] == 0 && text[S - 1] == 0 ->
				finished++; goto over }
			od
		} unless {
			/* The connection broke: hello with `resume`; the agent has answered. */
			atomic { broken[p] && resumed[p] -> broken[p] = false; resumed[p] = false; s = 0 }
		}
	} unless {
		dead[p] -> goto over
	};
	/* What was published stands; the rest once more, in the order of posting, same tickets;
	 * what was STRICT is so again. */
	{
		atomic {
			s = n_posted % S;
			do
			:: text[s] != 0 && m[AT(p, s)].ticket != ticket[s] ->
				post_payload();
				!strict[s] || !IN_FLIGHT(s) -> post_header();
				s = (s + 1) % S;
				if :: s == n_posted % S -> break :: else fi
			:: else ->
				s = (s + 1) % S;
				if :: s == n_posted % S -> break :: else fi
			od;
			s = 0
		}
	} unless {
		dead[p] -> goto over
	};
	goto go;
over:	gone[p] = true
}

/* -- the consumer: kernel/ -- */

/* Published, not done, and nobody has it: its claim is for an older ticket, or by an older
 * incarnation. */
#define MAY_CLAIM(ct, ci, t) (ct < t || (ct == t && ci < inc))
#define PENDING(x)                                                                                 \
	(m[x].ticket == m[x].done_t + 1 && MAY_CLAIM(m[x].claim_t, m[x].claim_inc, m[x].ticket))

inline read_header()
{
	text = m[x].text; epoch = m[x].epoch; out = m[x].out; made = m[x].made
}

proctype worker(byte inc)
{
	byte x, t, ct, ci, text, epoch, out, made, pay, live, tries, status, i;
	bool redo, lived, stores;
	{
end:		do
#if ACQUIRE
		:: atomic {
#else
		:: atomic { read_header(); pay = m[x].pay };
end_early:		atomic {
#endif
			/* ticket, relaxed, and done */
			if
			:: PENDING(0) -> x = 0
#if P * S > 1
			:: PENDING(1) -> x = 1
#endif
#if P * S > 2
			:: PENDING(2) -> x = 2
			:: PENDING(3) -> x = 3
#endif
			fi;
			t = m[x].ticket };
			/* claim, as it stands */
			atomic {
				ct = m[x].claim_t; ci = m[x].claim_inc;
				live = back_epoch[x / S];
				lived = (posted_epoch[x] == live)
			};
#if ACQUIRE
			/* ticket once more, with acquire; header */
			atomic { read_header() };
#endif
			/* claim: compare-and-swap */
			atomic {
				if
				:: MAY_CLAIM(ct, ci, t) && m[x].claim_t == ct && m[x].claim_inc == ci ->
					m[x].claim_t = t;
					m[x].claim_inc = inc;
					redo = (ct == t);
					goto copy
				:: else -> goto next
				fi
			};
			/* once more: the payload is copied, and the copy is checked and used */
again:			atomic { read_header() };
copy:			atomic {
				if
				:: ACQUIRE || tries > 0 -> pay = m[x].pay
				:: else
				fi;
				if
				:: m[x].ticket != t -> status = BADSUM
				:: m[x].ticket == t && (!CHECK || (pay == text && made == t)) -> status = OK
				:: m[x].ticket == t && CHECK && !(pay == text && made == t) ->
					if
					:: tries < RETRIES -> tries++; goto again
					:: tries == RETRIES -> status = BADSUM
					fi
				fi;
				tries = 0 };
			/* epoch */
			atomic {
				if
				:: status == OK && epoch != live -> status = STALE
				:: else
				fi };
			/* rows */
			if
			:: status == OK -> row[x / S * OUTS + out] = pay
			:: else
			fi;
			/* outbox */
			atomic { i = reserved % OUTBOX; reserved++; promise(reserved - taken <= OUTBOX) };
			atomic {
				promise(!outbox[i].seq);
				outbox[i].at = x; outbox[i].ticket = t; outbox[i].text = text;
				outbox[i].out = out; outbox[i].status = status;
				stores = SEQ_LATE;
				outbox[i].seq = !SEQ_LATE;
				if
				:: status == OK ->
					/* the text that was posted, of an epoch that had not ended */
					promise(text == posted_text[x] && t == posted_ticket[x]);
					promise(lived);
					entered[text] = true;
					unmarked[text] = unmarked[text] + (redo -> 0 : 1);
					promise(unmarked[text] <= 1)
				:: else
				fi };
			/* done: compare-and-swap from ticket - 1 */
			atomic {
				if
				:: m[x].done_t == t - 1 ->
					assert(m[x].done_t + 1 == t); /* never back, never by two */
					m[x].done_t = t;
					m[x].done_s = status
				:: else
				fi };
#if SEQ_LATE
			atomic { outbox[i].seq = true; stores = false };
#endif
next:			atomic { x = 0; t = 0; ct = 0; ci = 0; text = 0; epoch = 0; out = 0; made = 0;
				pay = 0; live = 0; status = 0; i = 0; redo = 0; lived = 0 }
		od
	} unless {
		stopped && FENCED && !stores
	};
	alive--
}

/* -- the agent -- */

inline destroy_queue_pair()
{
	do
	:: wire[WIRE(p, conn[p])] ? _, _, _, _, _, _
	:: empty(wire[WIRE(p, conn[p])]) -> break
	od
}

/* `released` rises in the order of posting: slot, unit and ticket of the one whose turn it is. */
#define TURN(p) AT(p, turn[p] % S)
#define RETURNED(p)                                                                                \
	(m[TURN(p)].done_t > back_t[TURN(p)] &&      /* it is done: nobody will write rows again */ \
		taken == reserved &&                 /* and what it said of itself has been read */ \
		held[(p) * OUTS + turn[p] % OUTS] == 0) /* and the subscriber's last use was */

inline raise_released(p)
{
	back_t[TURN(p)]++;
	turn[p]++;
	back_released[p] = turn[p]
}

inline take_entry()
{
	x = outbox[taken % OUTBOX].at;
	if
	:: outbox[taken % OUTBOX].status == OK && outbox[taken % OUTBOX].ticket > given_t[x] ->
		given_t[x] = outbox[taken % OUTBOX].ticket;
		u = x / S * OUTS + outbox[taken % OUTBOX].out;
		promise(held[u] == 0);
		held[u] = outbox[taken % OUTBOX].text;
		delivered[held[u]]++;
		promise(delivered[held[u]] <= 1)
	:: else /* failed, or an older incarnation's entry has been delivered */
	fi;
	outbox[taken % OUTBOX].at = 0; outbox[taken % OUTBOX].ticket = 0; outbox[taken % OUTBOX].text = 0;
	outbox[taken % OUTBOX].out = 0; outbox[taken % OUTBOX].status = 0;
	outbox[taken % OUTBOX].seq = false;
	taken++; x = 0; u = 0
}

inline start_consumer()
{
	x = 0;
	do
	:: x < WORKERS -> run worker(running); alive++; x++
	:: else -> x = 0; break
	od
}

proctype agent()
{
	byte given_t[P * S]; /* last ticket of a slot that a subscriber was given */
	byte back_t[P * S];  /* last one that `released` has passed */
	byte turn[P];	     /* slots that it has passed, in this epoch */
	byte x, u, restarts, p;
	byte stage = 1;

end:	do
	:: atomic { outbox[taken % OUTBOX].seq -> take_entry() }
	:: atomic { back_epoch[0] != 0 && RETURNED(0) -> raise_released(0) }
#if P > 1
	:: atomic { back_epoch[1] != 0 && RETURNED(1) -> raise_released(1) }
#endif
#if RESTARTS
	/* the consumer ends, at any step; when all workers are gone, what they reserved and did not
	 * write never will be */
	:: atomic { restarts < RESTARTS && !stopped -> restarts++; stopped = true }
	:: atomic { stopped && alive == 0 && taken < reserved && !outbox[taken % OUTBOX].seq -> taken++ }
	:: atomic { stopped && (alive == 0 || !FENCED) && (taken == reserved || !FENCED) ->
		stopped = false;
		running++;
		start_consumer() }
#endif
#if BREAKS
	/* hello with `resume` */
	:: atomic { broken[0] && !resumed[0] && !dead[0] ->
		destroy_queue_pair();
		conn[0]++;
		resumed[0] = true }
#endif
#if DEATHS
	/* the connection's end */
	:: atomic { dead[0] && gone[0] && stage == 1 -> destroy_queue_pair(); conn[0]++; stage = 2 }
	/* a second later */
	:: atomic { stage == 2 -> back_epoch[0] = 0; stage = 3 }
	/* a hello, when all slots are done and all outputs are back */
	:: atomic { stage == 3 && m[0].ticket == m[0].done_t && m[S - 1].ticket == m[S - 1].done_t &&
			taken == reserved && held[0] == 0 && held[OUTS - 1] == 0 ->
		back_t[0] = m[0].done_t;
		back_t[S - 1] = m[S - 1].done_t;
		turn[0] = 0;
		back_released[0] = 0;
		back_epoch[0] = 2;
		dead[0] = false;
		stage = 4;
		run producer(0, P, 2) }
#endif
	od
}

/* Uses rows for as long as it likes. What counts is its last look at them. */
proctype subscriber(byte u)
{
end:	do
	:: atomic { held[u] != 0 -> promise(row[u] == held[u]); held[u] = 0 }
	od
}

/* At any time. */
proctype fate()
{
#if BREAKS
	atomic { broken[0] = true };
#endif
#if DEATHS
	atomic { dead[0] = true };
#endif
	skip
}

/* Nothing can move any more: every text must have come to its end, and what is done is delivered. */
proctype judge()
{
	byte i;

	atomic {
		timeout ->
		assert(finished >= INSTANCES - DEATHS);
		i = 1;
		do
		:: i <= N_TEXTS ->
			assert(said[i] != 0 || (DEATHS && i <= TEXTS));
			promise(said[i] != OK || delivered[i] == 1);
			i++
		:: else -> break
		od
	}
}

init
{
	byte p, c, x;

	atomic {
		do
		:: p < P ->
			back_epoch[p] = 1;
			c = 0;
			do
			:: c < CONNS -> run nic(p, c); c++
			:: else -> break
			od;
			run producer(p, p, 1);
			p++
		:: else -> break
		od;
		p = 0;
		do
		:: p < P * OUTS -> run subscriber(p); p++
		:: else -> break
		od;
		run agent();
		start_consumer();
		run judge();
		run fate()
	}
}
