/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Order merges so that the parts of a token are made before the token. Most files list them in such
 * an order. In files of models from tiktoken, a merge may have a lower rank than the merge that
 * makes one of its parts, the trigger. Such a merge is applied as soon as its part exists, before
 * further applications of the trigger to the right. Here it is put directly after its trigger, as
 * if the trigger were applied everywhere first.
 *
 * Both orders give the same result unless a merge at one place takes a token that another place
 * needs. The merges after a trigger (a, b) are its group. Each joins the trigger's result, or a
 * token of the group, with a partner from outside. Later applications of the trigger lie to the
 * right, and each needs its a: so no partner on the right may be a. A partner between two places
 * could be taken from the left or from the right: so no token may be a partner on both sides. Lists
 * of merges that violate these conditions are rejected.
 *
 * There is one exception: a trigger (a, a) whose group makes only longer runs of a, such as runs of
 * blanks in SentencePiece's models. Here the group does take a's that the trigger would need later.
 * The encoders treat such families separately (repeats.h). Set-up only.
 */
#include <stdlib.h>
#include <string.h>

#include "model_make.h"

#define WAITING_MAX                                                                                \
	4096 /* most merges that wait for their parts at the same time; searched linearly */

struct order {
	struct tok_model *m;
	struct tok_model_merge *out;
	uint32_t n_out;
	uint32_t waiting[WAITING_MAX]; /* indices, ascending */
	uint32_t n_waiting;
	bool *made; /* by id */
	/* by id: number of the last group that has it as a token, or as a partner on that side */
	uint32_t *group, *on_left, *on_right;
};

static bool
parts_made(const struct order *o, const struct tok_model_merge *g)
{
	return o->made[g->left] && o->made[g->right];
}

static void
emit(struct order *o, const struct tok_model_merge *g)
{
	o->out[o->n_out++] = *g;
	o->made[g->result] = true;
}

/* Do both orders give the same result for a merge after its trigger? */
static bool
join_group(struct order *o, const struct tok_model_merge *g, const struct tok_model_merge *trigger,
	uint32_t number)
{
	const bool left_in = o->group[g->left] == number, right_in = o->group[g->right] == number;

	o->group[g->result] = number;
	if (left_in == right_in)
		return false;
	if (left_in) {
		o->on_right[g->right] = number;
		return g->right != trigger->left && o->on_left[g->right] != number;
	}
	o->on_left[g->left] = number;
	return o->on_right[g->left] != number;
}

/* The first waiting merge whose parts exist. NULL: none. */
static const struct tok_model_merge *
take_waiting(struct order *o)
{
	for (uint32_t i = 0; i < o->n_waiting; i++) {
		const struct tok_model_merge *g = &o->m->merge[o->waiting[i]];

		if (parts_made(o, g)) {
			o->n_waiting--;
			memmove(&o->waiting[i], &o->waiting[i + 1],
				(o->n_waiting - i) * sizeof(o->waiting[0]));
			return g;
		}
	}
	return NULL;
}

static bool
taken_by_several(const struct tok_model_merge *g, struct tok_error *err)
{
	return tok_fail(err,
		"the merge that makes id %u comes before those of its parts, and is taken by "
		"several: not implemented",
		g->result);
}

/* Number of units of a token of the family, or 0. */
static uint32_t
power_of(const struct tok_model_repeat *f, uint32_t id)
{
	if (id == f->unit)
		return 1;
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->id[i] == id)
			return f->power[i];
	}
	return 0;
}

static bool
is_repeat(const struct tok_model *m, uint32_t id)
{
	for (uint32_t i = 0; i < m->n_repeats; i++) {
		if (power_of(&m->repeat[i], id) > 1)
			return true;
	}
	return false;
}

/* Add a token of this many units, made by the model's merge `g`, to the family. */
static void
put_repeat(struct order *o, struct tok_model_repeat *f, const struct tok_model_merge *g,
	uint32_t *rank, uint32_t power)
{
	emit(o, g);
	rank[f->n] = g->rank;
	f->id[f->n] = g->result;
	f->power[f->n++] = (uint8_t)power;
}

