/* SPDX-License-Identifier: BSD-3-Clause */
/* Not hot: reconnects, and finds the slots that were lost. */
#include <inttypes.h>
#include <stdio.h>

#include "sink_inside.h"

/*
 * The old queue pair is destroyed: what is not published now never will be. A ticket must be the
 * one that we posted or the one before.
 */
static int
find_lost(struct tokg_sink *s, struct tokg_error *err)
{
	uint32_t i = s->oldest_slot;

	s->n_lost = 0;
	for (uint64_t n = s->oldest; n != s->posted; n++) {
		struct tokg_sink_slot *sl = &s->slot[i];
		const uint64_t ours = sl->hdr.ticket, theirs = s->tickets[i];

		if (sl->state != TOKG_SLOT_FREE) {
			if (theirs != ours && theirs != ours - 1) {
				tokg_sink_break(s, TOKG_BREACH);
				snprintf(err->text, sizeof(err->text),
					"GPU ring: slot %" PRIu32 " has ticket %" PRIu64
					", %" PRIu64 " was posted: does another process write "
					"there?",
					i, theirs, ours);
				return -1;
			}
			sl->state = theirs == ours ? TOKG_SLOT_OUT : TOKG_SLOT_LOST;
			s->n_lost += sl->state == TOKG_SLOT_LOST;
		}
		i = i + 1 == s->slots ? 0 : i + 1;
	}
	return 1;
}

static int
reconnect(struct tokg_sink *s, struct tokg_error *err)
{
	int rc = s->t->ops->reconnect(s->t, s->tickets, err);

	if (rc < 0) {
		tokg_sink_break(s, TOKG_NEVER);
		snprintf(s->reason, sizeof(s->reason), "%.159s", err->text);
	}
	if (rc > 0)
		rc = find_lost(s, err);
	if (rc <= 0)
		return rc;
	s->n_reads = s->t->n_reads; /* a read in progress is lost, or old */
	s->reading = false;
	s->watching = false;
	s->resumed = true;
	s->counter[TOKG_C_RECONNECTS]++;
	s->broken = TOKG_INTACT;
	return 1;
}

int
tokg_sink_recover(struct tokg_sink *s, struct tokg_error *err)
{
	switch (s->broken) {
	case TOKG_INTACT:
		return 1;
	case TOKG_CONNECTION:
		return reconnect(s, err);
	case TOKG_SILENT:
		snprintf(err->text, sizeof(err->text),
			"GPU ring: tokd-gpu gives no sign of life: it died, is stopped, or hangs");
		break;
	case TOKG_GRANT:
		snprintf(err->text, sizeof(err->text),
			"GPU ring: producer %" PRIu32 " has epoch %" PRIu32 ", ours is %" PRIu32
			": tokd-gpu has ended its epoch",
			s->t->producer, s->t->back->epoch, s->t->epoch);
		break;
	case TOKG_BREACH:
		snprintf(err->text, sizeof(err->text),
			"GPU ring: producer %" PRIu32 ": impossible back area: %" PRIu64
			" slots posted, %" PRIu64 " released, a done word ahead of its ticket, or "
			"tokens that were not granted: does another process write there?",
			s->t->producer, s->posted, s->t->back->released);
		break;
	case TOKG_TICKETS:
		snprintf(err->text, sizeof(err->text),
			"GPU ring: slot %" PRIu32 " has no tickets left of 2^48: restart tokd-gpu",
			s->next_slot);
		break;
	case TOKG_FULL:
		snprintf(err->text, sizeof(err->text),
			"GPU ring: producer %" PRIu32
			" is behind and keeps the token ring full: tokd-gpu hangs, or the GPU is "
			"slower than the texts come",
			s->t->producer);
		break;
	case TOKG_ATTACHED:
		return 1;
	case TOKG_NEVER:
		snprintf(err->text, sizeof(err->text), "%s", s->reason);
		break;
	}
	return -1;
}
