/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_DIAG_OPTIONS_H
#define TOKD_DIAG_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { EXIT_WORKS = 0, EXIT_NOT = 1, EXIT_USAGE = 2 };

enum role { ROLE_AUTO = 0, ROLE_PRODUCER, ROLE_AGENT };
enum want { WANT_NONE = 0, WANT_VERBS, WANT_CUDA, WANT_SHM };

struct options {
	const char *root;
	uint64_t want, role; /* enum want, enum role */
	uint64_t ring;	     /* bytes of token rings that one dpdk-tokd registers */
	uint64_t region;     /* bytes of the GPU ring */
	bool json;
	bool drivers; /* files[] are programs and libraries to look into */
	char **files;
	int n_files;
};

/* 0: run; 1: help or version was printed; -1: what is wrong was printed. */
int options_parse(struct options *o, int argc, char **argv);

#endif
