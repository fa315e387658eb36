/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: worlds of seeds, one after the other; or the attacks. */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../fuzz/eal.h"
#include "sim.h"
#include "vocabulary.h"

static char folder[] = "/tmp/tokd-simulation-XXXXXX";
static char path[64];
const char *sim_socket = path;

static const char usage[] =
	"usage: simulation [--seeds A-B] [--trace] [--break RULE]\n"
	"       simulation {--attack NAME | --attacks | --overload} [--check] [--trace]\n"
	"       simulation --bottleneck [--seeds A-B]\n"
	"  --seeds A-B   worlds of these seeds, in order, until one fails [1-100]; of the table [1-1]\n"
	"  --trace       print each event\n"
	"  --break RULE  crc, once, cursor, feed, timer, skip or id: the checker must notice\n"
	"  --attack NAME one attack: rest, forged-0.9, ...\n"
	"  --attacks     a table of all attacks\n"
	"  --overload    a table of loads up to three times the capacity\n"
	"  --bottleneck  a table of links that take less than clients send\n"
	"  --check       exit 1 if a limit is not kept\n";

struct totals {
	uint64_t worlds, asks, ok, refused, timeout, ids_crc, gone, complete, again, read, events;
	uint64_t answers[TOKD_MADE_CANCELLED + 1], cut, tokens, tokens_in_ring;
	uint64_t fault[SIM_FAULTS], counter[C_COUNT];
};

/* What shows that queues, tables and stores were full, and that frames were noticed as wrong. */
static const enum tokd_counter shown[] = {C_RX_DUPLICATE, C_RX_REORDERED, C_FEED_DEFERRED,
	C_REPLY_AGAIN, C_SIDE_COPIED, C_SIDE_FULL, C_DROP_IP_CKSUM, C_DROP_UDP_CKSUM,
	C_DROP_RING_FULL, C_DROP_UNKNOWN, C_DROP_LANES, C_SINK_AGAIN, C_SINK_BADSUM,
	C_SINK_RECONNECTS};

static void
add(struct totals *t, const struct world *w)
{
	const struct checker *c = &w->check;

	t->worlds++;
	t->asks += c->n_asks;
	t->ok += c->ok;
	for (uint32_t i = 0; i < TOKD_R_MAX; i++)
		t->refused += c->refused[i];
	t->timeout += c->timeout;
	t->ids_crc += c->ids_crc;
	t->gone += c->gone;
	t->complete += c->complete;
	t->again += c->again;
	t->read += c->read;
	for (uint32_t i = 0; i <= TOKD_MADE_CANCELLED; i++)
		t->answers[i] += c->answers[i];
	t->cut += c->cut;
	t->tokens += c->tokens;
	t->tokens_in_ring += c->tokens_in_ring;
	t->events += w->n_events;
	for (uint32_t i = 0; i < SIM_FAULTS; i++)
		t->fault[i] += w->count[i];
	for (uint32_t i = 0; i < C_COUNT; i++)
		t->counter[i] += w->a.sum[i] + w->a.w.counter[i];
}

static void
print_totals(const struct totals *t)
{
	printf("%" PRIu64 " worlds, %" PRIu64 " events\nfaults:", t->worlds, t->events);
	for (uint32_t i = 0; i < SIM_FAULTS; i++)
		printf(" %s %" PRIu64, sim_fault_name[i], t->fault[i]);
	printf("\ncounters:");
	for (uint32_t i = 0; i < RTE_DIM(shown); i++)
		printf(" %s %" PRIu64, tokd_counter_info[shown[i]].name, t->counter[shown[i]]);
	printf("\n");
	printf("%" PRIu64 " requests: %" PRIu64 " with their ids, %" PRIu64 " refused, %" PRIu64
	       " timed out, %" PRIu64 " with a wrong CRC of ids, %" PRIu64
	       " of crashed clients; 0 lost, 0 wrong, 0 twice\n",
		t->asks, t->ok, t->refused, t->timeout, t->ids_crc, t->gone);
	printf("%" PRIu64 " texts complete in the ring, %" PRIu64
	       " of them again under a new name; %" PRIu64 " records read by readers\n",
		t->complete, t->again, t->read);
	printf("%" PRIu64 " answers complete in the ring: %" PRIu64 " stopped, %" PRIu64
	       " of full length, %" PRIu64 " cancelled; %" PRIu64
	       " requests had none or a part; %" PRIu64 " ids made in the ring, %" PRIu64
	       " at clients\n",
		t->answers[TOKD_MADE_STOP] + t->answers[TOKD_MADE_LENGTH] +
			t->answers[TOKD_MADE_CANCELLED],
		t->answers[TOKD_MADE_STOP], t->answers[TOKD_MADE_LENGTH],
		t->answers[TOKD_MADE_CANCELLED], t->cut, t->tokens_in_ring, t->tokens);
}

