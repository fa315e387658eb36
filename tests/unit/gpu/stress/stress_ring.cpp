/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real consumer, as threads of the device `cpu`, under producers and an agent made for it: what
 * gpu_ring.h promises, on very many slots of ids, records and texts. Built twice, the consumer's
 * source with it:
 *
 *   with ThreadSanitizer   nothing is injected; payloads and rows are plain memory. Producers and
 *                          agent are threads of their own.
 *   with -DTOKG_INJECT     words of the ring are relaxed atomics. One thread is producers, NIC,
 *                          agent and subscriber, interleaved at random, and injects failures:
 *                          writes land in pieces of 8 bytes, late, in any order; producers die with
 *                          writes in flight; connections break; the consumer's threads end at any
 *                          access to the ring.
 *
 * --late: in order, and after each restart a worker of the incarnation before goes on.
 *
 * Such a run proves the protocol's logic, not a GPU's memory order or speed.
 *
 * --heads: the consumer looks at the next slot of each producer, as tokd-gpu --heads; else at all.
 *
 * One of the producers comes to its slots' last tickets a third of the way, and stops; the others
 * go on.
 *
 * stress_ring [--in-order | --late] [--no-check] [--heads]. TOKG_STRESS_SLOTS: how many,
 * TOKG_STRESS_SEED.
 * --no-check: without the check word the same must be found to go wrong, and that is then the test.
 */
#include <string>
#include <thread>
#include <unistd.h>

#include "stress.h"

namespace stress
{

std::atomic<bool> over;
std::atomic<uint64_t> n_wrong, n_posted, n_misled;

void
wrong(const char *format, ...)
{
	va_list ap;

	if (n_wrong++ < 10) {
		printf("# WRONG: ");
		va_start(ap, format);
		vprintf(format, ap);
		va_end(ap);
		printf("\n");
	}
}

void
bail_out(const struct tokg_error &err)
{
	printf("Bail out! %s\n", err.text);
	exit(1);
}

void
set_up(world *w)
{
	struct tokg_device_config c = {};
	struct tokg_error err;

	c.geometry.producers = PRODUCERS;
	c.geometry.slots = SLOTS;
	c.geometry.slot_bytes = TOKG_SLOT_BYTES_MIN;
	c.geometry.flags = w->o.check ? TOKG_CHECKED : 0;
	c.geometry.kind = c.tables.kind = TOKG_KIND_WORD;
	c.geometry.dtype = c.tables.dtype = TOKG_F32;
	c.geometry.dim = c.tables.dim = DIM;
	c.geometry.n_ids = c.tables.n_ids = IDS;
	c.geometry.out_bytes = OUT_BYTES;
	w->table.resize((size_t)IDS * DIM);
	for (uint32_t i = 0; i < IDS * DIM; i++)
		w->table[i] = element(i / DIM, i % DIM);
	c.tables.word = w->table.data();
	c.text_vocab = request_text_vocab();
	c.text_flags = TOK_ADDED_AS_TEXT;
	c.ring_epoch = 1;
	c.workers = WORKERS;
	c.heads = w->o.heads;
	c.first_cpu = -1;
	if (!tokg_geometry_fill(&c.geometry, &err) || !(w->d = tokg_device_cpu(&c, &err)))
		bail_out(err);
	w->g = w->d->geometry;
	const size_t most = (w->o.slots + 64) * 4 * PRODUCERS;

	w->delivered.resize(most);
	w->ended.resize(most);
	w->dead.resize(most);
	w->a.w = w;
	w->a.r.state = w->o.seed * 77 + 5;
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		/* Tickets near 1, near 2^32, up to the last. */
		const uint64_t uses = w->o.slots / (3 * PRODUCERS * SLOTS);
		const uint64_t first[] = {0, (1ull << 32) - 20, TOKG_TICKET_MAX - uses};

		w->p[i].first = first[i % 3];
		for (uint32_t s = 0; s < SLOTS; s++) {
			w->a.slot[i][s].passed = first[i % 3];
			w->d->ops->write_u64(w->d, tokg_done_at(&w->g, i, s),
				TOKG_DONE(first[i % 3], first[i % 3] ? TOKG_OK : 0));
			w->d->ops->write_u64(w->d,
				tokg_hdr_at(&w->g, i, s) + offsetof(struct tokg_hdr, ticket),
				first[i % 3]);
		}
		w->d->ops->write_u64(
			w->d, tokg_back_at(&w->g, i) + offsetof(struct tokg_back, epoch), 1);
		w->p[i].w = w;
		w->p[i].producer = i;
		w->p[i].next_request = i;
		w->p[i].r.state = w->o.seed * 1000 + i + 1;
		w->p[i].begin();
	}
	done_twice(w);
	if (w->d->ops->start(w->d, 1, &err) < 0)
		bail_out(err);
}

