/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way back of lib/gpu_sink/ring/gpu_ring.h, for Spin: lanes, their grants, the log, and how a
 * turn ends. run.py runs it in the sizes of its table, and with single steps changed, which must be
 * found. gpu_ring.pml has the slots; here a slot is a header, done, and a worker between them.
 *
 *   producer ──header, ask──▶ wire ──lands──▶ worker ──begins a turn──▶ engine ──▶ log, ended
 *      ▲                                                                             │
 *      └────────────────────────────── one READ ─────────────────────────────────────┘
 *
 * What is as in the code: a write that was posted lands later, and is lost with its queue pair; but
 * asks of a producer that died may land after that, also after the agent has granted a successor.
 * Asks of one lane land in order, and headers before or after them. A READ may have `ended` newer than
 * the log. Workers and engine end at any step, and the next incarnation begins when they have.
 * Laps wrap after two, turns after three.
 *
 * What is simpler: one producer at a time. A token is the text that it was made for and its index;
 * the code has neither, so the reader here only compares them with what it expects. The engine looks
 * at a lane in one step, as nothing that it looks at goes back; what it writes are steps of their
 * own. Epochs do not wrap, so the agent need not clear asks. Late headers are gpu_ring.pml's.
 */
#ifndef S
#define S 2 /* slots */
#endif
#ifndef L
#define L 1 /* lanes */
#endif
#ifndef G
#define G 2 /* words of the log */
#endif
#ifndef QUOTA
#define QUOTA (G / L - 1)
#endif
#ifndef TEXTS
#define TEXTS 2 /* of a producer */
#endif
#ifndef LIMIT
#define LIMIT 2 /* tokens of a text */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* of the consumer */
#endif
#ifndef BREAKS
#define BREAKS 0 /* of the connection */
#endif
#ifndef DEATHS
#define DEATHS 0 /* of the producer; a successor comes */
#endif
#ifndef CANCELS
#define CANCELS 0 /* text 1 is cancelled at any time */
#endif
#ifndef SLOW
#define SLOW 0 /* the client of text 1 takes nothing before all other texts have ended */
#endif

#define N_TEXTS (TEXTS * (1 + DEATHS))
#define AFTER(lap) (3 - (lap))
#define NEXT(turn) ((turn) % 3 + 1)
#define BEFORE(turn) ((turn) == 1 -> 3 : (turn) - 1)

#define STOP 1
#define CANCELLED 2
#define CUT 3
#define STALE 4

/* -- memory -- */

typedef slot {
	byte text, lane, turn, epoch; /* header */
	bit ticket, done
};
slot m[S];
typedef lane_words {
	byte turn, inc, text, epoch, made; /* the consumer's; `turn` and `inc` written last */
	byte opened;
	byte ended, n, how;		    /* one word */
	byte ask, ask_epoch, granted; bool final, cancel /* one word */
};
lane_words k[L];
typedef log_word {
	byte lap, lane, turn;
	byte text, index /* not in the code */
};
log_word log[G];
byte head, head_lap = 1; /* where the engine stands; the consumer's memory */
byte epoch_now = 1;

chan headers = [S] of { byte /* slot */, byte, byte, byte, byte };
#ifndef ASKS
#define ASKS 3
#endif
chan asks[L] = [ASKS] of { byte /* turn */, byte, bool, bool, byte };

bool dead, gone, broken, resumed;
byte running = 1, alive;
bool stopped;

/* -- what must hold -- */

byte told[N_TEXTS + 1]; /* how the text ended, as its owner was told */
byte got[N_TEXTS + 1];	/* its tokens that its owner was given */
byte may[N_TEXTS + 1];	/* tokens that were ever granted to it */
byte finished;

/* -- the NIC -- */

proctype nic()
{
	byte s, v, l, t, e;
	bool f, c;
end:	do
	:: atomic { headers ? s, v, l, t, e -> m[s].text = v; m[s].lane = l; m[s].turn = t;
		m[s].epoch = e; m[s].ticket = 1 - m[s].ticket; s = 0; v = 0; l = 0; t = 0; e = 0 }
	:: atomic { asks[0] ? t, v, f, c, e -> k[0].ask = t; k[0].granted = v; k[0].final = f;
		k[0].cancel = c; k[0].ask_epoch = e; t = 0; v = 0; f = 0; c = 0; e = 0 }
#if L > 1
	:: atomic { asks[1] ? t, v, f, c, e -> k[1].ask = t; k[1].granted = v; k[1].final = f;
		k[1].cancel = c; k[1].ask_epoch = e; t = 0; v = 0; f = 0; c = 0; e = 0 }
#endif
	od
}

