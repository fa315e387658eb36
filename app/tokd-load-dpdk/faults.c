/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdbool.h>
#include <stddef.h>

#include <mix.h>
#include "faults.h"

static bool
happens(struct faults *f, uint32_t rate)
{
	return rate > 0 && dice_throw(&f->dice) % FAULTS_CERTAIN < rate;
}

void
faults_init(struct faults *f, const struct fault_rates *rates, const struct fault_packets *packets,
	uint64_t seed)
{
	*f = (struct faults){.rates = *rates, .packets = *packets, .dice = seed};
}

static uint32_t
pass(struct faults *f, void *packet, void **out, uint32_t n)
{
	out[n] = packet;
	f->passed++;
	return n + 1;
}

/* Pass one packet, or one copy of it, or hold it back. */
static uint32_t
pass_or_hold(struct faults *f, void *packet, uint64_t now, void **out, uint32_t n)
{
	if (!happens(f, f->rates.reorder) || f->n_held == FAULTS_HELD)
		return pass(f, packet, out, n);
	f->reordered++;
	f->held[f->n_held++] = (struct fault_held){
		.packet = packet,
		.behind = f->passed + 1 + dice_throw(&f->dice) % FAULTS_BEHIND,
		.until = now + FAULTS_WAIT_NS,
	};
	return n;
}

static uint32_t
let_go(struct faults *f, uint64_t now, void **out, uint32_t n)
{
	uint32_t kept = 0, held = f->n_held;

	for (uint32_t i = 0; i < held; i++) {
		struct fault_held h = f->held[i];

		if (h.behind <= f->passed || h.until <= now)
			n = pass(f, h.packet, out, n);
		else
			f->held[kept++] = h;
	}
	f->n_held = kept;
	return n;
}

uint32_t
faults_take(struct faults *f, void *packet, uint64_t now, void *out[FAULTS_OUT])
{
	void *copy = NULL;
	uint32_t n = 0;

	f->came++;
	if (happens(f, f->rates.lose)) {
		f->lost++;
		f->packets.drop(packet);
		return 0;
	}
	if (happens(f, f->rates.duplicate))
		copy = f->packets.copy(packet, f->packets.arg);
	n = pass_or_hold(f, packet, now, out, n);
	if (copy != NULL) {
		f->duplicated++;
		n = pass_or_hold(f, copy, now, out, n);
	}
	return let_go(f, now, out, n);
}

uint32_t
faults_due(struct faults *f, uint64_t now, void *out[FAULTS_OUT])
{
	return f->n_held == 0 ? 0 : let_go(f, now, out, 0);
}