bool
all_idle(world *w)
{
	for (producer &p : w->p)
		if (p.state != LIVES || p.breaking > 0 || p.strict_waits || !p.idle())
			return false;
	return true;
}

/* Where it stands still. */
void
stuck(world *w)
{
	wrong("nothing has moved for 60 s");
	printf("# incarnation %u, killing %u, outbox %" PRIu64 " of %" PRIu64 "\n",
		w->d->incarnation, killing.load(), w->a.taken, w->d->outbox->reserved);
	for (const producer &p : w->p) {
		printf("# producer %u: state %u, epoch %u, posted %" PRIu64 ", released %" PRIu64
		       " of %" PRIu64 ", %zu pieces fly\n",
			p.producer, p.state, p.epoch, p.posted, p.released, w->a.turn[p.producer],
			p.wire.size());
		for (uint32_t s = 0; s < SLOTS; s++)
			printf("# slot %u: out %d, ticket %" PRIx64 ", header %" PRIx64
			       ", claim %" PRIx64 ", done %" PRIx64 "\n",
				s, p.slot[s].out, p.slot[s].ticket,
				w->load(tokg_hdr_at(&w->g, p.producer, s) +
					offsetof(struct tokg_hdr, ticket)),
				w->load(tokg_claim_at(&w->g, p.producer, s)),
				w->load(tokg_done_at(&w->g, p.producer, s)));
	}
}

/* Everything interleaved, in this thread. */
void
run_injected(world *w)
{
	random_numbers r = {w->o.seed * 31 + 7};
	uint64_t wait[PRODUCERS] = {}, last = n_posted, since = tokg_now();
	uint64_t next_restart = 500;

	while ((!all_idle(w) || killing != 0) && (w->o.check || !w->o.any_order || n_misled == 0)) {
		const uint32_t i = r.below(PRODUCERS);
		producer &p = w->p[i];

		p.step();
		w->a.step();
		if (p.state != LIVES) {
			bury(w, i, &wait[i]);
		} else if (r.below(4096) == 0) {
			kill_producer(w, i);
			wait[i] = r.below(200);
		} else if (r.below(4096) == 0 && p.breaking == 0) {
			p.breaking = 1 + r.below(100);
			w->n_breaks++;
		}
		if ((killing != 0 || n_posted >= next_restart) && consumer_ends(w, &r)) {
			restart_consumer(w);
			next_restart = n_posted + 100 + r.below(500);
		}
		/* On few cores the consumer must have its turn. */
		if (r.below(8) == 0)
			sched_yield();
		if (n_posted != last) {
			last = n_posted;
			since = tokg_now();
		} else if (tokg_now() - since > 60000000000ull) {
			stuck(w);
			break;
		}
	}
}

/* Producers and agent as threads. */
void
run_threads(world *w)
{
	std::vector<std::thread> threads;

	for (producer &p : w->p)
		threads.emplace_back([&p] {
			const uint64_t until = tokg_now() + 300000000000ull;

			while (!p.idle() && tokg_now() < until) {
				p.step();
				sched_yield();
			}
		});
	std::thread agent([w] {
		while (!over) {
			w->a.step();
			sched_yield();
		}
	});

	for (std::thread &t : threads)
		t.join();
	over = true;
	agent.join();
}

/* Of a producer that has stopped: it had the last ticket of a slot, and that was ended, as were the
 * others. */
void
judge_last(world *w, const producer &p)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < SLOTS; s++) {
		const uint64_t done = w->load(tokg_done_at(&w->g, p.producer, s));

		n += done >> 8 == TOKG_TICKET_MAX;
		if (done >> 8 != p.slot[s].ticket || done >> 8 <= p.first)
			wrong("producer %u slot %u: done %" PRIx64 ", its last ticket %" PRIx64,
				p.producer, s, done, p.slot[s].ticket);
	}
	printf("# producer %u: %u slots of %u had their last ticket\n", p.producer, n, SLOTS);
	if (n == 0)
		wrong("no slot of producer %u had its last ticket", p.producer);
}

