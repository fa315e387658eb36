/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <sched.h>
#include <stddef.h>

#include "server.h"
#include "shared_options.h"

#define IN_FLIGHT_MAX 16384 /* mode plain uses a socket each */
#define IN_FLIGHT_OPEN 1024 /* default with --rate */
#define LIMIT_MS 1000	    /* default */
#define PAYLOAD_MAX 65443   /* limit of tokd_client_open() */

#define FIELD(f) OPT_FIELD(struct options, f)
static const struct opt_def defs[] = {
	{"connect", "IP:PORT", OPT_OTHER, FIELD(server), 0, 0, NULL, "the server",
		.flags = OPT_REQUIRED, .check = server_check},
	LOAD_SLICES(struct options),
	{"out", "FILE", OPT_TEXT, FIELD(out), 0, 0, NULL,
		"results as CSV: index,ns,first_ns,ok,retransmits,failure,intended_ns,sent_ns; ns "
		"counts from the intended start, in a closed loop from the actual one; first_ns: "
		"until the first ids, with one in flight or --stream",
		.flags = OPT_REQUIRED},
	{"mode", "tokd|plain|tcp|echo", OPT_CHOICE, FIELD(mode), 0, 0, "tokd",
		"tokd: dpdk-tokd's protocol; plain: one datagram of text, answered by one of ids, "
		"with a "
		"socket per request in flight; tcp: the same on one connection, with a u32 length "
		"first; echo: packets as in tokd, which the server sends back; ids are not "
		"expected"},
	LOAD_REQUESTS(struct options),
	LOAD_WARMUP(struct options),
	{"in-flight", "N", OPT_COUNT, FIELD(in_flight), 1, IN_FLIGHT_MAX, NULL,
		"the most requests in flight; default: 1, with --rate 1024"},
	{"timeout", "MS", OPT_MS, FIELD(timeout_ms), 1, 60000, "50",
		"send again after this time without an answer; tcp: \"no answer\""},
	{"first-id", "N", OPT_COUNT, FIELD(first_id), 1, UINT64_MAX / 2, "1",
		"stream id of the first request; with one in flight each next is one higher"},
	{"stream", NULL, OPT_FLAG, FIELD(stream), 0, 0, NULL,
		"tokd: ask for ids at once, also if they do not fill a packet"},
	{"payload", "BYTES", OPT_COUNT, FIELD(payload), 1, PAYLOAD_MAX, NULL,
		"tokd: bytes of text per packet, default 1376; IP fragments longer packets than the MTU"},
	{"cpu", "N", OPT_COUNT, FIELD(cpu), 0, CPU_SETSIZE - 1, NULL, "run on this CPU"},
	{"rate", "R", OPT_COUNT, FIELD(rate), 1, ARRIVALS_RATE_MAX, NULL,
		"start this many requests per second by a fixed schedule; a request above "
		"--in-flight is \"not sent\"",
		.section = "Open loop"},
	LOAD_ARRIVALS(struct options),
	{"seed", "N", OPT_COUNT, FIELD(seed), 0, UINT64_MAX, "1",
		"seed of the arrivals: the same seed gives the same schedule"},
	{"limit", "MS", OPT_MS, FIELD(limit_ms), 1, 600000, NULL,
		"a request without ids this time after its intended start has \"no answer\"; "
		"default: "
		"1000; only mode tokd sends again"},
};

static const struct opt_section sections[] = {
	LOAD_EXIT_CODES,
	{0},
};

static const struct opt_program program = {
	.name = "tokd-load",
	.version = TOKD_VERSION,
	.summary =
		"send texts to a dpdk-tokd or another server, measure the answers and check them",
	.usage = "--connect IP:PORT --slices FILE --out FILE [options]",
	.about = "Sends texts, waits for their ids, compares them and measures the time, in one "
		 "thread that\n"
		 "spins. A closed loop keeps --in-flight requests in flight; with --rate an open "
		 "loop\n"
		 "measures from the intended start of a request.",
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
		return opt_usage(
			&program, "--limit and --arrivals need an open loop: give --rate, too");
	if (o->mode != MODE_TOKD && (o->stream || o->payload != 0))
		return opt_usage(&program,
			"--stream and --payload are for --mode tokd only: leave them out");
	if (o->mode == MODE_ECHO && (o->rate > 0 || o->in_flight > 1))
		return opt_usage(&program,
			"--mode echo has one request in flight: leave out --rate and --in-flight");
	if (o->in_flight == 0)
		o->in_flight = o->rate > 0 ? IN_FLIGHT_OPEN : 1;
	if (o->limit_ms == 0)
		o->limit_ms = LIMIT_MS;
	return -1;
}
