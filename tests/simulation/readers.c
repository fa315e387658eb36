/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reader processes: libtokd-reader on the appliance's control socket and ring. A good one releases
 * all that there is; a slow one some records a turn; one that stops releases nothing for a while;
 * one that holds what it reads attaches again as soon as it is dropped.
 */
#include <string.h>

#include "seams.h"
#include "sim.h"

#define PAUSE MS
#define SLOW_RECORDS 2

void
reader_attach(struct world *w, uint32_t i)
{
	struct reader *r = &w->reader[i];

	seams_client(SEAMS_READER);
	r->r = tokr_attach(sim_socket, TOKR_READER, 250, NULL);
	r->next = NEVER;
	world_trace(w, "reader", i, r->r != NULL, 0);
}

void
reader_detach(struct world *w, uint32_t i)
{
	tokr_detach(w->reader[i].r);
	w->reader[i].r = NULL;
}

static uint32_t
records_of(struct world *w, const struct reader *r)
{
	if (w->calm_at != NEVER || r->way == READS_ALL || r->way == HOLDS)
		return UINT32_MAX;
	world_fault(w, SLOW_READS);
	return r->way == READS_SLOWLY ? SLOW_RECORDS : 0;
}

void
reader_turn(struct world *w, uint32_t i)
{
	struct reader *r = &w->reader[i];
	const uint32_t most = records_of(w, r);
	struct tokr_record rec;
	int rc = 0;

	seams_client(SEAMS_READER);
	if (r->r == NULL)
		reader_attach(w, i);
	for (uint32_t n = 0; r->r != NULL && n < most; n++) {
		uint64_t hash;

		rc = tokr_next(r->r, &rec, 0);
		if (rc <= 0)
			break;
		hash = check_hash(&rec);
		if (r->way != HOLDS &&
			tokr_release(r->r, &rec) == 0) /* else it is to be discarded */
			check_read(w, r, &rec, hash);
		r->seen++;
	}
	if (rc < 0) {
		world_trace(w, "reader ends", i, (uint64_t)-rc, r->seen);
		if (rc == TOKR_DROPPED) {
			world_fault(w, READER_DROPS);
			check_dropped(w);
		} else if (rc != TOKR_GONE) {
			check_fault(w, "a reader: %s", tokr_last_error(r->r)->text);
		}
		reader_detach(w, i);
	}
	world_put(w, w->now + (most == UINT32_MAX ? PAUSE : w->plan.slow_pause), READER, i, NULL);
}
