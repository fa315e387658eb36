#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks gpu_ring.pml, gpu_lanes.pml and gpu_engine.pml with Spin: as they are, in every size of
RUNS, and with single steps changed, each of which must be found. Output is TAP.

TOKD_MODEL=long adds sizes that take minutes. `run.py --trail NAME` prints the counterexample of a
changed model, or of a run that failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

RING = Path(__file__).with_name("gpu_ring.pml")
LANES = Path(__file__).with_name("gpu_lanes.pml")
ENGINE = Path(__file__).with_name("gpu_engine.pml")
LIMIT = 900  # seconds of one search
DEPTH = 100_000  # of a search; a deeper one is a failure


@dataclass(frozen=True)
class Run:
    """A size: defines of the model."""

    name: str
    sizes: str
    slow: bool = False
    model: Path = RING


@dataclass(frozen=True)
class Change:
    """One step done wrong, in a size that shows it. `old` stands in the model exactly once."""

    name: str
    sizes: str
    old: str
    new: str
    also: tuple[str, str] = ("", "")  # what a step that moves leaves or finds elsewhere
    model: Path = RING


@dataclass(frozen=True)
class Result:
    """What a search found."""

    name: str
    error: str  # "": none
    states: int
    whole: bool  # nothing was left out
    trail: str


