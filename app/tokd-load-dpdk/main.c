/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-load-dpdk: tokd-load on a DPDK port, with many clients and faults. */
#include <signal.h>
#include <stdio.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "load.h"
#include "port.h"

enum { DONE, FAILED, USAGE }; /* exit codes of opt.h */

static volatile sig_atomic_t stopped;

static void
stop(int number)
{
	stopped = number;
}

/* Open a file for writing. NULL after printing the error. */
static FILE *
open_file(const char *option, const char *path)
{
	FILE *file = fopen(path, "w");

	if (file == NULL) {
		fprintf(stderr, "tokd-load-dpdk: --%s ", option);
		perror(path);
	}
	return file;
}

static int
close_file(FILE *file, const char *path)
{
	if (file == NULL || fclose(file) == 0)
		return 0;
	fprintf(stderr, "tokd-load-dpdk: ");
	perror(path);
	return -1;
}

static int
report(const struct load *l, const char *path)
{
	FILE *file;

	if (path == NULL) {
		load_report(l, stdout);
		return 0;
	}
	file = open_file("report", path);
	if (file == NULL)
		return -1;
	load_report(l, file);
	return close_file(file, path);
}

static int
run(struct load *l, const struct options *o, const struct slices *slices)
{
	int rc = -1;

	l->frames.ip = o->source.sin_addr.s_addr;
	l->frames.server_ip = o->server.sin_addr.s_addr;
	l->frames.server_port = o->server.sin_port;
	l->frames.first_port = ntohs(o->source.sin_port);
	l->frames.n_ports = (uint16_t)o->clients;
	l->frames.n_addresses = (uint32_t)o->addresses;
	if (port_open(&l->frames) != 0)
		return -1;
	if (load_open(l, o, slices) == 0 &&
		(o->ring == NULL || ring_open(&l->ring, o->ring) == 0) &&
		port_find_peer(&l->frames) == 0) {
		rc = load_run(l, &stopped);
		if (report(l, o->report) != 0)
			rc = -1;
	}
	load_close(l);
	port_close();
	return rc;
}

static int
finish(const struct load *l, int rc)
{
	uint64_t wrong = l->requests - l->counts.right;
	const struct ring *ring = &l->ring;

	if (wrong > 0)
		fprintf(stderr, "tokd-load-dpdk: %llu of %llu requests failed\n",
			(unsigned long long)wrong, (unsigned long long)l->requests);
	if (ring->doubled > 0)
		fprintf(stderr,
			"tokd-load-dpdk: %llu records in the token ring belong to no text in flight\n",
			(unsigned long long)ring->doubled);
	return rc == 0 && wrong == 0 && ring->doubled == 0 ? DONE : FAILED;
}

int
main(int argc, char **argv)
{
	static struct load load;
	struct sigaction on_signal = {.sa_handler = stop};
	struct slices slices = {0};
	struct options o;
	int eal_argc, taken, rc;

	rc = options_parse(&o, argc, argv, &eal_argc);
	if (rc >= 0)
		return rc;
	if (slices_load(&slices, o.slices) != 0)
		return FAILED;
	if (o.out != NULL && (load.out = open_file("out", o.out)) == NULL)
		return FAILED;
	taken = rte_eal_init(eal_argc, argv);
	if (taken < 0) {
		fprintf(stderr, "tokd-load-dpdk: EAL did not start: %s; see its messages above\n",
			rte_strerror(rte_errno));
		return FAILED;
	}
	if (taken + 1 < eal_argc) { /* EAL moves unknown arguments to the end without an error */
		fprintf(stderr,
			"tokd-load-dpdk: %.64s: before --, but neither an EAL option nor the value of "
			"one; remove it\n",
			argv[taken + 1]);
		rte_eal_cleanup();
		return USAGE;
	}
	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
	if (load.out != NULL)
		fputs("index,ns,ok,retransmits,text_to_last_id_ns,wire_to_ring_ns,failure,"
		      "intended_ns,sent_ns\n",
			load.out);
	rc = run(&load, &o, &slices);
	if (close_file(load.out, o.out) != 0)
		rc = -1;
	rc = finish(&load, rc);
	rte_eal_cleanup();
	slices_free(&slices);
	return rc;
}
