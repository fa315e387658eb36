/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "../tokd-load/option_table.h"
#include "../tokd-load/values.h"

static int
parse_share(const char *name, const char *text, void *share)
{
	double percent;
	char *end;

	errno = 0;
	percent = strtod(text, &end);
	if (errno != 0 || end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
		return value_bad(name, text, "give a share from 0% to 100%, as in 2%");
	*(uint32_t *)share = (uint32_t)(percent / 100 * FAULTS_CERTAIN + 0.5);
	return 0;
}

#define AT(field) offsetof(struct options, field)
static const struct option_def defs[] = {
	{"connect", "IP:PORT", OPTION_SERVER, AT(server), 0, 0, NULL, "the appliance"},
	{"source", "IP:PORT", OPTION_SERVER, AT(source), 0, 0, NULL,
		"address of this end, answered for by ARP, and port of the first client"},
	{"slices", "FILE", OPTION_TEXT, AT(slices), 0, 0, NULL,
		"texts and the ids they must give, in tools/bench/texts/slices.py's format"},
	{"out", "FILE", OPTION_TEXT, AT(out), 0, 0, NULL,
		"a line of CSV for each request: index,ns,ok,retransmits,text_to_last_id_ns,"
		"wire_to_ring_ns,failure,intended_ns,sent_ns; ns from the intended start; "
		"text_to_last_id_ns and, for each record, wire_to_ring_ns by --ring"},
	{"report", "FILE", OPTION_TEXT, AT(report), 0, 0, NULL,
		"what was counted, as JSON [standard output]"},
	{"ring", "SOCKET", OPTION_TEXT, AT(ring), 0, 0, NULL,
		"also attach as a reader of the token ring, and compare what stands there"},
	{"requests", "N", OPTION_NUMBER, AT(requests), 0, UINT32_MAX, NULL,
		"texts to send, in the order of the slices, again and again [each slice once]"},
	{"warmup", "N", OPTION_NUMBER, AT(warmup), 0, UINT32_MAX, NULL,
		"the first N are sent and checked, but not in --out [0]"},
	{"clients", "N", OPTION_NUMBER, AT(clients), 1, 1024, NULL,
		"clients, each with a port of its own [1]"},
	{"in-flight", "N", OPTION_NUMBER, AT(in_flight), 1, 64, NULL,
		"requests of each client at once [1]"},
	{"rate", "R", OPTION_NUMBER, AT(rate), 1, ARRIVALS_RATE_MAX, NULL,
		"an open loop: so many requests start in a second, of whichever client has room; "
		"without room one is \"not sent\""},
	{"arrivals", "HOW", OPTION_OTHER, AT(arrivals), 0, 0, arrivals_parse,
		"poisson: as of many independent clients; fixed: evenly [poisson]"},
	{"timeout", "MS", OPTION_NUMBER, AT(timeout_ms), 1, 3600000, NULL,
		"a request has failed when nothing has moved for so long [5000]"},
	{"loss", "SHARE", OPTION_OTHER, AT(faults.lose), 0, 0, parse_share,
		"of the packets of each direction so many are lost, as in 2% [0%]"},
	{"reorder", "SHARE", OPTION_OTHER, AT(faults.reorder), 0, 0, parse_share,
		"so many are held back behind 1 to 8 later ones, or for 2 ms [0%]"},
	{"duplicate", "SHARE", OPTION_OTHER, AT(faults.duplicate), 0, 0, parse_share,
		"so many come twice [0%]"},
	{"seed", "N", OPTION_NUMBER, AT(seed), 0, UINT64_MAX, NULL,
		"of the arrivals, and of the dice for these three [1]"},
};

static const struct option_table table = {
	.def = defs,
	.n = sizeof(defs) / sizeof(defs[0]),
	.usage =
		"usage: tokd-load-dpdk [EAL options] -- --connect IP:PORT --source IP:PORT "
		"--slices FILE [options]\n"
		"As tokd-load, but by a DPDK port instead of a socket, with many requests in flight,\n"
		"and faults: DPDK port 0 is the network, as by\n"
		"  --vdev net_memif0,role=client,socket=PATH,socket-abstract=no\n\n",
};

static int
check(const struct options *o)
{
	if (o->rate == 0 && o->arrivals != ARRIVALS_POISSON) {
		fputs("tokd-load-dpdk: --arrivals are of an open loop: give --rate as well\n",
			stderr);
		return -1;
	}
	if (o->server.sin_port == 0 || o->source.sin_port == 0 || o->slices == NULL) {
		fputs("tokd-load-dpdk: --connect IP:PORT, --source IP:PORT and --slices FILE are "
		      "needed, behind EAL's options and --; see --help\n",
			stderr);
		return -1;
	}
	if (ntohs(o->source.sin_port) + o->clients - 1 > UINT16_MAX) {
		fprintf(stderr,
			"tokd-load-dpdk: --clients %u: their ports from %u on would pass 65535; give "
			"--source a lower port\n",
			(unsigned int)o->clients, ntohs(o->source.sin_port));
		return -1;
	}
	return 0;
}

/* Index of what stands behind `--`. Without it all is ours: --help, or a mistake. */
static int
begin_of_ours(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i + 1;
	return 1;
}

int
options_parse(struct options *o, int argc, char **argv, int *eal_argc)
{
	int begin = begin_of_ours(argc, argv), rc;

	*o = (struct options){.clients = 1, .in_flight = 1, .timeout_ms = 5000, .seed = 1};
	*eal_argc = begin > 1 ? begin - 1 : 1;
	/* getopt takes its name for messages from the word before ours. */
	argv[begin - 1] = argv[0];
	rc = option_table_parse(&table, o, argc - (begin - 1), argv + (begin - 1));
	return rc != 0 ? rc : check(o);
}