static void
print_plan(const struct plan *p)
{
	const struct network_plan *n = &p->network;

	printf("seed %" PRIu64
	       ": %u clients, %u requests each, texts to %u bytes; %u streams, ring %" PRIu64
	       ", side store %" PRIu64 "; stream timeout %u ms, reader %u ms\n",
		p->seed, p->clients, p->requests, p->text_most, p->streams, p->ring_bytes,
		p->side_bytes, p->stream_ms, p->reader_ms);
	printf("  of 10,000: %u lost, %u twice (by %" PRIu64 " us), %u late (by %" PRIu64
	       " us), %u flipped, %u spoilt, %u TX refused; delay %" PRIu64 " + %" PRIu64 " us\n",
		n->lose, n->twice, n->twice_by / US, n->late, n->late_by / US, n->flip, n->spoil,
		p->tx_refused, n->delay / US, n->jitter / US);
	printf("  faults:%s%s%s%s%s%s%s; %u readers, %u slow; %u hostile frames/s\n",
		p->fault.partition != NEVER ? " partition" : "",
		p->fault.crash != NEVER ? " crash" : "",
		p->fault.client_crash != NEVER ? " client-crash" : "",
		p->fault.stall != NEVER ? " stall" : "",
		p->fault.clock_jump != NEVER ? " clock-jump" : "", p->six ? " (IPv6)" : "",
		p->one_address ? " (one address)" : "", p->readers, p->slow_readers, p->hostile_hz);
	if (p->lanes > 0)
		printf("  answers: to %u lanes, to %u ids, stop id %u%s%s%s, %u bad ids of 10,000\n",
			p->lanes, p->limit_most, p->stop_id, p->shed ? ", sheds" : "",
			p->fault.generator != NEVER ? ", generator faults" : "",
			p->skip_special ? ", specials skipped" : "", p->bad_ids);
}

/* 0: it held. */
static int
run_seed(const struct plan *plan, struct totals *t)
{
	struct world *w = world_run(plan);
	int rc = w->check.faults > 0;

	add(t, w);
	if (plan->trace || rc != 0)
		print_plan(plan);
	if (plan->trace || rc != 0)
		printf("seed %" PRIu64 ": %" PRIu64 " events, hash %016" PRIx64 "\n", plan->seed,
			w->n_events, w->trace_hash);
	if (rc != 0)
		printf("seed %" PRIu64 " FAILED at %" PRIu64 " us: %s\nagain: simulation --seeds "
		       "%" PRIu64 "-%" PRIu64 " --trace%s%s\n",
			plan->seed, w->now / US, w->check.fault, plan->seed, plan->seed,
			plan->broken != RULES_KEPT ? " --break " : "",
			plan->broken != RULES_KEPT ? sim_rule_name[plan->broken] : "");
	world_free(w);
	return rc;
}

static uint32_t
index_of(const char *name, const char *const *names, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (names[i] != NULL && strcmp(names[i], name) == 0)
			return i;
	}
	fprintf(stderr, "simulation: %s: unknown\n%s", name, usage);
	exit(2);
}

static void
set_up(void)
{
	eal_start();
	sim_vocab = vocabulary_make_special(VOCABULARY_MERGES);
	if (sim_vocab == NULL || mkdtemp(folder) == NULL)
		exit(1);
	snprintf(path, sizeof(path), "%s/socket", folder);
}

int
main(int argc, char **argv)
{
	static const struct option options[] = {{"seeds", required_argument, NULL, 's'},
		{"trace", no_argument, NULL, 't'}, {"break", required_argument, NULL, 'b'},
		{"bottleneck", no_argument, NULL, 'B'}, {"attack", required_argument, NULL, 'a'},
		{"attacks", no_argument, NULL, 'A'}, {"overload", no_argument, NULL, 'o'},
		{"check", no_argument, NULL, 'c'}, {0}};
	uint64_t first = 1, last = NEVER;
	uint32_t broken = RULES_KEPT, attack = SIM_ATTACKS;
	bool trace = false, attacks = false, overload = false, bottleneck = false, check = false;
	struct totals t = {0};
	int option, rc = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 's' && sscanf(optarg, "%" SCNu64 "-%" SCNu64, &first, &last) == 2 &&
			first <= last) {
		} else if (option == 't') {
			trace = true;
		} else if (option == 'b') {
			broken = index_of(optarg, sim_rule_name, SIM_RULES);
		} else if (option == 'a') {
			attack = index_of(optarg, sim_attack_name, SIM_ATTACKS);
		} else if (option == 'A') {
			attacks = true;
		} else if (option == 'o') {
			overload = true;
		} else if (option == 'B') {
			bottleneck = true;
		} else if (option == 'c') {
			check = true;
		} else {
			fputs(usage, stderr);
			return 2;
		}
	}
	if (last == NEVER)
		last = bottleneck ? 1 : 100;
	set_up();
	if (attacks || attack != SIM_ATTACKS) {
		rc = attacks_run(attack, check, trace) > 0;
	} else if (overload) {
		rc = overload_run() > 0 && check;
	} else if (bottleneck) {
		rc = bottleneck_run(first, last) > 0;
	} else {
		for (uint64_t seed = first; seed <= last && rc == 0; seed++) {
			struct plan plan = plan_of_seed(seed);

			plan.trace = trace;
			plan.broken = broken;
			rc = run_seed(&plan, &t);
		}
		if (rc == 0)
			print_totals(&t);
	}
	unlink(path);
	rmdir(folder);
	return rc;
}
