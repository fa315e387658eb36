/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table says all there is to say about an option: parsing, limits, --help, and how its value is
 * shown again. options.c parses by it, options_show.c prints by it.
 */
#ifndef TOKD_OPTIONS_TABLE_H
#define TOKD_OPTIONS_TABLE_H

#include "options.h"

#define TOKD_N_OPTS 27

#define OPT_K ((uint64_t)1 << 10)
#define OPT_M ((uint64_t)1 << 20)
#define OPT_G ((uint64_t)1 << 30)

enum tokd_opt_type {
	OPT_TEXT,  /* const char * */
	OPT_IPV4,  /* uint32_t, network byte order */
	OPT_IPV6,  /* struct tokd_addr */
	OPT_MAC,   /* struct rte_ether_addr */
	OPT_COUNT, /* decimal */
	OPT_SIZE,  /* decimal, then k, M or G (times 1024) or nothing */
	OPT_MS,	   /* decimal, milliseconds */
	OPT_OCTAL,
	OPT_FLAG, /* bool, takes no value */
};

enum tokd_opt_rule { RULE_NONE, RULE_POWER_OF_2, RULE_SOCKET_PATH };

struct tokd_opt_def {
	const char *name;
	const char *arg; /* what --help calls the value */
	enum tokd_opt_type type;
	enum tokd_opt_rule rule;
	uint16_t offset, width; /* of the field */
	uint64_t min, max;
	const char *preset; /* default, as a user would write it; NULL: none */
	const char *help;
};

extern const struct tokd_opt_def tokd_opt_defs[TOKD_N_OPTS];

/* A number of option `d` as one would write it: 16M, 0600, 1500. */
void tokd_opt_print(const struct tokd_opt_def *d, uint64_t v, char *text, size_t room);

/* " ms", " bytes" or "". */
const char *tokd_opt_unit(const struct tokd_opt_def *d);

#endif