/* Nothing is out: all that is told of must have come to its end, and once. */
void
judge(world *w)
{
	uint64_t requests = 0, failed = 0, of_the_dead = 0;

	while (w->a.take())
		;
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		for (uint64_t q = i; q < w->p[i].next_request; q += PRODUCERS) {
			requests++;
			of_the_dead += w->dead[q];
			failed += w->ended[q] != TOKG_OK && !w->dead[q];
			if (w->ended[q] == 0 && !w->dead[q])
				wrong("request %" PRIu64 " is lost", q);
			if (w->ended[q] == TOKG_OK && w->delivered[q] != 1)
				wrong("request %" PRIu64 " is done and was delivered %u times", q,
					w->delivered[q]);
			if (w->ended[q] > TOKG_OK && w->delivered[q] != 0)
				wrong("request %" PRIu64 " failed and was delivered", q);
		}
	}
	uint64_t again = 0, left = 0;

	for (const producer &p : w->p) {
		again += p.n_again;
		left += p.n_left;
	}
	judge_last(w, w->p[2]);
	if (!w->o.late && !done_equal(w))
		wrong("the two copies of the done words differ");
	printf("# %" PRIu64 " slots, %" PRIu64 " requests, %" PRIu64 " slots posted again, %" PRIu64
	       " requests given up after STRICT, %" PRIu64 " of the dead\n",
		n_posted.load(), requests, again, failed, of_the_dead);
	printf("# %" PRIu64 " texts encoded, %" PRIu64 " left to the CPU and posted as ids\n",
		w->a.n_texts, left);
	if (w->a.n_texts == 0 || left == 0)
		wrong("there were no texts of a kind");
	printf("# %" PRIu64 " entries: OK %" PRIu64 ", BADSUM %" PRIu64 ", STALE %" PRIu64
	       ", BADHDR %" PRIu64 "; %" PRIu64 " marked as done again, %" PRIu64
	       " of them delivered before, %" PRIu64 " never written\n",
		w->a.n_entries, w->a.status[1], w->a.status[2], w->a.status[3], w->a.status[4],
		w->a.n_redo, w->a.n_dropped, w->a.n_holes);
	printf("# %" PRIu64 " producers died, %" PRIu64 " connections broke, %" PRIu64
	       " restarts of the consumer; wrong: %" PRIu64 "\n",
		w->n_deaths, w->n_breaks, w->n_restarts, n_wrong.load());
	if (w->o.late) {
		printf("# %" PRIu64 " entries of late workers\n", w->a.n_late);
		if (w->a.n_late == 0)
			wrong("no worker was late");
	}
}

} // namespace stress

int
main(int argc, char **argv)
{
	static stress::world w;
	const char *const slots = getenv("TOKG_STRESS_SLOTS"), *const seed =
								       getenv("TOKG_STRESS_SEED");
	struct tokg_error err;
	bool right;

	for (int i = 1; i < argc; i++) {
		const std::string arg = argv[i];

		if (arg == "--in-order")
			w.o.any_order = false;
		else if (arg == "--late")
			w.o.late = !(w.o.any_order = false);
		else if (arg == "--no-check")
			w.o.check = false;
		else if (arg == "--heads")
			w.o.heads = true;
	}
	w.o.slots = slots != NULL   ? strtoull(slots, NULL, 10)
		    : !INJECT	    ? 5000
		    : w.o.any_order ? 30000
		    : w.o.late	    ? 10000
				    : 20000;
	if (seed != NULL)
		w.o.seed = strtoull(seed, NULL, 10);
	printf("1..1\n");
	stress::set_up(&w);
	if (INJECT)
		stress::run_injected(&w);
	else
		stress::run_threads(&w);
	const bool must_fail = !w.o.check && w.o.any_order;

	if (must_fail) {
		printf("# without the check word: wrong after %" PRIu64 " slots\n",
			stress::n_posted.load());
	} else {
		if (w.d->ops->stop(w.d, TOKG_STOP_NOW, 60000, &err) < 0)
			stress::wrong("%s", err.text);
		stress::late_ends();
		stress::judge(&w);
	}
	right = must_fail ? stress::n_misled > 0 : stress::n_wrong == 0;
	printf("%s 1 - %s%s%s\n", right ? "ok" : "not ok",
		must_fail	? "any order without the check word is found to go wrong"
		: w.o.any_order ? "any order"
		: w.o.late	? "late workers"
				: "in order",
		w.o.heads ? ", heads" : ", all slots", INJECT ? ", injected" : ", threads");
	fflush(stdout);
	_exit(right ? 0 : 1);
}
