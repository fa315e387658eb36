/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "../values.h"

enum kind { TEXT, NUMBER, SHARE, SERVER };

struct option_def {
	const char *name, *arg;
	enum kind kind;
	size_t at; /* in struct options */
	uint64_t least, most;
	const char *help;
};

#define AT(field) offsetof(struct options, field)
static const struct option_def defs[] = {
	{"connect", "IP:PORT", SERVER, AT(server), 0, 0, "the appliance"},
	{"source", "IP:PORT", SERVER, AT(source), 0, 0,
		"address of this end, answered for by ARP, and port of the first client"},
	{"slices", "FILE", TEXT, AT(slices), 0, 0,
		"texts and the ids they must give, in tools/lib/slices.py's format"},
	{"out", "FILE", TEXT, AT(out), 0, 0,
		"a line of CSV for each request: index,ns,ok,retransmits,text_to_last_id_ns,"
		"wire_to_ring_ns; the last two by --ring, the last one for each record"},
	{"report", "FILE", TEXT, AT(report), 0, 0, "what was counted, as JSON [standard output]"},
	{"ring", "SOCKET", TEXT, AT(ring), 0, 0,
		"also attach as a reader of the token ring, and compare what stands there"},
	{"requests", "N", NUMBER, AT(requests), 0, UINT32_MAX,
		"texts to send, in the order of the slices, again and again [each slice once]"},
	{"warmup", "N", NUMBER, AT(warmup), 0, UINT32_MAX,
		"the first N are sent and checked, but not in --out [0]"},
	{"clients", "N", NUMBER, AT(clients), 1, 1024, "clients, each with a port of its own [1]"},
	{"in-flight", "N", NUMBER, AT(in_flight), 1, 64, "requests of each client at once [1]"},
	{"timeout", "MS", NUMBER, AT(timeout_ms), 1, 3600000,
		"a request has failed when nothing has moved for so long [5000]"},
	{"loss", "SHARE", SHARE, AT(faults.lose), 0, 0,
		"of the packets of each direction so many are lost, as in 2% [0%]"},
	{"reorder", "SHARE", SHARE, AT(faults.reorder), 0, 0,
		"so many are held back behind 1 to 8 later ones, or for 2 ms [0%]"},
	{"duplicate", "SHARE", SHARE, AT(faults.duplicate), 0, 0, "so many come twice [0%]"},
	{"seed", "N", NUMBER, AT(seed), 0, UINT64_MAX, "of the dice for these three [1]"},
};
#define N_DEFS (sizeof(defs) / sizeof(defs[0]))

static void
help(void)
{
	fputs("usage: tokd-load-dpdk [EAL options] -- --connect IP:PORT --source IP:PORT "
	      "--slices FILE [options]\n"
	      "As tokd-load, but by a DPDK port instead of a socket, with many requests in flight,\n"
	      "and faults: DPDK port 0 is the network, as by\n"
	      "  --vdev net_memif0,role=client,socket=PATH,socket-abstract=no\n\n",
		stdout);
	for (size_t i = 0; i < N_DEFS; i++) {
		char both[40];

		snprintf(both, sizeof(both), "--%s %s", defs[i].name, defs[i].arg);
		printf("  %-19s  %s\n", both, defs[i].help);
	}
	fputs("  --help               this text\n\n"
	      "exit code: 0 all ids were right; 1 some were not, or the run failed; 2 a bad option\n",
		stdout);
}

static int
set_share(const char *name, const char *text, uint32_t *share)
{
	double percent;
	char *end;

	errno = 0;
	percent = strtod(text, &end);
	if (errno != 0 || end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
		return value_bad(name, text, "give a share from 0% to 100%, as in 2%");
	*share = (uint32_t)(percent / 100 * FAULTS_CERTAIN + 0.5);
	return 0;
}

static int
set(struct options *o, const struct option_def *d, const char *value)
{
	void *field = (char *)o + d->at;

	switch (d->kind) {
	case TEXT:
		*(const char **)field = value;
		return 0;
	case NUMBER:
		return value_number(d->name, value, d->least, d->most, field);
	case SHARE:
		return set_share(d->name, value, field);
	case SERVER:
		return value_server(d->name, value, field);
	}
	return -1;
}

static int
check(const struct options *o)
{
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
	struct option known[N_DEFS + 2] = {0};
	int begin = begin_of_ours(argc, argv), which, c;

	*o = (struct options){.clients = 1, .in_flight = 1, .timeout_ms = 5000, .seed = 1};
	for (size_t i = 0; i < N_DEFS; i++)
		known[i] = (struct option){defs[i].name, required_argument, NULL, 'o'};
	known[N_DEFS] = (struct option){"help", no_argument, NULL, 'h'};
	*eal_argc = begin > 1 ? begin - 1 : 1;
	/* getopt takes its name for messages from the word before ours. */
	argv[begin - 1] = argv[0];
	argc -= begin - 1;
	argv += begin - 1;
	while ((c = getopt_long(argc, argv, "", known, &which)) != -1) {
		if (c == 'h') {
			help();
			return 1;
		}
		if (c != 'o' || set(o, &defs[which], optarg) != 0)
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "tokd-load-dpdk: %s: not an option; see --help\n", argv[optind]);
		return -1;
	}
	return check(o);
}
