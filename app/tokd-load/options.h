/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>

#include "arrivals.h"

/* In the order of --mode. */
enum mode { MODE_TOKD, MODE_PLAIN, MODE_TCP, MODE_ECHO };

#define CPU_ANY UINT64_MAX

struct options {
	struct sockaddr_in server;   /* --connect */
	enum mode mode;		     /* --mode */
	const char *slices;	     /* --slices */
	const char *out;	     /* --out */
	uint64_t requests;	     /* --requests; 0: each slice once */
	uint64_t warmup;	     /* --warmup */
	uint64_t in_flight;	     /* --in-flight */
	uint64_t rate;		     /* --rate; 0: a closed loop */
	enum arrivals_kind arrivals; /* --arrivals */
	uint64_t seed;		     /* --seed */
	uint64_t limit_ms;	     /* --limit */
	uint64_t timeout_ms;	     /* --timeout */
	uint64_t first_id;	     /* --first-id */
	uint64_t cpu;		     /* --cpu, or CPU_ANY */
	uint64_t payload;	     /* --payload; 0: the library's own */
	bool stream;		     /* --stream */
};

/* -1: run; else an exit code, after help, version or an error was printed. */
int options_parse(struct options *o, int argc, char **argv);