RUNS = [
    Run("in order: 4 texts, 2 workers", "TEXTS=4"),
    Run("in order, no check word: 3 texts, 2 workers", "TEXTS=3 CHECK=0"),
    Run("in order: 2 producers with a slot each, 1 worker", "P=2 S=1 OUTS=1 WORKERS=1 TEXTS=2"),
    Run("in order: 2 producers", "P=2 WORKERS=1 TEXTS=2", slow=True),
    Run("in order: 2 producers with a slot each, 2 workers", "P=2 S=1 OUTS=1 TEXTS=2", slow=True),
    Run("in order: one unit of outputs, a restart", "WORKERS=1 OUTS=1 RESTARTS=1"),
    Run("in order: 2 workers, a restart", "TEXTS=2 RESTARTS=1", slow=True),
    Run("in order: 2 restarts", "WORKERS=1 TEXTS=2 RESTARTS=2", slow=True),
    Run("in order: done seen before its entry", "TEXTS=2 SEQ_LATE=1"),
    Run(
        "in order: done seen before its entry, a restart", "WORKERS=1 TEXTS=2 RESTARTS=1 SEQ_LATE=1"
    ),
    Run(
        "in order: done seen before its entry, a successor", "WORKERS=1 TEXTS=1 DEATHS=1 SEQ_LATE=1"
    ),
    Run(
        "in order: late workers, what claim and done promise",
        "WORKERS=1 TEXTS=2 RESTARTS=1 FENCED=0",
    ),
    Run("in order: a successor", "WORKERS=1 TEXTS=2 DEATHS=1"),
    Run("in order: a successor, a restart", "WORKERS=1 TEXTS=1 DEATHS=1 RESTARTS=1"),
    Run("in order: a connection breaks", "WORKERS=1 BREAKS=1"),
    Run(
        "in order, no check word: a connection breaks, a restart",
        "WORKERS=1 TEXTS=2 CHECK=0 BREAKS=1 RESTARTS=1",
        slow=True,
    ),
    Run("payload after header: 3 texts", "ORDER=LOOSE WORKERS=1", slow=True),
    Run("payload after header: a connection breaks", "ORDER=LOOSE WORKERS=1 TEXTS=2 BREAKS=1"),
    Run("payload after header: a restart", "ORDER=LOOSE WORKERS=1 TEXTS=2 RESTARTS=1", slow=True),
    Run("payload after header: 1 text, a restart", "ORDER=LOOSE WORKERS=1 TEXTS=1 RESTARTS=1"),
    Run(
        "payload after header: a successor, a restart",
        "ORDER=LOOSE WORKERS=1 TEXTS=1 DEATHS=1 RESTARTS=1",
        slow=True,
    ),
    Run("payload after header: a successor", "ORDER=LOOSE WORKERS=1 TEXTS=2 DEATHS=1", slow=True),
    Run("any order: 2 texts", "ORDER=ANY WORKERS=1 TEXTS=2"),
    Run("any order: 3 texts", "ORDER=ANY WORKERS=1", slow=True),
    Run("any order: 2 workers", "ORDER=ANY TEXTS=2", slow=True),
    Run("any order: one slot, a restart", "ORDER=ANY WORKERS=1 S=1 OUTS=1 TEXTS=2 RESTARTS=1"),
    Run("any order: a connection breaks", "ORDER=ANY WORKERS=1 TEXTS=2 BREAKS=1", slow=True),
    Run(
        "any order: one slot, a connection breaks",
        "ORDER=ANY WORKERS=1 S=1 OUTS=1 TEXTS=2 BREAKS=1",
    ),
    Run(
        "any order: one slot, no acquire, a restart",
        "ORDER=ANY ACQUIRE=0 WORKERS=1 S=1 OUTS=1 TEXTS=2 RESTARTS=1",
    ),
    Run(
        "any order: one slot, no acquire, a successor",
        "ORDER=ANY ACQUIRE=0 WORKERS=1 S=1 OUTS=1 TEXTS=1 DEATHS=1",
    ),
    Run("any order: a successor", "ORDER=ANY WORKERS=1 TEXTS=1 DEATHS=1"),
    Run(
        "any order: one slot, a successor",
        "ORDER=ANY WORKERS=1 S=1 OUTS=1 TEXTS=2 DEATHS=1",
        slow=True,
    ),
    Run("lanes: 3 texts in one lane", "TEXTS=3 LIMIT=3", model=LANES),
    Run("lanes: 2 lanes, 3 texts", "L=2 G=4 TEXTS=3", model=LANES),
    Run("lanes: a slow client", "L=2 G=4 TEXTS=3 SLOW=1", model=LANES),
    Run("lanes: one is cancelled", "TEXTS=3 CANCELS=1", model=LANES),
    Run("lanes: a restart", "TEXTS=3 RESTARTS=1", model=LANES),
    Run("lanes: a restart, 2 lanes", "L=2 G=4 RESTARTS=1", slow=True, model=LANES),
    Run("lanes: 2 restarts", "RESTARTS=2", model=LANES),
    Run("lanes: a restart, one is cancelled", "RESTARTS=1 CANCELS=1", model=LANES),
    Run("lanes: a connection breaks", "TEXTS=3 BREAKS=1", model=LANES),
    Run("lanes: a connection breaks, a restart", "BREAKS=1 RESTARTS=1", model=LANES),
    Run("lanes: a successor", "DEATHS=1", model=LANES),
    Run("lanes: a successor, a break", "DEATHS=1 BREAKS=1", slow=True, model=LANES),
    Run("lanes: a successor of one text, a restart", "TEXTS=1 DEATHS=1 RESTARTS=1", model=LANES),
    Run("lanes: a successor, a restart", "DEATHS=1 RESTARTS=1", slow=True, model=LANES),
    Run("engine: one, 3 texts", "ENGINES=1 USES=3 LIMIT=3", model=ENGINE),
    Run("engine: one, texts are cancelled", "ENGINES=1 CANCELS=1", model=ENGINE),
    Run("engine: one that makes too much", "ENGINES=1 LIAR=1", model=ENGINE),
    Run("engine: two with a memory each", "SHARED=0 FORGETS=1", model=ENGINE),
    Run("engine: two in one memory", "", model=ENGINE),
    Run("engine: two in one memory, one is cancelled", "CANCELS=1", slow=True, model=ENGINE),
]

