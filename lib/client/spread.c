/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which appliance has a text. Rendezvous hashing (highest random weight, Thaler and Ravishankar
 * 1998): each appliance has a weight for each text, and the heaviest that is up gets it. So without
 * one appliance only its own texts go elsewhere, and evenly.
 *
 * An appliance is down when its socket has an error; when it answers nothing to texts for
 * silence_most; or when it takes no texts of this vocabulary. It is up again when it answers a
 * probe, a POLL of a stream that never was. Nothing is sent to an appliance that is up only to
 * learn that. One that answers probes and no texts is asked less and less often all the same.
 *
 * Tokenizing has no effect but its result, so a text may be sent to a second appliance while the
 * first may still work on it. An answer of a model that the caller has begun to read stays. BUSY
 * and SHARE do not move a text: they are over in a second, and texts that left a busy appliance
 * would make the next one busy.
 */
#include <errno.h>
#include <string.h>

#include <crc32c.h>
#include <mix.h>
#include <monotonic.h>
#include "client_inside.h"

#define PROBE_FIRST (50 * NS_A_MS) /* doubled with each probe */
#define PROBE_MOST (2000 * NS_A_MS)
#define MOVES_MAX 8 /* of a text: the text itself may kill the appliances */

void
spread_join(struct appliance *a, const struct host *host, uint32_t vocab, uint64_t random)
{
	a->up = true;
	a->pause = PROBE_FIRST;
	a->seed = tokd_crc32c(0, host->name, strlen(host->name)) | (uint64_t)host->port << 32;
	a->probe = (struct tokd_req){
		.magic = TOKD_WIRE_MAGIC,
		.version = TOKD_WIRE_VERSION,
		.type = TOKD_POLL,
		.epoch = (uint32_t)(random >> 32),
		.vocab = vocab,
		.stream_id = random,
	};
}

/* Of those that have not refused it; `any`: also one that is down. NULL: none. */
static struct appliance *
choose(struct tokd_client *c, const struct tokd_request *r, bool any)
{
	const uint64_t text = tokd_mix(r->hash);
	struct appliance *best = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		struct appliance *a = &c->appliance[i];
		const uint64_t weight = tokd_mix(a->seed ^ text);

		if ((r->avoid >> i & 1) || (!any && !a->up))
			continue;
		if (best == NULL || weight > most) {
			best = a;
			most = weight;
		}
	}
	return best;
}

static enum tokd_status
give_to(struct tokd_client *c, struct appliance *a, struct tokd_request *r)
{
	if (tokd_engine_pending(a->engine) == 0)
		a->asked_at = 0; /* that was for others */
	r->appliance = (uint8_t)(a - c->appliance);
	return tokd_engine_submit(a->engine, r);
}

enum tokd_status
tokd_client_submit(struct tokd_client *c, struct tokd_request *r)
{
	struct appliance *a = c->appliance;
	uint32_t pending = 0;

	r->avoid = 0;
	r->appliance = r->moves = 0;
	if (c->n > 1) {
		for (uint32_t i = 0; i < c->n; i++)
			pending += tokd_engine_pending(c->appliance[i].engine);
		if (pending == c->requests) { /* so every engine has room for each that moves */
			r->status = TOKD_E_FULL;
			return r->status;
		}
		r->hash = 0;
		if (r->len <= UINT32_MAX && r->text != NULL)
			r->hash = tokd_crc32c(0, r->text, r->len);
		a = choose(c, r, false);
		if (a == NULL)
			a = choose(c, r, true);
	}
	return give_to(c, a, r);
}

void
spread_down(struct appliance *a, uint64_t now)
{
	if (!a->up)
		return;
	a->up = false;
	a->probe_at = now + a->pause;
}

/* May another appliance do better? */
static bool
moves(struct appliance *a, const struct tokd_request *r)
{
	if ((r->flags & TOKD_REQUEST_GENERATE) && r->n_ids > 0)
		return false;
	if (r->status == TOKD_E_NET)
		return true;
	if (r->status != TOKD_E_REFUSED)
		return false;
	switch (r->reason) {
	case TOKD_R_SHUTDOWN:
	case TOKD_R_VERSION:
	case TOKD_R_VOCAB:
		spread_down(a, monotonic_ns());
		return true;
	case TOKD_R_EXPIRED:
	case TOKD_R_TIMEOUT:
	case TOKD_R_UNKNOWN:
		return true;
	default:
		return false;
	}
}

bool
spread_failed(void *user, struct tokd_request *r)
{
	struct tokd_client *c = user;
	struct appliance *from = appliance_of(c, r), *to;
	const struct tokd_request was = *r;

	if (!moves(from, r) || r->moves == MOVES_MAX)
		return false;
	if (r->status == TOKD_E_REFUSED)
		r->avoid |= UINT32_C(1) << r->appliance;
	to = choose(c, r, false);
	/* In a rolling restart one that is down is up again before it has been asked. */
	if (to == NULL && r->status == TOKD_E_REFUSED && r->reason == TOKD_R_SHUTDOWN)
		to = choose(c, r, true);
	if (to == NULL)
		return false;
	tokd_engine_unlist(from->engine, r);
	give_to(c, to, r);
	/* The same text has the same ids: those that the caller has seen stand. */
	r->n_ids = was.n_ids;
	r->total = r->flags & TOKD_REQUEST_GENERATE ? 0 : was.total;
	r->vocab = was.vocab;
	r->retransmits = was.retransmits;
	r->asks = was.asks;
	r->resends = was.resends + 1;
	r->since = was.since;
	r->moves++;
	c->moved++;
	return true;
}

bool
spread_is_answer(struct appliance *a, const void *datagram, size_t len)
{
	struct tokd_rep rep;

	if (len != sizeof(rep))
		return false;
	memcpy(&rep, datagram, sizeof(rep));
	if (rep.magic != TOKD_WIRE_MAGIC || rep.type != TOKD_REPLY || rep.epoch != a->probe.epoch ||
		rep.stream_id != a->probe.stream_id)
		return false;
	if ((rep.flags & TOKD_F_FAIL) && rep.reason == TOKD_R_UNKNOWN) {
		a->up = true;
		a->asked_at = 0;
	}
	return true;
}

void
spread_heard(struct appliance *a)
{
	a->asked_at = 0;
	a->heard = true;
	if (a->up)
		a->pause = PROBE_FIRST;
}

/* Texts wait there for an answer, and nothing has come. */
static bool
is_silent(const struct tokd_client *c, const struct appliance *a, uint64_t now)
{
	const uint64_t quarter = c->timeout_ms * NS_A_MS / 4;
	const uint64_t most = quarter < c->silence_most ? quarter : c->silence_most;

	return tokd_engine_pending(a->engine) > 0 && a->asked_at != 0 && now - a->asked_at >= most;
}

bool
spread_any_is_up(const struct tokd_client *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		if (c->appliance[i].up)
			return true;
	}
	return false;
}

void
spread_tick(struct tokd_client *c, struct appliance *a, uint64_t now)
{
	if (c->n == 1) { /* there is nowhere to go */
		a->up = true;
		return;
	}
	if (is_silent(c, a, now)) {
		spread_down(a, now);
		if (spread_any_is_up(c))
			tokd_engine_fail_all(a->engine, TOKD_E_NET, ETIMEDOUT);
	}
	if (a->up)
		return;
	if (now < a->probe_at)
		return;
	a->pause = 2 * a->pause < PROBE_MOST ? 2 * a->pause : PROBE_MOST;
	a->probe_at = now + a->pause;
	(void)send(a->fd, &a->probe, sizeof(a->probe), MSG_DONTWAIT);
}
