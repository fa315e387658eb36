/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An external engine and its relay, for Spin: include/tokd/engine.h and lib/gpu_sink/kernel/relay.cuh.
 * One lane, which several texts have one after the other; engines that are replaced, and what these
 * still store then. run.py runs it in the sizes of its table, and with single steps changed, which
 * must be found. gpu_lanes.pml has what is between the relay and the producer; here the producer gets
 * each token at once.
 *
 *   producer ──begins a use, ask──▶ relay ──shown: state, grant──▶ engine
 *       ▲                             │ ▲                            │
 *       └────────── tokens, ended ────┘ └── ids, made, end ──────────┘
 *
 * What is as in the code: each store is a step, and each load of the relay's pass. An engine that
 * is replaced goes on with the step that it is at, however late, until it looks at its lane again;
 * or it is dead before any step. An engine forgets a lane when a look says that it has ended. The
 * relay looks when tokg_relay_waits says so, as with graphs.
 *
 * What is simpler: memory is sequentially consistent. What decides whether there is something to do
 * (tokg_relay_waits, an engine's look) loads all its words at once. Uses do not wrap, also not in
 * the 8 bits that an id has of them. An id is the use that it was made for and its index, which the
 * code has not; the relay here only compares them with what must come. In one memory a late store
 * may cut a text, so there CUT is not asserted.
 */
#ifndef USES
#define USES 2 /* of the lane */
#endif
#ifndef ENGINES
#define ENGINES 2 /* one after the other */
#endif
#ifndef SHARED
#define SHARED 1 /* one memory has what all engines make: the device cuda; 0: each has its own */
#endif
#ifndef LIMIT
#define LIMIT 2 /* tokens of a text */
#endif
#ifndef ROOM
#define ROOM 1 /* ids */
#endif
#ifndef CANCELS
#define CANCELS 0 /* a text may be cancelled at any time */
#endif
#ifndef LIAR
#define LIAR 0 /* the engine makes more than is granted */
#endif
#ifndef FORGETS
#define FORGETS 0 /* the engine does not look again at a lane that it has ended */
#endif

#define OPEN 0
#define STOP 1
#define LENGTH 2
#define CANCELLED 3
#define CUT 4

#if SHARED
#define M(engine) 0
#else
#define M(engine) (engine)
#endif

/* -- memory -- */

typedef word { byte use, n };
typedef id_word {
	byte use; /* in the upper bits; 0: none */
	byte text, index /* not in the code */
};
typedef memory {
	word made, end; /* n of `end`: how */
	id_word id[ROOM]
};
memory m[ENGINES + 1]; /* what engines write */
word state, grant;     /* what the relay shows */
byte attached;	       /* ctl.engine */

/* The consumer's: the lane; `begun` is written last. */
byte use, lane_engine, begun, taken, shown;
word granted_shown;
byte ended; /* the use that ended last */

byte ask; /* the producer's: granted in all */
bool cancel;

chan outbox = [1] of { byte /* use */ };
chan prompt[ENGINES + 1] = [USES] of { byte /* use */ };
bool dead[ENGINES + 1];

/* -- what must hold -- */

byte stopped[USES + 1]; /* 1 + the ids that an engine made before it ended the text */

inline end_lane(how)
{
	atomic {
		assert(ended == use - 1); /* once */
		assert(how != STOP || stopped[use] == taken + 1);
		assert(how != LENGTH || taken == LIMIT);
		assert(how != CANCELLED || cancel);
		/* Only late stores of another engine cut a text of one that lives. */
		assert(how != CUT || lane_engine != ENGINES || LIAR || (SHARED && ENGINES > 1));
		ended = use
	}
}

inline put_token(id_use, id_index)
{
	atomic {
		assert(taken < ask);
		assert(id_use == use && (id_index == taken || LIAR));
		taken++
	}
}

/* -- producer, and the worker that finishes its slot -- */

#define DECODES (begun != ended)
#define FINAL (ask == LIMIT)

proctype producer()
{
end:	do
	:: atomic { !DECODES && begun < USES && empty(outbox) ->
			use++;
			taken = 0;
			ask = 0;
			cancel = false };
		atomic { lane_engine = attached };
		atomic { begun = use };
		outbox ! use
	:: atomic { DECODES && ask < LIMIT && ask < taken + ROOM -> ask++ }
#if CANCELS
	:: atomic { DECODES && !cancel -> cancel = true }
#endif
	od
}

/* -- the relay -- */

#define MADE m[M(attached)].made
#define END m[M(attached)].end
#define WAITS                                                                                      \
	(DECODES && (cancel || lane_engine != attached || attached == 0 ||                        \
			    END.use == use || (MADE.use == use && MADE.n != taken) ||              \
			    granted_shown.use != use || granted_shown.n != ask ||                  \
			    (FINAL && taken == ask)))

proctype relay()
{
	byte may, engine, e_use, how, n, m_use, i_use, i_text, i_index;
	bool right, final;

end:	do
	:: atomic { WAITS };
		if
		:: atomic { shown != use -> shown = use; state.use = use; state.n = OPEN }
		:: else
		fi;
		/* tokg_lane_look */
		atomic { may = ask; final = FINAL; right = true; how = OPEN };
		if
		:: atomic { cancel -> how = CANCELLED }
		:: else ->
			/* tokg_relay_step */
			atomic { engine = attached };
			/* The consumer has one address: memory of a new engine is there at once. */
			atomic { e_use = END.use; how = END.n };
			atomic { m_use = MADE.use; n = MADE.n };
			atomic {
				granted_shown.use = use;
				granted_shown.n = may;
				grant.use = use;
				grant.n = may;
				right = (lane_engine == engine && engine != 0) };
			if
			:: right && m_use == use ->
				/* tokg_relay_take */
				if
				:: n < taken || n > may || n - taken > ROOM -> right = false
				:: else
				fi;
				do
				:: right && taken != n ->
					atomic {
						i_use = m[M(attached)].id[taken % ROOM].use;
						i_text = m[M(attached)].id[taken % ROOM].text;
						i_index = m[M(attached)].id[taken % ROOM].index };
					if
					:: i_use != use -> right = false
					:: else -> put_token(i_text, i_index)
					fi
				:: else -> break
				od
			:: right && m_use != use && e_use == use -> right = false
			:: else
			fi;
			if
			:: !right -> how = CUT
			:: right && e_use == use
			:: right && e_use != use && final && taken == may -> how = LENGTH
			:: else -> how = OPEN
			fi
		fi;
		if
		:: how != OPEN ->
			end_lane(how);
			atomic { state.use = shown; state.n = how; shown = 0 }
		:: else
		fi;
		atomic { may = 0; engine = 0; e_use = 0; how = 0; n = 0; m_use = 0; i_use = 0; i_text = 0;
			i_index = 0; right = false; final = false }
	od
}

/* -- engines: tokd_engine_look, _put and _end -- */

#define MINE m[M(me)]
#define KEEP_MADE (made && (MINE.made.use != u || MINE.made.n != n))
#define KEEP_END (over && (MINE.end.use != u || MINE.end.n != STOP))
#define GOES (state.use > u || (state.use == u && state.n != OPEN))
#define FORGET GOES /* what the end of a look says */
#define MAY (!over && state.use <= u && grant.use == u && grant.n + LIAR > n)

proctype engine(byte me)
{
	byte u, n; /* its use, and ids that it made */
	bool made, over, stops; /* this text */
	bool keeps;
	{
end:		do
		:: atomic { prompt[me] ? u ->
			n = 0;
			made = false;
			over = false;
			if
			:: stops = true
			:: stops = false
			fi }
		:: atomic { u != 0 && (KEEP_MADE || KEEP_END || FORGET || MAY || (stops && !over)) ->
				keeps = !GOES };
			/* tokd_engine_keep */
			if
			:: atomic { keeps && KEEP_MADE };
				atomic { MINE.made.use = u; MINE.made.n = n }
			:: !keeps || !KEEP_MADE
			fi;
			if
			:: atomic { keeps && KEEP_END };
				atomic { MINE.end.use = u; MINE.end.n = STOP }
			:: !keeps || !KEEP_END
			fi;
			if
			:: atomic { FORGET -> u = 0; n = 0; made = false; over = false }
			:: atomic { !GOES && MAY };
				atomic {
					MINE.id[n % ROOM].use = u;
					MINE.id[n % ROOM].text = u;
					MINE.id[n % ROOM].index = n };
				atomic { n++; made = true };
				atomic { MINE.made.use = u; MINE.made.n = n }
			:: atomic { !GOES && stops && !over ->
				over = true;
				made = true;
				stopped[u] = 1 + n };
				atomic { MINE.made.use = u; MINE.made.n = n };
				atomic { MINE.end.use = u; MINE.end.n = STOP };
				if
				:: atomic { FORGETS -> u = 0; n = 0; made = false; over = false }
				:: else
				fi
			:: else
			fi
		od
	} unless {
		dead[me]
	}
}

/* -- the agent -- */

proctype agent()
{
	byte engines, u;

end:	do
	:: atomic { attached == 0 && engines < ENGINES ->
		engines++;
		attached = engines;
		run engine(engines) }
	/* It does not know, or is dead. The last one lives. */
	:: atomic { attached != 0 && engines < ENGINES -> attached = 0 }
	:: atomic { attached == 0 && engines > 0 && !dead[engines] -> dead[engines] = true }
	:: atomic { outbox ? u ->
		if
		:: attached != 0 -> prompt[attached] ! u
		:: else
		fi;
		u = 0 }
	od
}

/* Nothing can happen any more: then all has happened. */
proctype judge()
{
	atomic { timeout -> assert(ended == USES) }
}

init
{
	atomic {
		run producer();
		run relay();
		run agent();
		run judge()
	}
}