CHANGES = [
    Change(
        "done before the outbox entry",
        "WORKERS=1 RESTARTS=1 TEXTS=2",
        "			/* outbox */\n",
        "			atomic { if :: m[x].done_t == t - 1 -> m[x].done_t = t; m[x].done_s = status :: else fi };\n",
    ),
    Change(
        "done seen before its entry, and the worker ends between the two",
        "WORKERS=1 RESTARTS=1 TEXTS=2 SEQ_LATE=1",
        "stopped && FENCED && !stores\n",
        "stopped && FENCED\n",
    ),
    Change(
        "the outbox entry before the rows",
        "WORKERS=1 TEXTS=1",
        ":: status == OK -> row[x / S * OUTS + out] = pay",
        ":: status == OK -> skip",
        (
            "			/* done: compare-and-swap from ticket - 1 */\n",
            "			if :: status == OK -> row[x / S * OUTS + out] = pay :: else fi;\n",
        ),
    ),
    Change(
        "claim without compare-and-swap",
        "TEXTS=2",
        ":: MAY_CLAIM(ct, ci, t) && m[x].claim_t == ct && m[x].claim_inc == ci ->",
        ":: MAY_CLAIM(ct, ci, t) ->",
    ),
    Change(
        "a claim of an older incarnation is not taken over",
        "WORKERS=1 TEXTS=1 RESTARTS=1",
        "#define MAY_CLAIM(ct, ci, t) (ct < t || (ct == t && ci < inc))",
        "#define MAY_CLAIM(ct, ci, t) (ct < t)",
    ),
    Change(
        "done stored instead of compared and swapped",
        "WORKERS=1 TEXTS=2 RESTARTS=1 FENCED=0",
        ":: m[x].done_t == t - 1 ->",
        ":: true ->",
    ),
    Change(
        "no epoch check, a half-written header of the predecessor",
        "ORDER=ANY WORKERS=1 TEXTS=1 DEATHS=1",
        ":: status == OK && epoch != live -> status = STALE",
        ":: false -> status = STALE",
    ),
    Change(
        "no epoch check, work for the dead",
        "WORKERS=1 TEXTS=1 DEATHS=1",
        ":: status == OK && epoch != live -> status = STALE",
        ":: false -> status = STALE",
    ),
    Change(
        "STALE is final for a living producer",
        "ORDER=ANY WORKERS=1 TEXTS=1 DEATHS=1",
        ":: m[AT(p, s)].done_s != OK && !strict[s] ->",
        ":: m[AT(p, s)].done_s == BADSUM && !strict[s] ->",
    ),
    Change(
        "no check word where a payload may be late",
        "ORDER=LOOSE CHECK=0 WORKERS=1 TEXTS=1",
        "",
        "",
    ),
    Change(
        "no check word where a header may be torn",
        "ORDER=ANY CHECK=0 WORKERS=1 TEXTS=2",
        "",
        "",
    ),
    Change(
        "a check word that leaves out the ticket",
        "ORDER=ANY WORKERS=1 TEXTS=3",
        ":: m[x].ticket == t && (!CHECK || (pay == text && made == t)) -> status = OK\n"
        "				:: m[x].ticket == t && CHECK && !(pay == text && made == t) ->",
        ":: m[x].ticket == t && (!CHECK || pay == text && text != 0) -> status = OK\n"
        "				:: m[x].ticket == t && CHECK && !(pay == text && text != 0) ->",
    ),
    Change(
        "header and payload read before the ticket (no acquire), no check word",
        "CHECK=0 ACQUIRE=0 WORKERS=1 S=1 OUTS=1 TEXTS=2",
        "",
        "",
    ),
    Change(
        "source used again when the NIC has sent it",
        "ORDER=LOOSE WORKERS=1 TEXTS=2",
        "	wire[WIRE(p, conn[p])] ! TICKET, s, 0, 0, 0, ticket[s]\n",
        "	wire[WIRE(p, conn[p])] ! TICKET, s, 0, 0, 0, ticket[s];\n	source_free[text[s]] = true\n",
    ),
    Change(
        "slot used again before it is done",
        "WORKERS=1 TEXTS=3 OUTS=3",
        ":: atomic { DONE_READ(0) -> s = 0; take_done(); s = 0 }",
        ":: atomic { MAY_READ(0) -> s = 0; said[text[0]] = OK; text[0] = 0 }",
    ),
    Change(
        "a READ that does not push writes",
        "ORDER=LOOSE WORKERS=1 TEXTS=3",
        "#define MAY_READ(s) (text[s] != 0 && !IN_FLIGHT(s))",
        "#define MAY_READ(s) (text[s] != 0)",
    ),
    Change(
        "rows given back before the subscriber's last use",
        "WORKERS=1 OUTS=1 TEXTS=2",
        "held[(p) * OUTS + turn[p] % OUTS] == 0) /* and",
        "true) /* and",
    ),
    Change(
        "rows given back before the slot is done",
        "WORKERS=1 OUTS=1 TEXTS=2 RESTARTS=1 OUTBOX=8",
        "(m[TURN(p)].done_t > back_t[TURN(p)] && ",
        "(given_t[TURN(p)] > back_t[TURN(p)] && ",
    ),
    Change(
        "rows given back before the slot's entry is read",
        "WORKERS=1 OUTS=1 TEXTS=2",
        "taken == reserved &&                 /* and",
        "true && /* and",
    ),
    Change(
        "no limit of rows",
        "WORKERS=1 OUTS=1 TEXTS=2",
        ":: atomic { text[n_posted % S] == 0 && n_posted - released < OUTS &&\n",
        ":: atomic { text[n_posted % S] == 0 &&\n",
    ),
    Change(
        "epoch granted before the old queue pair is destroyed",
        "WORKERS=1 TEXTS=1 DEATHS=1",
        ":: atomic { dead[0] && gone[0] && stage == 1 -> destroy_queue_pair(); conn[0]++; stage = 2 }",
        ":: atomic { dead[0] && gone[0] && stage == 1 -> conn[0]++; stage = 2 }",
    ),
    Change(
        "connection resumed before the old queue pair is destroyed",
        "WORKERS=1 TEXTS=3 BREAKS=1",
        "		destroy_queue_pair();\n		conn[0]++;\n		resumed[0] = true }",
        "		conn[0]++;\n		resumed[0] = true }",
    ),
    Change(
        "place given away before all of its slots are done",
        "WORKERS=1 TEXTS=2 DEATHS=1",
        ":: atomic { stage == 3 && m[0].ticket == m[0].done_t && m[S - 1].ticket == m[S - 1].done_t &&\n",
        ":: atomic { stage == 3 &&\n",
    ),
    Change(
        "place given away before its outputs are back",
        "WORKERS=1 TEXTS=1 DEATHS=1",
        "taken == reserved && held[0] == 0 && held[OUTS - 1] == 0 ->",
        "true ->",
    ),
    Change(
        "successor begins at ticket 1",
        "WORKERS=1 TEXTS=1 DEATHS=1",
        ":: s < S -> ticket[s] = m[AT(p, s)].ticket; s++",
        ":: s < S -> ticket[s] = 0; s++",
    ),
    Change(
        "published tickets posted again",
        "WORKERS=1 TEXTS=2 BREAKS=1",
        ":: text[s] != 0 && m[AT(p, s)].ticket != ticket[s] ->",
        ":: text[s] != 0 ->",
    ),
    Change(
        "unpublished tickets not posted again",
        "WORKERS=1 TEXTS=1 BREAKS=1",
        ":: text[s] != 0 && m[AT(p, s)].ticket != ticket[s] ->",
        ":: false ->",
    ),
    Change(
        "posted again, but FAST",
        "ORDER=LOOSE WORKERS=1 TEXTS=2",
        "atomic { !IN_FLIGHT(s) -> post_header(); s = 0 }",
        "atomic { post_header(); s = 0 }",
    ),
    Change(
        "BADSUM is taken for done",
        "ORDER=LOOSE WORKERS=1 TEXTS=1",
        ":: m[AT(p, s)].done_s == OK ->\n",
        ":: m[AT(p, s)].done_s == OK || m[AT(p, s)].done_s == BADSUM ->\n",
    ),
    Change(
        "redone without being marked",
        "WORKERS=1 TEXTS=1 RESTARTS=1",
        "redo = (ct == t);",
        "redo = false;",
    ),
    Change(
        "agent delivers what it has delivered",
        "WORKERS=1 TEXTS=1 RESTARTS=1",
        "outbox[taken % OUTBOX].ticket > given_t[x] ->",
        "true ->",
    ),
    Change(
        "agent takes the first word on a ticket for the last",
        "ORDER=LOOSE WORKERS=1 TEXTS=1 RESTARTS=1",
        "	:: else /* failed, or",
        "	:: outbox[taken % OUTBOX].status != OK -> given_t[x] = outbox[taken % OUTBOX].ticket\n"
        "	:: else /* failed, or",
    ),
    Change(
        "agent waits for an entry that a dead worker did not write",
        "WORKERS=1 TEXTS=1 RESTARTS=1",
        "	:: atomic { stopped && alive == 0 && taken < reserved && !outbox[taken % OUTBOX].seq -> taken++ }\n",
        "",
    ),
    Change(
        "the next incarnation begins before the last has ended",
        "WORKERS=1 TEXTS=3 RESTARTS=1 OUTBOX=16",
        "stopped && (alive == 0 || !FENCED) && (taken == reserved || !FENCED) ->",
        "stopped ->",
        ("stopped && FENCED && !stores\n", "false\n"),
    ),
    Change(
        "the check is tried for ever",
        "ORDER=LOOSE WORKERS=1 TEXTS=1 BREAKS=1",
        ":: tries < RETRIES -> tries++; goto again",
        ":: true -> m[x].pay == text && made == t; goto again",
    ),
    Change(
        "a lane is free before its slot is done",
        "TEXTS=3 RESTARTS=1",
        ":: state[l] == SETTLED && over[l] -> state[l] = FREE;",
        ":: state[l] != FREE && over[l] -> state[l] = FREE;",
        model=LANES,
    ),
    Change(
        "an end counts before all its tokens are read",
        "TEXTS=1",
        "k[l].ended == turn[l] && taken[l] >= k[l].n ->    \\\n",
        "k[l].ended == turn[l] ->    \\\n",
        model=LANES,
    ),
    Change(
        "a word of the log without its turn",
        "TEXTS=3 RESTARTS=1",
        ":: state[i] != FREE && log[at].turn == turn[i] && !over[i] ->",
        ":: state[i] != FREE && !over[i] ->",
        model=LANES,
    ),
    Change(
        "an ask without its turn",
        "TEXTS=3",
        "#define RIGHT(l) (k[l].ask == k[l].turn && ",
        "#define RIGHT(l) (k[l].ask != 0 && ",
        model=LANES,
    ),
    Change(
        "the log goes on where it was noted",
        "TEXTS=2 RESTARTS=1",
        ":: log[head].lap == head_lap -> advance()",
        ":: false -> advance()",
        model=LANES,
    ),
    Change(
        "a slot that is done again begins its turn again",
        "TEXTS=2 RESTARTS=1",
        ":: atomic { !stale && k[m[s].lane].turn != m[s].turn ->",
        ":: atomic { !stale ->",
        model=LANES,
    ),
    Change(
        "a lane of an older incarnation goes on",
        "TEXTS=2 RESTARTS=1",
        ":: k[l].inc != inc -> how = CUT",
        ":: false -> how = CUT",
        model=LANES,
    ),
    Change(
        "a successor before the lanes have ended",
        "DEATHS=1",
        ":: atomic { stage == 3 && ALL_ENDED ->",
        ":: atomic { stage == 3 ->",
        model=LANES,
    ),
    Change(
        "lanes of a dead producer do not end",
        "DEATHS=1",
        ":: k[l].epoch != epoch_now -> how = STALE",
        ":: false -> how = STALE",
        model=LANES,
    ),
    Change(
        "more is granted than the log has room for",
        "TEXTS=1 LIMIT=3 QUOTA=3",
        "",
        "",
        model=LANES,
    ),
    Change(
        "no word of the log is left for a turn that was cut",
        "RESTARTS=1 QUOTA=2",
        "",
        "",
        model=LANES,
    ),
    Change(
        "asks are not written again when a connection broke",
        "TEXTS=1 BREAKS=1",
        ":: turn[i] != 0 -> write_ask(i)",
        ":: false -> write_ask(i)",
        model=LANES,
    ),
    Change(
        "an ask without its epoch",
        "DEATHS=1",
        "(k[l].ask == k[l].turn && k[l].ask_epoch == k[l].epoch)",
        "(k[l].ask == k[l].turn)",
        model=LANES,
    ),
    Change(
        "no ask before there is something to grant",
        "TEXTS=4 RESTARTS=2",
        "epoch;                                           \\\n		write_ask(l) }\n",
        "epoch }\n",
        model=LANES,
    ),
    Change(
        "a lane that was opened and not begun stays open",
        "TEXTS=1 RESTARTS=1 DEATHS=1",
        "		k[0].opened = k[0].turn; /* tokg_lanes_repair */\n"
        "		k[L - 1].opened = k[L - 1].turn;\n",
        "",
        model=LANES,
    ),
    Change(
        "a lane is opened after its slot is done",
        "TEXTS=1 DEATHS=1",
        "				k[m[s].lane].opened = m[s].turn };\n"
        "				atomic { k[m[s].lane].turn = m[s].turn; k[m[s].lane].inc = inc }\n",
        "				k[m[s].lane].made = 0 };\n"
        "				atomic { m[s].done = m[s].ticket };\n"
        "				atomic { k[m[s].lane].turn = m[s].turn; k[m[s].lane].inc = inc };\n"
        "				atomic { k[m[s].lane].opened = m[s].turn }\n",
        model=LANES,
    ),
    Change(
        "an id without its use",
        "",
        ":: i_use != use -> right = false",
        ":: false -> right = false",
        model=ENGINE,
    ),
    Change(
        "a count without its use",
        "",
        ":: right && m_use == use ->",
        ":: right ->",
        model=ENGINE,
    ),
    Change(
        "an end without its use",
        "",
        ":: right && e_use == use\n",
        ":: right && e_use != 0\n",
        model=ENGINE,
    ),
    Change(
        "a count read before the end",
        "ENGINES=1",
        "			atomic { e_use = END.use; how = END.n };\n"
        "			atomic { m_use = MADE.use; n = MADE.n };\n",
        "			atomic { m_use = MADE.use; n = MADE.n };\n"
        "			atomic { e_use = END.use; how = END.n };\n",
        model=ENGINE,
    ),
    Change(
        "an end counts though the count before it was overwritten",
        "",
        ":: right && m_use != use && e_use == use -> right = false",
        ":: false -> right = false",
        model=ENGINE,
    ),
    Change(
        "more than is granted is taken",
        "ENGINES=1 LIAR=1",
        ":: n < taken || n > may || n - taken > ROOM -> right = false",
        ":: n < taken -> right = false",
        model=ENGINE,
    ),
    Change(
        "an id stored after its count",
        "ENGINES=1",
        "				atomic {\n"
        "					MINE.id[n % ROOM].use = u;\n"
        "					MINE.id[n % ROOM].text = u;\n"
        "					MINE.id[n % ROOM].index = n };\n"
        "				atomic { n++; made = true };\n"
        "				atomic { MINE.made.use = u; MINE.made.n = n }\n",
        "				atomic { n++; made = true };\n"
        "				atomic { MINE.made.use = u; MINE.made.n = n };\n"
        "				atomic {\n"
        "					MINE.id[(n - 1) % ROOM].use = u;\n"
        "					MINE.id[(n - 1) % ROOM].text = u;\n"
        "					MINE.id[(n - 1) % ROOM].index = n - 1 }\n",
        model=ENGINE,
    ),
    Change(
        "a lane does not remember its engine",
        "SHARED=0",
        "right = (lane_engine == engine && engine != 0) };",
        "right = (engine != 0) };",
        ("lane_engine != attached || attached == 0 ||", "attached == 0 ||"),
        model=ENGINE,
    ),
    Change(
        "a count that is overwritten stays so",
        "",
        "#define KEEP_MADE (made && (",
        "#define KEEP_MADE (false && (",
        model=ENGINE,
    ),
    Change(
        "an engine in one memory with others does not look again at a lane that it has ended",
        "FORGETS=1",
        "",
        "",
        model=ENGINE,
    ),
    Change(
        "a look says that a lane has ended before the relay has taken the end",
        "",
        "#define FORGET GOES",
        "#define FORGET (GOES || over)",
        model=ENGINE,
    ),
    Change(
        "a relay that does not look when more is granted",
        "ENGINES=1",
        "granted_shown.use != use || granted_shown.n != ask ||",
        "false ||",
        model=ENGINE,
    ),
    Change(
        "a relay that does not look when the engine has ended a text",
        "ENGINES=1",
        "			    END.use == use || (MADE",
        "			    (MADE",
        model=ENGINE,
    ),
]