/* -- the consumer -- */

/* Tickets are 0, 1, 0, ... here, and done follows. */
#define PENDING(s) (m[s].ticket != m[s].done)

proctype worker(byte inc)
{
	byte s;
	bool stale;
	{
end:		do
		:: atomic {
			if
			:: PENDING(0) -> s = 0
#if S > 1
			:: PENDING(1) -> s = 1
#endif
			fi };
			atomic { stale = (m[s].epoch != epoch_now) };
			/* tokg_lane_begin */
			if
			:: atomic { !stale && k[m[s].lane].turn != m[s].turn ->
				k[m[s].lane].text = m[s].text;
				k[m[s].lane].epoch = m[s].epoch;
				k[m[s].lane].made = 0;
				k[m[s].lane].opened = m[s].turn };
				atomic { k[m[s].lane].turn = m[s].turn; k[m[s].lane].inc = inc }
			:: else
			fi;
			/* done */
			atomic { m[s].done = m[s].ticket; s = 0; stale = 0 }
		od
	} unless {
		stopped
	};
	alive--
}

inline advance()
{
	head++;
	if
	:: head == G -> head = 0; head_lap = AFTER(head_lap)
	:: else
	fi
}

#define DECODES(l) (k[l].turn != k[l].ended)
#define RIGHT(l) (k[l].ask == k[l].turn && k[l].ask_epoch == k[l].epoch)
#define MORE(l) (RIGHT(l) && k[l].granted > k[l].made)
#define CANCELLED_NOW(l) (RIGHT(l) && k[l].cancel)
#define COMPLETE(l) (RIGHT(l) && k[l].final && !MORE(l))
/* A lane that is paused is not looked at: nothing would come of it. */
#define LOOK(l)                                                                                    \
	(DECODES(l) && (k[l].inc != inc || k[l].epoch != epoch_now || CANCELLED_NOW(l) ||          \
			       MORE(l) || COMPLETE(l)))

proctype engine(byte inc)
{
	byte l, how;
	{
		/* tokg_log_continue */
		atomic {
			do
			:: log[head].lap == head_lap -> advance()
			:: else -> break
			od
		};
end:		do
		:: atomic {
			if
			:: LOOK(0) -> l = 0
#if L > 1
			:: LOOK(1) -> l = 1
#endif
			fi;
			/* tokg_lane_look */
			if
			:: k[l].inc != inc -> how = CUT
			:: else ->
				if
				:: k[l].epoch != epoch_now -> how = STALE
				:: else ->
					if
					:: CANCELLED_NOW(l) -> how = CANCELLED
					:: !CANCELLED_NOW(l) && MORE(l) -> how = 0
					:: !CANCELLED_NOW(l) && COMPLETE(l) -> how = STOP
					fi
				fi
			fi };
			if
			:: how == 0 ->
				/* tokg_token_put */
				atomic {
					assert(k[l].made < may[k[l].text]);
					log[head].lap = head_lap;
					log[head].lane = l;
					log[head].turn = k[l].turn;
					log[head].text = k[l].text;
					log[head].index = k[l].made };
				atomic { advance() };
				atomic { k[l].made++ }
			:: how != 0 ->
				/* tokg_lane_end */
				atomic {
					k[l].n = k[l].made;
					k[l].how = how;
					k[l].ended = k[l].turn }
			fi;
			atomic { l = 0; how = 0 }
		od
	} unless {
		stopped
	};
	alive--
}

/* -- the producer: sink_lanes.c -- */

#define FREE 0
#define POSTED 1
#define SETTLED 2

inline write_ask(l)
{
	if
	:: nfull(asks[l]) -> asks[l] ! turn[l], granted[l], granted[l] == LIMIT, cancelled[l], epoch; due[l] = false
	:: full(asks[l]) -> due[l] = true
	fi
}

