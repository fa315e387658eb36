/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One attacker and one good client, by the product's defaults: what does the good one get? Limits
 * say what it must get: all its ids, none of its texts refused or unanswered, its p99 at most some
 * times that at rest, no text twice, and no address gets more than 3 bytes for each that it sent.
 * Of greedy clients, none gets less than half of what another gets.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "sim.h"

#define MBIT UINT64_C(1000000)
#define TRICKLE_S 8 /* between two bytes of a stream */
#define AMPLIFICATION 3
#define OVERLOAD_BYTES 2000 /* two packets */

const char *const sim_attack_name[SIM_ATTACKS] = {[AT_REST] = "rest",
	[FORGED_FIRST] = "forged-0.9",
	[FORGED_MORE] = "forged-4.6",
	[FORGED_MOST] = "forged-10",
	[TRICKLE_STREAMS] = "trickle-streams",
	[TRICKLE_MORE] = "trickle-10",
	[STORM] = "storm",
	[GREEDY] = "greedy",
	[GREEDY_BESIDE] = "greedy-beside",
	[TRICKLE_READER] = "trickle-reader",
	[READER_AGAIN] = "reader-again",
	[STOPPED_SINK] = "stopped-sink",
	[REPEAT_5000] = "repeat-5000",
	[REPEAT_20000] = "repeat-20000",
	[AMPLIFY] = "amplify",
	[MANY_HOSTS] = "many-hosts",
	[WRONG_COOKIES] = "wrong-cookies",
	[FORGED_TEXTS] = "forged-texts",
	[FORGED_OVERLOAD] = "forged-overload",
	[SNIFFER] = "sniffer"};

/* A limit that is not kept. */
enum miss { REFUSED = 1, UNANSWERED = 2, SLOW = 4, TWICE = 8, AMPLIFIES = 16, STARVED = 32 };
static const char *const miss_name[] = {
	"refused", "unanswered", "p99", "twice", "bytes out", "greedy"};

/*
 * p99 of the good client, times that at rest; and the limits that are not kept yet. A defence takes
 * what it mends from here: --check fails as well if a limit is kept that stands here.
 */
static const struct limit {
	uint32_t p99_times, misses;
} limit[SIM_ATTACKS] = {
	[AT_REST] = {1, 0},
	[FORGED_FIRST] = {3, 0},
	[FORGED_MORE] = {3, 0},
	[FORGED_MOST] = {3, 0},
	[TRICKLE_STREAMS] = {3, 0},
	[TRICKLE_MORE] = {3, 0},
	[STORM] = {3, 0},
	[GREEDY] = {5, 0},
	[GREEDY_BESIDE] = {5, SLOW},
	[TRICKLE_READER] = {3, 0},
	[READER_AGAIN] = {3, 0},
	[STOPPED_SINK] = {3, 0},
	[REPEAT_5000] = {3, 0},
	[REPEAT_20000] = {3, 0},
	[AMPLIFY] = {3, 0},
	[MANY_HOSTS] = {3, 0},
	[WRONG_COOKIES] = {3, 0},
	[FORGED_TEXTS] = {3, 0},
	[FORGED_OVERLOAD] = {5, 0},
	[SNIFFER] = {3, 0},
};

static uint32_t
hz(uint64_t bits, uint32_t payload)
{
	return (uint32_t)(bits / (8 * (14 + 20 + 8 + sizeof(struct tokd_req) + payload)));
}

struct plan
plan_of_attack(enum sim_attack attack)
{
	struct plan p = {.seed = 1,
		.attack = attack,
		.cost = COST,
		.clients = 1,
		.requests = 1000,
		.begin = 12 * SECOND, /* by then the attack has had its effect */
		.pause = 10 * MS,
		.text_most = 560,
		.streams = 4096,
		.rx_desc = 1024,
		.ring_bytes = 16 << 20,
		.side_bytes = 4 << 20,
		.names_bytes = 32 << 20,
		.stream_ms = 10000,
		.done_ms = 10000,
		.reader_ms = 1000,
		.network = {.delay = 10 * US, .jitter = US},
		.fault = {NEVER, NEVER, NEVER, NEVER, NEVER, NEVER},
		.slow_pause = 700 * MS};

	switch (attack) {
	case FORGED_FIRST:
		p.hostile_hz = hz(9 * MBIT / 10, 8);
		break;
	case FORGED_MORE:
		p.hostile_hz = hz(46 * MBIT / 10, 8);
		break;
	case FORGED_MOST:
	case MANY_HOSTS:
	case WRONG_COOKIES:
		p.hostile_hz = hz(10 * MBIT, 8);
		break;
	case FORGED_TEXTS:
		p.hostile_hz = hz(10 * MBIT, 100);
		break;
	case FORGED_OVERLOAD: /* twice what can be tokenized */
		p.cost.byte = 40;
		p.hostile_hz = 400000;
		p.begin = SECOND;
		p.requests = 200;
		break;
	case TRICKLE_STREAMS:
		p.hostile_hz = TRICKLED / TRICKLE_S;
		break;
	case TRICKLE_MORE:
		p.hostile_hz = hz(10 * MBIT, 1);
		break;
	case STORM:
		p.hostile_hz = hz(10 * MBIT, 0);
		break;
	case GREEDY: /* each keeps its limit of requests in progress, of 8 KB */
		/* They begin a ms apart, the good client after them: that is not measured. */
		p.clients = 65;
		p.requests = 1500;
		p.begin = 100 * MS;
		p.pause = 2 * MS;
		break;
	case GREEDY_BESIDE: /* two, and the good one behind the same address */
		p.clients = 3;
		p.requests = 50000;
		p.begin = SECOND;
		p.pause = 2 * MS;
		p.one_address = true;
		break;
	case OVERLOAD:
		p.begin = MS;
		p.text_most = OVERLOAD_BYTES;
		break;
	case READER_AGAIN:
	case TRICKLE_READER: /* two others fill the ring before the good client comes */
		p.clients = 3;
		p.ring_bytes = 64 << 10;
		p.readers = p.slow_readers = 1;
		break;
	case STOPPED_SINK:
		p.ring_bytes = 256 << 10;
		break;
	case REPEAT_5000:
	case REPEAT_20000:
		p.hostile_hz = attack == REPEAT_5000 ? 5000 : 20000;
		p.network.twice = 10000;
		p.network.twice_by = 2 * SECOND;
		break;
	case AMPLIFY:
		p.hostile_hz = 1000;
		break;
	case SNIFFER: /* of three packets, between which others may come */
		p.text_most = 4000;
		p.network.jitter = 10 * US;
		break;
	default:
		break;
	}
	return p;
}