def search(run: Run | Change, text: str, *, fast: bool = True, show: bool = False) -> Result:
    """Compiles the model and looks at all of its states, or as far as the first error, which comes
    early: to compile well (`fast`) is not worth while for it."""
    with tempfile.TemporaryDirectory(prefix="tokd-model-") as tmp:
        (Path(tmp) / run.model.name).write_text(text)
        defines = [f"-D{size}" for size in run.sizes.split()]

        def call(*command: str) -> str:
            done = subprocess.run(
                command, cwd=tmp, capture_output=True, text=True, timeout=LIMIT, check=False
            )
            if done.returncode != 0:
                raise SystemExit(f"{run.name}: {' '.join(command)}: {done.stdout}{done.stderr}")
            return done.stdout

        call("spin", "-a", *defines, run.model.name)
        call("gcc", "-O1" if fast else "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=1024", "-DMEMLIM=6000",
             "-o", "pan", "pan.c")  # fmt: skip
        said = call("./pan", f"-m{DEPTH}")
        error = re.search(r"^pan:1: (.*?) \(at depth", said, re.MULTILINE)
        states = re.search(r"^\s*(\d+) states, stored", said, re.MULTILINE)
        errors = re.search(r"errors: (\d+)", said)
        if errors is None or states is None:
            raise SystemExit(f"{run.name}: pan ended without a result: {said}")
        whole = "Search not completed" not in said and "max search depth too small" not in said
        trail = ""
        if show and error:
            trail = call("spin", "-t", "-p", *defines, run.model.name)
        return Result(run.name, error[1] if error else "", int(states[1]), whole, trail)


