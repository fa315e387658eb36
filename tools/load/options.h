/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_LOAD_OPTIONS_H
#define TOKD_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <netinet/in.h>

enum mode { MODE_TOKD, MODE_PLAIN, MODE_TCP };

struct options {
	struct sockaddr_in server; /* --connect */
	const char *slices;	   /* --slices */
	const char *out;	   /* --out */
	uint64_t first_id;	   /* --first-id */
	uint32_t warmup;	   /* --warmup */
	uint32_t timeout_ms;	   /* --timeout */
	int cpu;		   /* --cpu; -1: wherever the kernel likes */
	enum mode mode;		   /* --mode */
	bool stream;		   /* --stream */
	uint32_t payload;	   /* --payload; 0: the library's own */
};

/* 0: run; 1: help was printed; -1: what is wrong was printed. */
int options_parse(struct options *o, int argc, char **argv);

#endif