/* raise_grant: all of the quota at once, and as the client takes it. */
#define ROOM(l)                                                                                    \
	(SLOW && text[l] == 1 && finished_others < TEXTS - 1 -> 0 : LIMIT)
#define MOST(l) (taken[l] + QUOTA < ROOM(l) -> taken[l] + QUOTA : ROOM(l))

inline tell(l, what)
{
	if
	:: told[text[l]] == 0 ->
		told[text[l]] = what;
		assert(what != STOP || got[text[l]] == LIMIT);
		assert(what == STOP || what == CANCELLED || RESTARTS);
		finished_others = finished_others + (text[l] == 1 -> 0 : 1)
	:: else
	fi
}

inline release(l)
{
	if
	:: state[l] == SETTLED && over[l] -> state[l] = FREE; text[l] = 0; taken[l] = 0; granted[l] = 0;
		over[l] = false; cancelled[l] = false
	:: else
	fi
}

proctype producer(byte first; byte epoch)
{
	byte text[L], turn[L], taken[L], granted[L], state[L];
	byte lane_of[S], sent[S], sent_turn[S]; /* what a slot was posted with */
	byte at, lap, next, finished_others, s, i;
	bool over[L], due[L], cancelled[L], posted[S];
	byte copy_lap, copy_lane, copy_turn, copy_text, copy_index;

	/* tokg_sink_lanes_begin: nobody writes. */
	atomic {
		next = first;
		do
		:: i < L -> turn[i] = k[i].ended; i++
		:: else -> i = 0; break
		od;
		lap = log[0].lap;
		at = 1;
		if
		:: lap == 0 -> lap = 1; at = 0
		:: else ->
			do
			:: at < G && log[at].lap == lap -> at++
			:: else -> break
			od;
			if
			:: at == G -> at = 0; lap = AFTER(lap)
			:: else
			fi
		fi
	};
go:	{
		do
		/* a text: a free slot, a free lane */
#define POST(s, l)                                                                                 \
	atomic { !posted[s] && state[l] == FREE && next < first + TEXTS ->                         \
		text[l] = next;                                                                    \
		turn[l] = NEXT(turn[l]);                                                           \
		state[l] = POSTED;                                                                 \
		lane_of[s] = l;                                                                    \
		sent[s] = next;                                                                    \
		sent_turn[s] = turn[l];                                                            \
		posted[s] = true;                                                                  \
		next++;                                                                            \
		headers ! s, sent[s], l, turn[l], epoch;                                           \
		write_ask(l) }
		:: POST(0, 0)
#if S > 1
		:: POST(1, 0)
#endif
#if L > 1
		:: POST(0, 1)
		:: POST(1, 1)
#endif
		/* raise_grant */
#define GRANT(l)                                                                                   \
	atomic { state[l] != FREE && !over[l] && !cancelled[l] && MOST(l) > granted[l] ->          \
		granted[l] = MOST(l);                                                              \
		may[text[l]] = granted[l];                                                         \
		write_ask(l) }
		:: GRANT(0)
#if L > 1
		:: GRANT(1)
#endif
#define DUE(l) atomic { due[l] && nfull(asks[l]) -> write_ask(l) }
		:: DUE(0)
#if L > 1
		:: DUE(1)
#endif
#if CANCELS
		:: atomic { state[0] != FREE && text[0] == 1 && !cancelled[0] && !over[0] ->
			cancelled[0] = true;
			tell(0, CANCELLED);
			write_ask(0) }
#endif
		/* READ: done of a slot, when its header has landed, and asks of the turn before */
#define SETTLE(s)                                                                                  \
	atomic { posted[s] && !(headers ?? [eval(s), _, _, _, _]) && m[s].ticket == m[s].done &&   \
			m[s].text == sent[s] &&                                                    \
			!(asks[lane_of[s]] ?? [eval(BEFORE(sent_turn[s])), _, _, _, _]) ->         \
		posted[s] = false;                                                                 \
		if                                                                                 \
		:: state[lane_of[s]] == POSTED && text[lane_of[s]] == sent[s] ->                   \
			state[lane_of[s]] = SETTLED;                                               \
			release(lane_of[s])                                                        \
		:: else                                                                            \
		fi }
		:: SETTLE(0)
#if S > 1
		:: SETTLE(1)
#endif
		/* READ: the log's next word */
		:: atomic { log[at].lap == lap ->
			i = log[at].lane;
			if
			:: state[i] != FREE && log[at].turn == turn[i] && !over[i] ->
				assert(taken[i] < granted[i]);
				if
				:: !cancelled[i] ->
					/* its own, in order, once */
					assert(log[at].text == text[i] && log[at].index == taken[i]);
					got[text[i]]++
				:: else
				fi;
				taken[i]++
			:: else
			fi;
			at++;
			if
			:: at == G -> at = 0; lap = AFTER(lap)
			:: else
			fi;
			i = 0 }
		/* READ: `ended`, whatever of the log was read by then */
#define END(l)                                                                                     \
	atomic { state[l] != FREE && !over[l] && k[l].ended == turn[l] && taken[l] >= k[l].n ->    \
		over[l] = true;                                                                    \
		tell(l, k[l].how);                                                                 \
		release(l) }
		:: END(0)
#if L > 1
		:: END(1)
#endif
		:: atomic { next == first + TEXTS && state[0] == FREE && state[L - 1] == FREE &&
				!posted[0] && !posted[S - 1] ->
			finished++;
			goto over_and_out }
		od
	} unless {
		if
		:: dead -> goto over_and_out
		:: atomic { !dead && broken && resumed -> broken = false; resumed = false }
		fi
	};
	/* What was published stands; headers and asks once more. */
	atomic {
		s = 0;
		do
		:: s < S ->
			if
			:: posted[s] && m[s].text != sent[s] ->
				headers ! s, sent[s], lane_of[s], sent_turn[s], epoch
			:: else
			fi;
			s++
		:: else -> s = 0; break
		od;
		do
		:: i < L ->
			if
			:: turn[i] != 0 -> write_ask(i)
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od
	};
	goto go;
over_and_out:
	gone = true
}

