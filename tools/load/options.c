/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "values.h"

#define PAYLOAD_MAX 65443 /* what tokd_client_open() takes */

static const char help[] =
	"usage: tokd-load --connect IP:PORT --slices FILE --out FILE [options]\n"
	"Send each text of FILE as one request, wait for its ids, measure, compare: a closed loop\n"
	"with one request in flight, which spins instead of sleeping.\n\n"
	"  --connect IP:PORT  the server\n"
	"  --mode MODE        tokd: dpdk-tokd's protocol; plain: a datagram of text for one of ids;\n"
	"                     tcp: the same on a connection, each after its length as u32 [tokd]\n"
	"  --slices FILE      texts and the ids they must give, in tools/lib/slices.py's format\n"
	"  --out FILE         results as CSV: index,ns,first_ns,ok,retransmits,failure; first_ns:\n"
	"                     until the first ids were there\n"
	"  --stream           tokd: ask for ids at once, not when they fill a packet\n"
	"  --payload BYTES    tokd: text in a packet; IP cuts what exceeds the path's MTU [1376]\n"
	"  --warmup N         the first N requests are sent and checked, but not written [0]\n"
	"  --first-id N       stream id of the first request; each next one is higher by one [1]\n"
	"  --cpu N            run on this CPU\n"
	"  --timeout MS       send again after so long a silence; tcp: fail [50]\n"
	"  --help             this text\n\n"
	"exit code: 0 all ids were right; 1 some were not, or the run failed; 2 a bad option\n";

static int
set_mode(struct options *o, const char *value)
{
	static const char *const names[] = {
		[MODE_TOKD] = "tokd", [MODE_PLAIN] = "plain", [MODE_TCP] = "tcp"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(value, names[i]) == 0) {
			o->mode = (enum mode)i;
			return 0;
		}
	}
	return value_bad("mode", value, "give tokd, plain or tcp");
}

static int
set(struct options *o, const char *name, const char *value)
{
	uint64_t v = 0;

	if (strcmp(name, "connect") == 0)
		return value_server(name, value, &o->server);
	if (strcmp(name, "slices") == 0) {
		o->slices = value;
	} else if (strcmp(name, "out") == 0) {
		o->out = value;
	} else if (strcmp(name, "mode") == 0) {
		return set_mode(o, value);
	} else if (strcmp(name, "first-id") == 0) {
		if (value_number(name, value, 1, UINT64_MAX / 2, &o->first_id) != 0)
			return -1;
	} else if (strcmp(name, "warmup") == 0) {
		if (value_number(name, value, 0, UINT32_MAX, &v) != 0)
			return -1;
		o->warmup = (uint32_t)v;
	} else if (strcmp(name, "cpu") == 0) {
		if (value_number(name, value, 0, CPU_SETSIZE - 1, &v) != 0)
			return -1;
		o->cpu = (int)v;
	} else if (strcmp(name, "stream") == 0) {
		o->stream = true;
	} else if (strcmp(name, "payload") == 0) {
		if (value_number(name, value, 1, PAYLOAD_MAX, &v) != 0)
			return -1;
		o->payload = (uint32_t)v;
	} else if (strcmp(name, "timeout") == 0) {
		if (value_number(name, value, 1, 60000, &v) != 0)
			return -1;
		o->timeout_ms = (uint32_t)v;
	}
	return 0;
}

int
options_parse(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {{"connect", required_argument, NULL, 'o'},
		{"slices", required_argument, NULL, 'o'}, {"out", required_argument, NULL, 'o'},
		{"mode", required_argument, NULL, 'o'}, {"first-id", required_argument, NULL, 'o'},
		{"warmup", required_argument, NULL, 'o'}, {"cpu", required_argument, NULL, 'o'},
		{"timeout", required_argument, NULL, 'o'}, {"stream", no_argument, NULL, 'o'},
		{"payload", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	int which, c;

	*o = (struct options){.first_id = 1, .timeout_ms = 50, .cpu = -1};
	while ((c = getopt_long(argc, argv, "", known, &which)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 1;
		}
		if (c != 'o' || set(o, known[which].name, optarg) != 0)
			return -1;
	}
	if (optind < argc) {
		fprintf(stderr, "tokd-load: %s: not an option; see --help\n", argv[optind]);
		return -1;
	}
	if (o->server.sin_port == 0 || o->slices == NULL || o->out == NULL) {
		fputs("tokd-load: --connect IP:PORT, --slices FILE and --out FILE are needed; "
		      "see --help\n",
			stderr);
		return -1;
	}
	if (o->mode != MODE_TOKD && (o->stream || o->payload != 0)) {
		fputs("tokd-load: --stream and --payload are for --mode tokd: leave them out, or the "
		      "mode\n",
			stderr);
		return -1;
	}
	return 0;
}
