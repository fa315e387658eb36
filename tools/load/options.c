/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>

#include "options.h"

static const char help[] =
	"usage: tokd-load --connect IP:PORT --slices FILE --out FILE [options]\n"
	"Send each text of FILE as one request, wait for its ids, measure, compare: a closed loop\n"
	"with one request in flight, which spins instead of sleeping.\n\n"
	"  --connect IP:PORT  the server\n"
	"  --mode tokd|plain  dpdk-tokd's protocol, or a datagram of text for one of ids [tokd]\n"
	"  --slices FILE      texts and the ids they must give, in tools/lib/slices.py's format\n"
	"  --out FILE         results as CSV: index,ns,ok,retransmits\n"
	"  --warmup N         the first N requests are sent and checked, but not written [0]\n"
	"  --first-id N       stream id of the first request; each next one is higher by one [1]\n"
	"  --cpu N            run on this CPU\n"
	"  --timeout MS       send again after so long a silence [50]\n"
	"  --help             this text\n\n"
	"exit code: 0 all ids were right; 1 some were not, or the run failed; 2 a bad option\n";

static int
bad(const char *option, const char *value, const char *remedy)
{
	fprintf(stderr, "tokd-load: --%s %s: %s\n", option, value, remedy);
	return -1;
}

static int
parse_number(const char *option, const char *text, uint64_t max, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || *v > max) {
		fprintf(stderr, "tokd-load: --%s %s: give a number from 0 to %llu\n", option, text,
			(unsigned long long)max);
		return -1;
	}
	return 0;
}

static int
parse_server(const char *text, struct sockaddr_in *server)
{
	const char *colon = strrchr(text, ':');
	char ip[INET_ADDRSTRLEN];
	uint64_t port;

	if (colon == NULL || (size_t)(colon - text) >= sizeof(ip))
		return bad("connect", text, "give IP:PORT, as in 10.0.0.1:9000");
	memcpy(ip, text, (size_t)(colon - text));
	ip[colon - text] = '\0';
	server->sin_family = AF_INET;
	if (inet_pton(AF_INET, ip, &server->sin_addr) != 1)
		return bad("connect", text, "give IP:PORT, as in 10.0.0.1:9000");
	if (parse_number("connect", colon + 1, 65535, &port) != 0)
		return -1;
	server->sin_port = htons((uint16_t)port);
	return 0;
}

static int
set(struct options *o, const char *name, const char *value)
{
	uint64_t v = 0;

	if (strcmp(name, "connect") == 0)
		return parse_server(value, &o->server);
	if (strcmp(name, "slices") == 0) {
		o->slices = value;
	} else if (strcmp(name, "out") == 0) {
		o->out = value;
	} else if (strcmp(name, "mode") == 0) {
		o->plain = strcmp(value, "plain") == 0;
		if (!o->plain && strcmp(value, "tokd") != 0)
			return bad(name, value, "give tokd or plain");
	} else if (strcmp(name, "first-id") == 0) {
		if (parse_number(name, value, UINT64_MAX / 2, &o->first_id) != 0)
			return -1;
		if (o->first_id == 0)
			return bad(name, value, "give at least 1");
	} else if (strcmp(name, "warmup") == 0) {
		if (parse_number(name, value, UINT32_MAX, &v) != 0)
			return -1;
		o->warmup = (uint32_t)v;
	} else if (strcmp(name, "cpu") == 0) {
		if (parse_number(name, value, CPU_SETSIZE - 1, &v) != 0)
			return -1;
		o->cpu = (int)v;
	} else if (strcmp(name, "timeout") == 0) {
		if (parse_number(name, value, 60000, &v) != 0)
			return -1;
		if (v == 0)
			return bad(name, value, "give at least 1");
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
		{"timeout", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'},
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
	return 0;
}