/* -- the agent -- */

inline lose_headers()
{
	do
	:: headers ? _, _, _, _, _
	:: empty(headers) -> break
	od
}

inline destroy_queue_pair()
{
	lose_headers();
	do
	:: asks[0] ? _, _, _, _, _
	:: empty(asks[0]) -> break
	od;
#if L > 1
	do
	:: asks[1] ? _, _, _, _, _
	:: empty(asks[1]) -> break
	od
#endif
}

#define ALL_DONE (m[0].ticket == m[0].done && m[S - 1].ticket == m[S - 1].done)
#define ALL_ENDED (k[0].opened == k[0].ended && k[L - 1].opened == k[L - 1].ended)

proctype agent()
{
	byte restarts, stage = 1;

end:	do
#if RESTARTS
	:: atomic { restarts < RESTARTS && !stopped -> restarts++; stopped = true }
	:: atomic { stopped && alive == 0 ->
		stopped = false;
		k[0].opened = k[0].turn; /* tokg_lanes_repair */
		k[L - 1].opened = k[L - 1].turn;
		running++;
		run worker(running);
		run engine(running);
		alive = 2 }
#endif
#if BREAKS
	:: atomic { broken && !resumed && !dead -> destroy_queue_pair(); resumed = true }
#endif
#if DEATHS
	/* asks that were sent may land later */
	:: atomic { dead && gone && stage == 1 -> lose_headers(); epoch_now = 0; stage = 2 }
	/* slots first: what opens a lane does so before its slot is done */
	:: atomic { stage == 2 && ALL_DONE -> stage = 3 }
	:: atomic { stage == 3 && ALL_ENDED ->
		epoch_now = 2;
		dead = false;
		stage = 4;
		run producer(1 + TEXTS, 2) }
#endif
	:: false -> skip
	od
}

proctype fate()
{
#if BREAKS
	atomic { broken = true };
#endif
#if DEATHS
	atomic { dead = true };
#endif
	skip
}

proctype judge()
{
	byte i;

	atomic {
		timeout ->
		assert(finished >= 1);
		i = 1;
		do
		:: i <= N_TEXTS -> assert(told[i] != 0 || (DEATHS && i <= TEXTS)); i++
		:: else -> break
		od
	}
}

init
{
	atomic {
		run nic();
		run producer(1, 1);
		run agent();
		run worker(1);
		run engine(1);
		alive = 2;
		run judge();
		run fate()
	}
}
