/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at random: texts, turns, deliveries, stale reads, failing slots, connections that
 * break anywhere, agents that die. The fixture asserts that no id is lost, wrong, or embedded twice
 * within an epoch. TOKG_SLOTS: how many slots (100000 unless said); TOKG_SEED.
 */
#include <stdlib.h>
#include <string.h>

#include <mix.h>
#include "fixture.h"

#define TEXTS_OPEN 6

struct kind_of_run {
	uint32_t slots;
	uint64_t ring_bytes, out_bytes, tickets;
	uint32_t longest;  /* ids of a record */
	bool faults, dies; /* connections break; agents die */
	uint32_t bad;	   /* of 1000 slots fail */
};

static uint64_t seed;

static uint32_t
below(uint32_t n)
{
	return (uint32_t)(dice_throw(&seed) % n);
}

static uint32_t
a_text(struct world *w)
{
	static const uint32_t sizes[] = {0, 1, 3, 20, 250, 256, 257, 600, 3000};
	const uint32_t vocab = below(200) == 0 ? NO_VOCAB : vocabs[below(20) == 0];

	return new_text(w, vocab, sizes[below(sizeof(sizes) / sizeof(sizes[0]))]);
}

static void
write_some(struct world *w, uint32_t *open, uint32_t longest)
{
	if (below(3) == 0)
		publish_back(w);
	if (below(2) == 0 && w->n_came < BACK_MOST / 2)
		publish_bytes(w, 1 + below(below(3) == 0 ? longest : 60));
	for (uint32_t i = below(6); i > 0; i--) {
		uint32_t *serial = &open[below(TEXTS_OPEN)];
		struct text *t = &w->text[*serial];
		uint32_t count = 1 + below(below(3) == 0 ? longest : 24), flags = 0;

		if (count >= t->total - t->published) {
			count = t->total - t->published;
			flags = TOKD_REC_LAST;
		} else if (t->published > 0 && below(50) == 0) {
			count = 0;
			flags = TOKD_REC_ABORT;
		}
		if (publish(w, *serial, count, flags) && flags != 0)
			*serial = a_text(w);
		if (below(4) == 0)
			publish_decoded(w, below(below(3) == 0 ? 4 * longest : 100));
	}
}

static enum tokg_status
a_status(const struct world *w, uint32_t slot, uint32_t bad)
{
	static const enum tokg_status wrong[] = {
		TOKG_BADSUM, TOKG_BADSUM, TOKG_BADSUM, TOKG_BADID, TOKG_BADPOS, TOKG_STALE};
	const struct tokg_hdr *h = &w->hdr[slot];
	enum tokg_status status;

	if (below(1000) >= bad)
		return (h->flags & TOKG_TEXT) && is_for_cpu(h->request) ? TOKG_CPU : TOKG_OK;
	status = wrong[below(sizeof(wrong) / sizeof(wrong[0]))];
	/* Of one that failed in a batch it would be the second failure, and the consumer's mark for
	 * that is missing: STRICT is for check words. */
	if (saw_another(status) && !(h->flags & (TOKG_BATCH | TOKG_STRICT)) &&
		w->text[h->request].batch_failed)
		return TOKG_OK;
	return status;
}

static void
consume_some(struct world *w, uint32_t bad)
{
	for (uint32_t i = below(8); i > 0; i--) {
		const uint32_t slot = below(w->g.slots);

		if (is_pending(w, slot))
			consume(w, slot, a_status(w, slot, bad));
	}
	if (w->n_flushed > 0)
		deliver(w, below(4));
	if (below(3) == 0)
		deliver_payload(w);
}

static void
recover(struct world *w, bool may_die)
{
	struct tokg_error err;
	int rc = 0;

	w->agent_is_gone = may_die && below(4) == 0;
	w->reconnects_to_wait = below(3);
	/* What was on its way may still arrive before the old queue pair is destroyed. */
	if (below(2) == 0)
		deliver(w, below(QUEUE_MOST));
	if (below(4) == 0)
		deliver_payload(w);
	for (uint32_t i = 0; rc == 0 && i < 10; i++) {
		rc = tokg_sink_recover(w->sink, &err);
		consume_some(w, 0);
	}
	if (!w->agent_is_gone) {
		assert_int_equal(rc, 1);
		return;
	}
	assert_true(rc < 0);
	assert_true(tokg_sink_recover(w->sink, &err) < 0);
	if (below(2) == 0)
		shed(w);
	world_renew(w, below(2) == 0 ? 0 : below(1u << 30));
	if (!tokg_sink_attach(w->sink, &w->t, &err))
		fail_msg("%s", err.text);
}

static void
run(const struct kind_of_run *k)
{
	struct world *w = world_make(k->slots, k->ring_bytes, k->out_bytes, k->tickets);
	const char *slots = getenv("TOKG_SLOTS");
	const uint64_t most = (slots != NULL ? strtoull(slots, NULL, 10) : 100000) / 4;
	uint32_t open[TEXTS_OPEN], breaks = 0;
	const uint64_t *c = tokg_sink_counters(w->sink);

	for (uint32_t i = 0; i < TEXTS_OPEN; i++)
		open[i] = a_text(w);
	while (w->n_slots_done < most) {
		w->now += below(40);
		w->back.heartbeat++;
		w->read_is_old = below(2) == 0;
		write_some(w, open, k->longest);
		consume_some(w, k->bad);
		release(w, below(5));
		if (k->faults && w->fault == NO_FAULT && below(150) == 0)
			w->fault = (enum fault)(1 + below(FAIL_READ));
		if (!turn(w, below(4) == 0)) {
			breaks++;
			recover(w, k->dies);
		}
	}
	w->fault = NO_FAULT;
	if (w->is_broken) {
		assert_false(turn(w, true));
		recover(w, false);
	}
	settle_all(w);
	print_message("# %u breaks, %lu slots, %lu batches, %lu texts, %lu back, %lu again, "
		      "%lu failed, %lu reads\n",
		breaks, c[TOKG_C_SLOTS], c[TOKG_C_BATCHES], c[TOKG_C_TEXTS], c[TOKG_C_TEXTS_CPU],
		c[TOKG_C_AGAIN], c[TOKG_C_FAILED], c[TOKG_C_READS]);
	assert_int_equal(c[TOKG_C_FAILED], w->n_failed);
	assert_int_equal(c[TOKG_C_DONE], w->n_done_calls);
	assert_true(!k->faults || breaks > most / 1000);
	world_free(w);
}

TEST(slots_that_fail_lose_and_double_nothing)
{
	run(&(struct kind_of_run){8, 1u << 16, 1u << 19, 0, 1200, .bad = 100});
}

TEST(connections_that_break_lose_and_double_nothing)
{
	run(&(struct kind_of_run){
		8, 1u << 16, 1u << 19, (1ull << 32) - 500, 1200, .faults = true, .bad = 20});
}

TEST(agents_that_die_lose_nothing)
{
	run(&(struct kind_of_run){
		SLOTS_MOST, 1u << 18, 1u << 20, 0, 1200, .faults = true, .dies = true, .bad = 50});
}

TEST(the_smallest_rings_do_as_well)
{
	run(&(struct kind_of_run){
		2, 1u << 12, 1u << 15, 0, 400, .faults = true, .dies = true, .bad = 50});
}

int
main(void)
{
	const char *given = getenv("TOKG_SEED");

	seed = given != NULL ? strtoull(given, NULL, 10) : 88172645463325252ull;
	return tests_run();
}