def text_of(run: Run | Change) -> str:
    """The model; of a change with that one step done wrong."""
    model = run.model.read_text()
    return changed(run, model) if isinstance(run, Change) else model


def changed(change: Change, model: str) -> str:
    """The model with that one step done wrong."""
    for old, new in ((change.old, change.new), change.also):
        if old:
            if model.count(old) != 1:
                raise SystemExit(
                    f"{change.name}: {change.model.name} has this {model.count(old)} times: {old}"
                )
            model = model.replace(old, new)
    return model


def report(results: Iterable[Result], wrong: bool, number: int) -> tuple[int, int]:
    """TAP. The number of the next test, and how many failed."""
    failed = 0
    for r in results:
        right = bool(r.error) if wrong else not r.error and r.whole
        found = f"found: {r.error}" if r.error else "all states" if r.whole else "NOT all states"
        print(f"{'ok' if right else 'not ok'} {number} - {'changed: ' if wrong else ''}{r.name}")
        print(f"# {r.states} states, {found}", flush=True)
        failed += not right
        number += 1
    return number, failed


def main() -> int:
    """TAP on the standard output; 1: something failed."""
    if sys.argv[1:2] == ["--trail"]:
        for x in [*RUNS, *CHANGES]:
            if x.name == sys.argv[2]:
                r = search(x, text_of(x), show=True)
                print(r.trail, r.error or "no error", sep="\n")
        return 0
    runs = [r for r in RUNS if not r.slow or os.environ.get("TOKD_MODEL") == "long"]
    print(f"1..{len(runs) + len(CHANGES)}")
    with ThreadPoolExecutor(2) as pool:
        good = pool.map(lambda r: search(r, text_of(r)), runs)
        number, failed = report(good, False, 1)
        bad = pool.map(lambda c: search(c, text_of(c), fast=False), CHANGES)
        failed += report(bad, True, number)[1]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