static int
compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of the good client, which is the first; texts of the others, and each one's. */
struct row {
	uint64_t n, ok, refused, p50, p99, twice, again;
	uint64_t others, least, most;
	double mbit, bytes_out;
};

static struct row
row_of(struct world *w)
{
	struct checker *c = &w->check;
	struct row r = {.twice = c->twice, .again = c->again, .least = UINT64_MAX};
	uint64_t got[CLIENTS_MAX] = {0};

	for (uint32_t i = 0; i < c->n_asks; i++) {
		const struct ask *k = &c->ask[i];

		got[k->client] += k->r.status == TOKD_OK;
		if (k->client != 0)
			continue;
		r.n++;
		r.refused += k->r.status == TOKD_E_REFUSED;
		if (k->r.status == TOKD_OK)
			c->took[r.ok++] = k->ended - k->begun;
	}
	for (uint32_t i = 1; i < w->plan.clients; i++) {
		r.others += got[i];
		r.least = RTE_MIN(r.least, got[i]);
		r.most = RTE_MAX(r.most, got[i]);
	}
	qsort(c->took, r.ok, sizeof(*c->took), compare);
	r.p50 = r.ok > 0 ? c->took[r.ok / 2] : 0;
	r.p99 = r.ok > 0 ? c->took[r.ok * 99 / 100] : 0;
	r.mbit = (double)w->hostile_bytes * 8 * 1e3 / (double)w->now;
	if (w->hostile_bytes > 0)
		r.bytes_out = (double)w->a.bytes_to[1] / (double)w->hostile_bytes;
	return r;
}

static void
print_row(const char *name, const struct row *r)
{
	printf("| %s | %.2f | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " | %" PRIu64 " |", name,
		r->mbit, r->n, r->ok, r->refused, r->n - r->ok - r->refused);
	if (r->ok > 0)
		printf(" %.2f | %.2f |", (double)r->p50 / 1e6, (double)r->p99 / 1e6);
	else
		printf(" - | - |");
	printf(" %" PRIu64 " | %" PRIu64 " |", r->twice, r->again);
	if (r->mbit > 0)
		printf(" %.1f |\n", r->bytes_out);
	else
		printf(" - |\n");
}

static uint32_t
misses_of(const struct row *r, const struct row *rest, uint32_t p99_times)
{
	return (r->refused > 0 ? REFUSED : 0) | (r->n > r->ok + r->refused ? UNANSWERED : 0) |
	       (r->ok > 0 && r->p99 > p99_times * rest->p99 ? SLOW : 0) |
	       (r->twice > 0 ? TWICE : 0) | (r->bytes_out > AMPLIFICATION ? AMPLIFIES : 0) |
	       (2 * r->least < r->most ? STARVED : 0);
}

static uint32_t
compare_misses(const char *name, uint32_t misses, uint32_t expected)
{
	for (uint32_t i = 0; i < RTE_DIM(miss_name); i++) {
		if (((misses ^ expected) >> i & 1) != 0)
			printf("FAILED: %s: the limit of \"%s\" is %s\n", name, miss_name[i],
				misses >> i & 1 ? "not kept" : "kept now: take it from the list");
	}
	return misses != expected;
}

uint32_t
attacks_run(enum sim_attack which, bool check, bool trace)
{
	struct row rest = {0}, greedy = {0};
	uint32_t failed = 0;

	printf("| attack | Mbit/s | requests | ids | refused | unanswered | p50, ms | p99, ms | twice "
	       "| again | bytes out a byte in |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (uint32_t i = 0; i < OVERLOAD; i++) {
		struct plan plan = plan_of_attack(i);
		struct world *w;
		struct row r;

		if (which != SIM_ATTACKS && which != i && i != AT_REST)
			continue;
		plan.trace = trace && which == i;
		w = world_run(&plan);
		r = row_of(w);
		rest = i == AT_REST ? r : rest;
		greedy = i == GREEDY ? r : greedy;
		print_row(sim_attack_name[i], &r);
		if (w->check.faults > 0)
			printf("FAILED: %s\n", w->check.fault);
		failed += w->check.faults > 0;
		if (check)
			failed += compare_misses(sim_attack_name[i],
				misses_of(&r, &rest, limit[i].p99_times), limit[i].misses);
		fflush(stdout);
		world_free(w);
	}
	if (greedy.n > 0)
		printf("\nthe greedy clients: %" PRIu64 " texts, %" PRIu64 " to %" PRIu64 " each\n",
			greedy.others, greedy.least, greedy.most);
	return failed;
}
