/* SPDX-License-Identifier: BSD-3-Clause */
/* From what was found out to what it means. */
#ifndef TOKD_DIAG_JUDGE_H
#define TOKD_DIAG_JUDGE_H

#include "machine.h"
#include "options.h"

#define REASONS_MAX 8
#define FINDINGS_MAX 128

/* What is so, and what can be done about it. */
struct finding {
	bool problem; /* it has weight: something that is here does not work */
	char thing[80];
	char value[160];
	char remedy[280];
};

struct reasons {
	struct finding of[REASONS_MAX];
	int n;
};

/* A way for ids to come into the memory that is embedded from. */
struct way {
	const char *name;
	enum want kind;
	enum known works; /* NOT_KNOWN: nothing that is known speaks against it */
	struct reasons no;
	struct reasons unknown;
};

#define WAYS_MAX 5

/* With one of the GPUs, or with none. */
struct paths {
	const struct gpu *gpu;	   /* NULL: there is none */
	struct way ways[WAYS_MAX]; /* best first */
	int n_ways;
	int taken; /* index: the first that works, or of which nothing says that it does not */
};

struct verdict {
	enum role role;
	const char *role_why;
	struct paths paths[GPU_MAX]; /* in the order of the GPUs; one at least */
	int n_paths;
	int best; /* index: the first of those whose path taken is best */
	struct finding findings[FINDINGS_MAX];
	int n_findings;
};

void judge(const struct machine *m, const struct options *o, struct verdict *v);
/* ways.c, findings.c: parts of it */
void judge_ways(const struct machine *m, const struct options *o, struct verdict *v);
void judge_findings(const struct machine *m, const struct options *o, struct verdict *v);
/* Would what was asked for work, and is nothing of weight found? */
bool verdict_is_good(const struct verdict *v, enum want want);

/* Is the limit of locked memory below what is registered? */
bool memlock_is_low(const struct machine *m, uint64_t bytes);
/* "16 MiB" */
const char *bytes_text(uint64_t bytes, char out[32]);

#endif
