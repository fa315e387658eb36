/* SPDX-License-Identifier: BSD-3-Clause */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "option_table.h"
#include "options.h"
#include "values.h"

#define IN_FLIGHT_MAX 16384 /* a socket each in mode plain */
#define IN_FLIGHT_OPEN 1024 /* unless --in-flight says so, with --rate */
#define LIMIT_MS 1000	    /* unless --limit says so */
#define TIMEOUT_MS 50
#define PAYLOAD_MAX 65443 /* what tokd_client_open() takes */

static int
parse_mode(const char *option, const char *text, void *mode)
{
	static const char *const names[] = {
		[MODE_TOKD] = "tokd", [MODE_PLAIN] = "plain", [MODE_TCP] = "tcp"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*(enum mode *)mode = (enum mode)i;
			return 0;
		}
	}
	return value_bad(option, text, "give tokd, plain or tcp");
}

#define AT(field) offsetof(struct options, field)
static const struct option_def defs[] = {
	{"connect", "IP:PORT", OPTION_SERVER, AT(server), 0, 0, NULL, "the server"},
	{"mode", "MODE", OPTION_OTHER, AT(mode), 0, 0, parse_mode,
		"tokd: dpdk-tokd's protocol; plain: a datagram of text for one of ids, of a socket\n"
		"                       for each in flight; tcp: the same on one connection, each\n"
		"                       after its length as u32 [tokd]"},
	{"slices", "FILE", OPTION_TEXT, AT(slices), 0, 0, NULL,
		"texts and the ids they must give, in tools/bench/texts/slices.py's format"},
	{"out", "FILE", OPTION_TEXT, AT(out), 0, 0, NULL,
		"results as CSV: index,ns,first_ns,ok,retransmits,failure,intended_ns,sent_ns; ns\n"
		"                       is from the intended start, in a closed loop the actual one;\n"
		"                       first_ns to the first ids, with one in flight or --stream"},
	{"requests", "N", OPTION_NUMBER, AT(requests), 1, UINT32_MAX, NULL,
		"texts to send, in the order of the slices, again and again [each slice once]"},
	{"warmup", "N", OPTION_NUMBER, AT(warmup), 0, UINT32_MAX, NULL,
		"the first N requests are sent and checked, but not written [0]"},
	{"in-flight", "N", OPTION_NUMBER, AT(in_flight), 1, IN_FLIGHT_MAX, NULL,
		"requests under way at once, at most [1; with --rate 1024]"},
	{"rate", "R", OPTION_NUMBER, AT(rate), 1, ARRIVALS_RATE_MAX, NULL,
		"an open loop: so many requests start in a second, whatever becomes of them; one\n"
		"                       that finds as many in flight as there may be is \"not sent\""},
	{"arrivals", "HOW", OPTION_OTHER, AT(arrivals), 0, 0, arrivals_parse,
		"poisson: as of many independent clients; fixed: evenly [poisson]"},
	{"seed", "N", OPTION_NUMBER, AT(seed), 0, UINT64_MAX, NULL,
		"of the arrivals: the same one gives the same schedule [1]"},
	{"limit", "MS", OPTION_NUMBER, AT(limit_ms), 1, 600000, NULL,
		"open loop: a request without its ids so long after its intended start has \"no\n"
		"                       answer\"; nothing is sent again but by mode tokd [1000]"},
	{"timeout", "MS", OPTION_NUMBER, AT(timeout_ms), 1, 60000, NULL,
		"send again after so long a silence; tcp: \"no answer\" [50]"},
	{"first-id", "N", OPTION_NUMBER, AT(first_id), 1, UINT64_MAX / 2, NULL,
		"stream id of the first request; with one in flight the next is higher by one [1]"},
	{"stream", "", OPTION_FLAG, AT(stream), 0, 0, NULL,
		"tokd: ask for ids at once, not when they fill a packet"},
	{"payload", "BYTES", OPTION_NUMBER, AT(payload), 1, PAYLOAD_MAX, NULL,
		"tokd: text in a packet; IP cuts what exceeds the path's MTU [1376]"},
	{"cpu", "N", OPTION_NUMBER, AT(cpu), 0, CPU_SETSIZE - 1, NULL, "run on this CPU"},
};

static const struct option_table table = {
	.def = defs,
	.n = sizeof(defs) / sizeof(defs[0]),
	.usage =
		"usage: tokd-load --connect IP:PORT --slices FILE --out FILE [options]\n"
		"Send texts, wait for their ids, measure, compare: one thread that spins instead of\n"
		"sleeping. A closed loop, of as many requests as may be in flight; with --rate an\n"
		"open one, whose times count from when a request was to start.\n\n",
};

static int
check(struct options *o)
{
	if (o->server.sin_port == 0 || o->slices == NULL || o->out == NULL) {
		fputs("tokd-load: --connect IP:PORT, --slices FILE and --out FILE are needed; "
		      "see --help\n",
			stderr);
		return -1;
	}
	if (o->rate == 0 && (o->limit_ms != 0 || o->arrivals != ARRIVALS_POISSON)) {
		fputs("tokd-load: --limit and --arrivals are of an open loop: give --rate as well\n",
			stderr);
		return -1;
	}
	if (o->mode != MODE_TOKD && (o->stream || o->payload != 0)) {
		fputs("tokd-load: --stream and --payload are for --mode tokd: leave them out, or the "
		      "mode\n",
			stderr);
		return -1;
	}
	if (o->in_flight == 0)
		o->in_flight = o->rate > 0 ? IN_FLIGHT_OPEN : 1;
	if (o->limit_ms == 0)
		o->limit_ms = LIMIT_MS;
	return 0;
}

int
options_parse(struct options *o, int argc, char **argv)
{
	int rc;

	*o = (struct options){.first_id = 1, .seed = 1, .timeout_ms = TIMEOUT_MS, .cpu = CPU_ANY};
	rc = option_table_parse(&table, o, argc, argv);
	return rc != 0 ? rc : check(o);
}
