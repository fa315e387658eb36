/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../tokd-load/server.h"
#include "../tokd-load/shared_options.h"

static bool
check_share(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	double percent;
	char *end;

	errno = 0;
	percent = strtod(text, &end);
	if (errno != 0 || end == text || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100))
		return opt_wrong(err, "give a share from 0%% to 100%%, as in 2%%");
	*(uint32_t *)field = (uint32_t)(percent / 100 * FAULTS_CERTAIN + 0.5);
	return true;
}

#define FIELD(f) OPT_FIELD(struct options, f)
static const struct opt_def defs[] = {
	{"connect", "IP:PORT", OPT_OTHER, FIELD(server), 0, 0, NULL, "the appliance",
		.flags = OPT_REQUIRED, .check = server_check},
	{"source", "IP:PORT", OPT_OTHER, FIELD(source), 0, 0, NULL,
		"address of this end (it answers ARP), and port of the first client",
		.flags = OPT_REQUIRED, .check = server_check},
	LOAD_SLICES(struct options),
	{"out", "FILE", OPT_TEXT, FIELD(out), 0, 0, NULL,
		"results as CSV: "
		"index,ns,ok,retransmits,text_to_last_id_ns,wire_to_ring_ns,failure,intended_ns,sent_ns; "
		"ns counts from the intended start; text_to_last_id_ns and, per "
		"record, wire_to_ring_ns need --ring"},
	{"report", "FILE", OPT_TEXT, FIELD(report), 0, 0, NULL,
		"counts as JSON; default: standard output"},
	{"ring", "SOCKET", OPT_TEXT, FIELD(ring), 0, 0, NULL,
		"also attach as a reader of the token ring, and compare the ids"},
	LOAD_REQUESTS(struct options),
	LOAD_WARMUP(struct options),
	{"clients", "N", OPT_COUNT, FIELD(clients), 1, 1024, "1",
		"clients, each with its own port"},
	{"addresses", "N", OPT_COUNT, FIELD(addresses), 1, 1024, "1",
		"addresses, from --source on, which the clients take in turn: sources to the "
		"appliance"},
	{"in-flight", "N", OPT_COUNT, FIELD(in_flight), 1, 64, "1",
		"requests in flight per client"},
	{"timeout", "MS", OPT_MS, FIELD(timeout_ms), 1, 3600000, "5000",
		"a request fails after this time without progress"},
	{"rate", "R", OPT_COUNT, FIELD(rate), 1, ARRIVALS_RATE_MAX, NULL,
		"start this many requests per second, from any client below --in-flight; if there "
		"is none, the request is \"not sent\"",
		.section = "Open loop"},
	LOAD_ARRIVALS(struct options),
	{"seed", "N", OPT_COUNT, FIELD(seed), 0, UINT64_MAX, "1",
		"seed of the arrivals and of the faults below"},
	{"loss", "SHARE", OPT_OTHER, FIELD(faults.lose), 0, 0, "0%",
		"drop this share of packets in each direction, as in 2%", .section = "Faults",
		.check = check_share},
	{"reorder", "SHARE", OPT_OTHER, FIELD(faults.reorder), 0, 0, "0%",
		"delay this share until after 1 to 8 later packets, or for 2 ms",
		.check = check_share},
	{"duplicate", "SHARE", OPT_OTHER, FIELD(faults.duplicate), 0, 0, "0%",
		"send this share of packets twice", .check = check_share},
};

static const struct opt_section sections[] = {
	LOAD_EXIT_CODES,
	{0},
};

static const struct opt_program program = {
	.name = "tokd-load-dpdk",
	.version = TOKD_VERSION,
	.summary = "tokd-load on a DPDK port, with many clients and faults",
	.usage = "[EAL options] -- --connect IP:PORT --source IP:PORT --slices FILE [options]",
	.about = "As tokd-load, but on DPDK port 0 instead of a socket, with many clients and "
		 "faults. For\n"
		 "example\n"
		 "  --vdev net_memif0,role=client,socket=PATH,socket-abstract=no",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.before_dashes = "-a -l -m --file-prefix --in-memory --no-huge --no-pci --vdev",
	.sections = sections,
};

/* Index of the first argument after `--`. Without `--`, all are options of this program. */
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
	const int begin = begin_of_ours(argc, argv);
	struct opt_given given;
	int code;

	*o = (struct options){0};
	*eal_argc = begin > 1 ? begin - 1 : 1;
	code = opt_main(&program, argc - (begin - 1), argv + (begin - 1), o, &given);
	if (code >= 0)
		return code;
	if (o->rate == 0 && o->arrivals != ARRIVALS_POISSON)
		return opt_usage(&program, "--arrivals needs an open loop: give --rate, too");
	if (ntohs(o->source.sin_port) + o->clients - 1 > UINT16_MAX)
		return opt_usage(&program,
			"--clients %u: their ports from %u on exceed 65535; give --source a lower "
			"port",
			(unsigned int)o->clients, ntohs(o->source.sin_port));
	return -1;
}
