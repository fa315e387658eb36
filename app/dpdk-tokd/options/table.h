/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One table says all there is to say about an option: parsing, limits, --help, the manual page, the
 * completion, and how its value is shown again. Its name in the file is its name; its variable is
 * TOKD_ and its name in capitals, with _ for -.
 */
#ifndef TOKD_OPTIONS_TABLE_H
#define TOKD_OPTIONS_TABLE_H

#include "options.h"

#define OPT_K ((uint64_t)1 << 10)
#define OPT_M ((uint64_t)1 << 20)
#define OPT_G ((uint64_t)1 << 30)

#define OPT_SECTION "tokd" /* of the configuration file: its only one */
#define OPT_ENV_PREFIX "TOKD_"
#define OPT_TEXT_MAX 255 /* bytes of a text value: as many as a value of the file can have */
#define OPT_FILE_MAX (64u << 10) /* bytes of the configuration file */
#define OPT_NAME_ROOM 40	 /* for any option's variable, with its NUL */

enum tokd_opt_type {
	OPT_TEXT,  /* const char * */
	OPT_IPV4,  /* uint32_t, network byte order */
	OPT_IPV6,  /* struct tokd_addr */
	OPT_MAC,   /* struct rte_ether_addr */
	OPT_COUNT, /* decimal */
	OPT_SIZE,  /* decimal, then k, M or G (times 1024) or nothing */
	OPT_MS,	   /* decimal, milliseconds */
	OPT_OCTAL,
	OPT_FLAG, /* bool: yes or no, and nothing on the command line for yes */
};

enum tokd_opt_rule {
	RULE_NONE,
	RULE_POWER_OF_2,
	RULE_SOCKET_PATH,
	RULE_NOT_IN_FILE,
	RULE_GROUP,
	RULE_BYTE, /* a text that is a decimal number of 0 to 255 */
	RULE_REPLY_FITS, /* 0, or an MTU that the longest reply fits */
};

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

/* On the command line alone: those that the tools of RDMA have, under the same letter. */
struct tokd_opt_short {
	char letter;
	const char *name;
};

#define TOKD_N_SHORTS 3
extern const struct tokd_opt_short tokd_opt_shorts[TOKD_N_SHORTS];

/* What stands on the command line only, takes no value, and is done instead of running. */
struct tokd_opt_action {
	const char *name;
	enum tokd_options_result result;
	const char *help;
};

#define TOKD_N_ACTIONS 3
extern const struct tokd_opt_action tokd_opt_actions[TOKD_N_ACTIONS];

/* What was asked for, by source, before anything is made of it. NULL: nothing. */
struct tokd_opt_asked {
	const char *text[TOKD_N_SOURCES][TOKD_N_OPTS];
	bool action[TOKD_N_ACTIONS];
};

/* options.c: the complaint, unless there is one already: the first stands. Returns -1. */
int tokd_opt_bad(struct tokd_options_error *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The option whose name is name[0 .. len), or NULL. */
const struct tokd_opt_def *tokd_opt_find(const char *name, size_t len);

/* Its short form, as -d; "" if it has none. */
const char *tokd_opt_short(const struct tokd_opt_def *d, char text[3]);

/* Its variable: TOKD_RING_SIZE. `room` is at least OPT_NAME_ROOM. */
void tokd_opt_env(const struct tokd_opt_def *d, char *name, size_t room);

/* options/near.c: the known name that name[0 .. len) is likely to mean, or NULL. */
const char *tokd_opt_near(const char *name, size_t len);

/*
 * options/file.c. read: the bytes of the file at `path`, for free, with room for one more; NULL:
 * error says why. parse: enter what they say in *asked, whose texts are then in `text`, which is
 * changed; it has room for one byte more than `bytes`. Returns 0, or -1 with error.
 */
char *tokd_opt_file_read(const char *path, size_t *bytes, struct tokd_options_error *e);
int tokd_opt_file_parse(const char *path, char *text, size_t bytes, struct tokd_opt_asked *asked,
	struct tokd_options_error *e);

/* options/value.c: all that was asked for, whether overridden or not, is checked and resolved. */
int tokd_opt_resolve(
	const struct tokd_opt_asked *asked, struct tokd_options *opt, struct tokd_options_error *e);

/* A number of option `d` as one would write it: 16M, 0600, 1500. */
void tokd_opt_print(const struct tokd_opt_def *d, uint64_t v, char *text, size_t room);

/* Its limits and default in one line, "" if it has none. */
void tokd_opt_limits(const struct tokd_opt_def *d, char *text, size_t room);

/* " ms", " bytes" or "". */
const char *tokd_opt_unit(const struct tokd_opt_def *d);

#endif