/* Add the family of a trigger (a, a) and all merges that wait for it. */
static bool
emit_repeats(struct order *o, const struct tok_model_merge *trigger,
	const struct tok_model_merge *g, struct tok_error *err)
{
	struct tok_model_repeat *f = &o->m->repeat[o->m->n_repeats];
	uint32_t rank[TOK_REPEAT_UNITS];

	if (o->m->n_repeats == TOK_REPEATS_MAX)
		return tok_fail(err,
			"more than %u tokens are repeated by merges of which the longest come "
			"first: not implemented",
			TOK_REPEATS_MAX);
	*f = (struct tok_model_repeat){.unit = trigger->left};
	o->n_out--; /* the trigger is added again, as the first merge of the family */
	put_repeat(o, f, trigger, rank, 2);
	for (; g != NULL; g = take_waiting(o)) {
		const uint32_t left = power_of(f, g->left), right = power_of(f, g->right);

		if (left == 0 || right == 0 || left + right >= TOK_REPEAT_UNITS)
			return taken_by_several(g, err);
		put_repeat(o, f, g, rank, left + right);
	}
	for (uint32_t i = 0; i < f->n; i++) {
		for (uint32_t k = 0; k < f->n; k++)
			f->order[i] = (uint8_t)(f->order[i] + (rank[k] < rank[i]));
	}
	o->m->n_repeats++;
	return true;
}

/* Add all merges that wait for this merge, directly or indirectly. */
static bool
emit_waiting(struct order *o, const struct tok_model_merge *trigger, struct tok_error *err)
{
	const uint32_t number = o->n_out; /* merges so far: unique to this group, and not 0 */
	const struct tok_model_merge *g = take_waiting(o);

	if (g != NULL && trigger->left == trigger->right &&
		(g->left == trigger->result || g->left == trigger->left) &&
		(g->right == trigger->result || g->right == trigger->left))
		return emit_repeats(o, trigger, g, err);
	o->group[trigger->result] = number;
	for (; g != NULL; g = take_waiting(o)) {
		if (!join_group(o, g, trigger, number))
			return taken_by_several(g, err);
		emit(o, g);
	}
	return true;
}

static bool
put_in_order(struct order *o, struct tok_error *err)
{
	const struct tok_model *m = o->m;

	for (uint32_t id = 0; id < m->n_tokens; id++)
		o->made[id] = m->token[id].len == 1 && !m->token[id].outside;
	for (uint32_t i = 0; i < m->n_merges; i++) {
		const struct tok_model_merge *g = &m->merge[i];

		if (!parts_made(o, g)) {
			if (o->n_waiting == WAITING_MAX)
				return tok_fail(err,
					"more than %u merges come before those of their parts: not "
					"implemented",
					WAITING_MAX);
			o->waiting[o->n_waiting++] = i;
			continue;
		}
		emit(o, g);
		if (o->n_waiting > 0 && !emit_waiting(o, g, err))
			return false;
	}
	for (uint32_t i = 1; i < m->n_merges; i++) {
		const struct tok_model_merge *g = &m->merge[i];

		if (g->rank == g[-1].rank &&
			!(is_repeat(m, g->result) && is_repeat(m, g[-1].result)))
			return tok_fail(err,
				"ids %u and %u are merged with the same score: not implemented",
				g[-1].result, g->result);
	}
	if (o->n_waiting > 0)
		return tok_fail(err, "the merge that makes id %u has parts that no merge makes",
			m->merge[o->waiting[0]].result);
	memcpy(m->merge, o->out, m->n_merges * sizeof(*m->merge));
	return true;
}

bool
tok_model_order_merges(struct tok_model *m, struct tok_error *err)
{
	struct order o = {.m = m};
	uint32_t *marks = calloc(3 * (size_t)m->n_tokens, sizeof(*marks));
	bool ok;

	m->n_repeats = 0;
	o.out = malloc((m->n_merges + (size_t)1) * sizeof(*o.out));
	o.made = calloc(m->n_tokens, sizeof(*o.made));
	ok = (marks != NULL && o.out != NULL && o.made != NULL) ||
	     tok_fail(err, "out of memory for %u merges", m->n_merges);
	if (ok) {
		o.group = marks;
		o.on_left = marks + m->n_tokens;
		o.on_right = marks + 2 * (size_t)m->n_tokens;
		ok = put_in_order(&o, err);
	}
	free(marks);
	free(o.out);
	free(o.made);
	return ok;
}
