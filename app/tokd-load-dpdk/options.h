/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdint.h>
#include <netinet/in.h>

#include "faults.h"
#include "../tokd-load/arrivals.h"

struct options {
	struct sockaddr_in server;   /* --connect */
	struct sockaddr_in source;   /* --source: address and first port */
	const char *slices;	     /* --slices */
	const char *out;	     /* --out, or NULL */
	const char *report;	     /* --report, or NULL: standard output */
	const char *ring;	     /* --ring, or NULL */
	uint64_t requests;	     /* --requests; 0: each slice once */
	uint64_t warmup;	     /* --warmup */
	uint64_t clients;	     /* --clients */
	uint64_t addresses;	     /* --addresses, of the clients */
	uint64_t in_flight;	     /* --in-flight, of each client */
	uint64_t rate;		     /* --rate; 0: a closed loop */
	enum arrivals_kind arrivals; /* --arrivals */
	uint64_t timeout_ms;	     /* --timeout */
	uint64_t seed;		     /* --seed */
	struct fault_rates faults;   /* --loss, --reorder, --duplicate */
};

/*
 * Parse the arguments after `--`. EAL's, before it, are the first *eal_argc of argv. -1: run; else
 * an exit code, after help, version or an error was printed.
 */
int options_parse(struct options *o, int argc, char **argv, int *eal_argc);
