/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EXIT_TEXT = 1, EXIT_REACH = 3 }; /* further exit codes; opt.h has the others */

struct options {
	const char *hosts;   /* of argv */
	bool stream;	     /* --stream */
	bool lines;	     /* --lines */
	bool decode;	     /* --decode */
	uint32_t generate;   /* --generate; 0: not given */
	uint32_t in_flight;  /* --in-flight */
	uint32_t vocab;	     /* --vocab */
	uint32_t timeout_ms; /* --timeout */
	uint32_t mtu;	     /* --mtu */
};

/* -1: run; else an exit code, after help, version or an error was printed. */
int options_parse(struct options *o, int argc, char **argv);
