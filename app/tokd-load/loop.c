/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start requests, and record their results. In an open loop (--rate), a schedule sets the intended
 * start of each request. A late request is sent at once, and its time is measured from the intended
 * start. If all places are in use, the request is not sent. In a closed loop, a request starts as
 * soon as a place is free.
 */
#include <sched.h>
#include <stdlib.h>

#include "judge.h"
#include "loop.h"

#define NS_A_MS UINT64_C(1000000)
#define LEAD_NS (10 * NS_A_MS) /* an open loop starts this late: its first request is on time */
#define BEGIN_BURST 32	       /* requests started before answers are polled */
/* An answer may be late because a tight loop starves the kernel's threads on the same CPU. */
#define SPIN_ALONE_NS NS_A_MS

struct loop {
	struct client *c;
	const struct client_mode *mode;
	const struct options *o;
	const struct slices *slices;
	struct rows *rows;
	uint64_t next; /* index of the next request */
	struct arrivals arrivals;
	uint64_t due_ns;   /* open loop: the next one's intended start */
	uint64_t moved_ns; /* when something was last sent or answered */
	struct job *free;  /* by `newer` */
	struct job *oldest, *newest;
};

/* ---- lists ---- */

static void
push_free(struct loop *l, struct job *job)
{
	job->slice = NULL;
	job->newer = l->free;
	l->free = job;
}

static void
append(struct loop *l, struct job *job)
{
	job->older = l->newest;
	job->newer = NULL;
	if (l->newest != NULL)
		l->newest->newer = job;
	else
		l->oldest = job;
	l->newest = job;
}

static void
take_out(struct loop *l, struct job *job)
{
	if (job->older != NULL)
		job->older->newer = job->newer;
	else
		l->oldest = job->newer;
	if (job->newer != NULL)
		job->newer->older = job->older;
	else
		l->newest = job->older;
}

/* ---- a request ---- */

static void
finish(struct loop *l, struct job *job, uint64_t now)
{
	const char *failure = job->failure;

	if (failure == NULL)
		failure = judge_ids(job->slice, job->ids, job->n_ids);
	l->rows->row[job->index] = (struct row){
		.intended_ns = job->intended_ns,
		.sent_ns = job->sent_ns,
		.first_ns = job->first_ns != 0 ? job->first_ns : now,
		.end_ns = now,
		.failure = failure,
		.retransmits = job->retransmits,
		.n_ids = job->n_ids,
		.reason = job->reason,
	};
	take_out(l, job);
	push_free(l, job);
}

static uint64_t
deadline(const struct loop *l, const struct job *job, uint64_t now)
{
	if (l->o->rate > 0)
		return job->intended_ns + NS_A_MS * l->o->limit_ms;
	/* libtokd-client has time limits of its own. */
	return l->o->mode == MODE_TOKD ? UINT64_MAX : now + NS_A_MS * l->o->timeout_ms;
}

static void
begin(struct loop *l, uint64_t intended, uint64_t now)
{
	uint64_t index = l->next++;
	struct job *job = l->free;
	const char *wrong;

	if (job == NULL) {
		l->rows->row[index] = (struct row){.intended_ns = intended,
			.first_ns = intended,
			.end_ns = intended,
			.failure = "not sent"};
		return;
	}
	l->free = job->newer;
	job->slice = &l->slices->slice[index % l->slices->count];
	job->index = index;
	job->intended_ns = intended;
	job->sent_ns = now;
	job->n_ids = job->retransmits = job->reason = 0;
	job->first_ns = 0;
	job->failure = NULL;
	job->deadline_ns = deadline(l, job, now);
	append(l, job);
	wrong = l->mode->send(l->c, job);
	if (wrong != NULL) {
		job->failure = wrong;
		job->sent_ns = 0;
		finish(l, job, now);
	}
}

/* Start the requests that are due. */
static void
begin_due(struct loop *l)
{
	uint64_t now = now_ns(), begun = 0;

	while (l->next < l->rows->count && begun < BEGIN_BURST) {
		if (l->o->rate > 0 ? l->due_ns > now : l->free == NULL)
			break;
		begin(l, l->o->rate > 0 ? l->due_ns : now, now);
		if (l->o->rate > 0)
			l->due_ns = l->rows->start_ns + arrivals_next(&l->arrivals);
		begun++;
		now = now_ns();
	}
	if (begun == 0)
		return;
	l->mode->flush(l->c);
	l->moved_ns = now;
}

/* A closed loop in mode plain sends the datagram again. Otherwise the request fails. */
static void
time_out(struct loop *l, struct job *job, uint64_t now)
{
	l->mode->give_up(l->c, job);
	if (l->o->rate == 0 && l->o->mode == MODE_PLAIN && job->retransmits + 1 < CLIENT_TRIES) {
		job->retransmits++;
		job->failure = l->mode->send(l->c, job);
		if (job->failure == NULL) {
			take_out(l, job);
			job->deadline_ns = deadline(l, job, now);
			append(l, job);
			return;
		}
	} else {
		job->failure = "no answer";
	}
	finish(l, job, now);
}

static void
turn(struct loop *l)
{
	struct job *done[CLIENT_BURST];
	uint32_t n;
	uint64_t now;

	begin_due(l);
	n = l->mode->poll(l->c, done);
	now = now_ns();
	for (uint32_t i = 0; i < n; i++)
		finish(l, done[i], now);
	while (l->oldest != NULL && l->oldest->deadline_ns <= now)
		time_out(l, l->oldest, now);
	if (n > 0)
		l->moved_ns = now;
	else if (l->oldest != NULL && now - l->moved_ns > SPIN_ALONE_NS)
		sched_yield();
}

void
loop_run(struct client *c, const struct options *o, const struct slices *slices, struct rows *rows)
{
	struct loop l = {.c = c, .mode = c->mode, .o = o, .slices = slices, .rows = rows};

	for (uint32_t i = c->n_jobs; i-- > 0;)
		push_free(&l, &c->job[i]);
	rows->start_ns = now_ns();
	if (o->rate > 0) {
		rows->start_ns += LEAD_NS;
		arrivals_init(&l.arrivals, o->arrivals, o->rate, o->seed);
		l.due_ns = rows->start_ns + arrivals_next(&l.arrivals);
	}
	while (l.next < rows->count || l.oldest != NULL)
		turn(&l);
}
