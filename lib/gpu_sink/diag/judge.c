/* SPDX-License-Identifier: BSD-3-Clause */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Queue pairs, completion queues and what the driver keeps beside the memory itself. */
#define QUEUES_BYTES (1u << 20)

bool
memlock_is_low(const struct machine *m, uint64_t bytes)
{
	const struct system *s = &m->system;

	return s->has_memlock && s->memlock_free != YES && s->memlock < bytes + QUEUES_BYTES;
}

const char *
bytes_text(uint64_t bytes, char out[32])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	int unit = 0;

	while (unit < 4 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, 32, "%" PRIu64 " %s", bytes, units[unit]);
	return out;
}

void
judge(const struct machine *m, const struct options *o, struct verdict *v)
{
	memset(v, 0, sizeof(*v));
	v->role = (enum role)o->role;
	v->role_why = "as asked";
	if (v->role == ROLE_AUTO) {
		v->role = m->n_gpus > 0 ? ROLE_AGENT : ROLE_PRODUCER;
		v->role_why = m->n_gpus > 0 ? "there is a GPU here"
					    : "there is no GPU here: with verbs it is elsewhere";
	}
	judge_ways(m, o, v);
	judge_findings(m, o, v);
}

static bool
would_work(const struct paths *p, enum want want)
{
	for (int i = 0; i < p->n_ways; i++) {
		if (p->ways[i].kind == want && p->ways[i].works != NO)
			return true;
	}
	return false;
}

bool
verdict_is_good(const struct verdict *v, enum want want)
{
	bool problem = false;

	if (want != WANT_NONE) {
		for (int i = 0; i < v->n_paths; i++) {
			if (would_work(&v->paths[i], want))
				return true;
		}
		return false;
	}
	for (int i = 0; i < v->n_findings; i++)
		problem |= v->findings[i].problem;
	return !problem;
}
