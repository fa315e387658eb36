/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <sched.h>
#include <stddef.h>

#include "server.h"

#define IN_FLIGHT_MAX 16384 /* a socket each in mode plain */
#define IN_FLIGHT_OPEN 1024 /* unless --in-flight says so, with --rate */
#define LIMIT_MS 1000	    /* unless --limit says so */
#define PAYLOAD_MAX 65443   /* what tokd_client_open() takes */

#define FIELD(f) OPT_FIELD(struct options, f)
static const struct opt_def defs[] = {
	{"connect", "IP:PORT", OPT_OTHER, FIELD(server), 0, 0, NULL, "the server",
		.flags = OPT_REQUIRED, .check = server_check},
	{"slices", "FILE", OPT_TEXT, FIELD(slices), 0, 0, NULL,
		"texts and the ids they must give, in tools/bench/texts/slices.py's format",
		.flags = OPT_REQUIRED},
	{"out", "FILE", OPT_TEXT, FIELD(out), 0, 0, NULL,
		"results as CSV: index,ns,first_ns,ok,retransmits,failure,intended_ns,sent_ns; ns is from "
		"the intended start, in a closed loop the actual one; first_ns to the first ids, with one "
		"in flight or --stream",
		.flags = OPT_REQUIRED},
	{"mode", "tokd|plain|tcp", OPT_CHOICE, FIELD(mode), 0, 0, "tokd",
		"tokd: dpdk-tokd's protocol; plain: a datagram of text for one of ids, from a socket for "
		"each request in flight; tcp: the same on one connection, each after its length as u32"},
	{"requests", "N", OPT_COUNT, FIELD(requests), 1, UINT32_MAX, NULL,
		"texts to send, in the order of the slices, again and again; else each slice once"},
	{"warmup", "N", OPT_COUNT, FIELD(warmup), 0, UINT32_MAX, "0",
		"the first N requests are sent and checked, but not written"},
	{"in-flight", "N", OPT_COUNT, FIELD(in_flight), 1, IN_FLIGHT_MAX, NULL,
		"most requests in flight at the same time; else 1, with --rate 1024"},
	{"timeout", "MS", OPT_MS, FIELD(timeout_ms), 1, 60000, "50",
		"send again after this long without an answer; tcp: \"no answer\""},
	{"first-id", "N", OPT_COUNT, FIELD(first_id), 1, UINT64_MAX / 2, "1",
		"stream id of the first request; with one in flight the next is higher by one"},
	{"stream", NULL, OPT_FLAG, FIELD(stream), 0, 0, NULL,
		"tokd: ask for ids at once, not when they fill a packet"},
	{"payload", "BYTES", OPT_COUNT, FIELD(payload), 1, PAYLOAD_MAX, NULL,
		"tokd: bytes of text in a packet, else 1376; IP fragments what exceeds the path's MTU"},
	{"cpu", "N", OPT_COUNT, FIELD(cpu), 0, CPU_SETSIZE - 1, NULL, "run on this CPU"},
	{"rate", "R", OPT_COUNT, FIELD(rate), 1, ARRIVALS_RATE_MAX, NULL,
		"start this many requests a second, whatever becomes of them; one that finds --in-flight "
		"requests in flight is \"not sent\"",
		.section = "Open loop"},
	{"arrivals", "poisson|fixed", OPT_CHOICE, FIELD(arrivals), 0, 0, "poisson",
		"poisson: as of many independent clients; fixed: evenly"},
	{"seed", "N", OPT_COUNT, FIELD(seed), 0, UINT64_MAX, "1",
		"seed of the arrivals: the same seed gives the same schedule"},
	{"limit", "MS", OPT_MS, FIELD(limit_ms), 1, 600000, NULL,
		"a request without its ids this long after its intended start has \"no answer\", else "
		"after 1000 ms; only mode tokd sends again"},
};

static const struct opt_section sections[] = {
	{"exit code",
		"  0  all ids were right\n  1  some were not, or the run failed\n  2  a bad option",
		true},
	{0},
};

static const struct opt_program program = {
	.name = "tokd-load",
	.version = TOKD_VERSION,
	.summary =
		"send texts to a dpdk-tokd or another server, measure the answers and check them",
	.usage = "--connect IP:PORT --slices FILE --out FILE [options]",
	.about =
		"Sends texts, waits for their ids, measures and compares: one thread that spins instead of\n"
		"sleeping. A closed loop keeps as many requests in flight as it may; with --rate an open\n"
		"loop counts times from when a request was to start.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.sections = sections,
};

int
options_parse(struct options *o, int argc, char **argv)
{
	struct opt_given given;
	int code;

	*o = (struct options){.cpu = CPU_ANY};
	code = opt_main(&program, argc, argv, o, &given);
	if (code >= 0)
		return code;
	if (o->rate == 0 && (o->limit_ms != 0 || o->arrivals != ARRIVALS_POISSON))
		return opt_usage(&program,
			"--limit and --arrivals are of an open loop: give --rate as well");
	if (o->mode != MODE_TOKD && (o->stream || o->payload != 0))
		return opt_usage(&program,
			"--stream and --payload are for --mode tokd: leave them out, or the mode");
	if (o->in_flight == 0)
		o->in_flight = o->rate > 0 ? IN_FLIGHT_OPEN : 1;
	if (o->limit_ms == 0)
		o->limit_ms = LIMIT_MS;
	return -1;
}
