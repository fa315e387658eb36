/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A seed's plan. Each fault is on in half of the worlds: with all at once, the worst hides what
 * others would find (Groce et al., "Swarm testing", ISSTA 2012).
 */
#include "sim.h"

static uint32_t
between(uint64_t *dice, uint32_t least, uint32_t most)
{
	return least + (uint32_t)(dice_throw(dice) % (most - least + 1));
}

/* `value`, or in half of the worlds `none`. */
static uint64_t
maybe(uint64_t *dice, uint64_t value, uint64_t none)
{
	return dice_throw(dice) % 2 != 0 ? value : none;
}

struct plan
plan_of_seed(uint64_t seed)
{
	uint64_t of_seed = seed, *d = &of_seed;
	struct plan p = {.seed = seed, .attack = SIM_ATTACKS, .cost = COST};

	p.clients = between(d, 1, 6);
	p.requests = between(d, 50, 400);
	p.pause = between(d, 20, 3000) * US;
	p.text_most = 1u << between(d, 8, 17);
	p.streams = 1u << between(d, 9, 11);
	p.rx_desc = 1u << between(d, 5, 10);
	p.ring_bytes = UINT64_C(1) << between(d, 16, 21);
	p.side_bytes = maybe(d, 1 << 20, 8 << 10);
	p.stream_ms = between(d, 300, 10000);
	p.names_bytes = 1 << 20; /* of 16,384 texts of each kind: more than a world has */
	p.done_ms = (uint32_t)maybe(d, 10000, between(d, 10, 1000));
	p.reader_ms = between(d, 50, 500);
	p.network = (struct network_plan){.lose = (uint32_t)maybe(d, between(d, 1, 1000), 0),
		.twice = (uint32_t)maybe(d, between(d, 1, 1000), 0),
		.late = (uint32_t)maybe(d, between(d, 1, 1000), 0),
		.flip = (uint32_t)maybe(d, between(d, 1, 100), 0),
		.spoil = (uint32_t)maybe(d, between(d, 1, 100), 0),
		.delay = between(d, 5, 2000) * US,
		.jitter = maybe(d, between(d, 1, 500) * US, 0),
		.late_by = between(d, 1, 200) * MS,
		.twice_by = between(d, 0, (uint32_t)maybe(d, 200, 60000)) * MS};
	p.fault = (struct fault_plan){.partition = maybe(d, 2 * SECOND, NEVER),
		.crash = maybe(d, SECOND, NEVER),
		.client_crash = maybe(d, SECOND, NEVER),
		.stall = maybe(d, 500 * MS, NEVER),
		.clock_jump = maybe(d, SECOND, NEVER)};
	p.readers = between(d, 0, 3);
	p.slow_readers = (uint32_t)maybe(d, between(d, 0, p.readers), 0);
	p.slow_pause = between(d, 1, 700) * MS;
	p.hostile_hz = (uint32_t)maybe(d, between(d, 10, p.streams / 32), 0);
	p.tx_refused = (uint32_t)maybe(d, between(d, 1, 200), 0);
	p.six = maybe(d, true, false);
	p.one_address = maybe(d, true, false);
	p.lanes = (uint32_t)maybe(d, between(d, 1, LANES_SIM_MAX), 0);
	p.limit_most = 1u << between(d, 3, 9);
	p.stop_id = between(d, 0, 400); /* or none */
	p.shed = maybe(d, true, false);
	p.fault.generator = p.lanes > 0 ? maybe(d, SECOND, NEVER) : NEVER;
	p.skip_special = maybe(d, true, false);
	p.bad_ids = (uint32_t)maybe(d, between(d, 1, 20), 0);
	return p;
}
