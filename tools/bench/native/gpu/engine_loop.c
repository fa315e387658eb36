/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine_loop.h"

#include <stdlib.h>

#include "engine_area.h"
#include "engine_rule.h"
#include "post.h"

struct text {
	uint32_t last, before, prompt, made, stop; /* stop: 0: is not, or was, ended here */
};

struct engine_loop {
	struct host_engine *own;
	uint32_t n_ids, most, n; /* most: lanes; n: open texts */
	uint64_t *lane;
	uint32_t *next, *ids;
	uint8_t *taken;
	struct text *text;
	struct tokd_lane_look *look;
};

struct engine_loop *
engine_loop_open(struct host_engine *own, uint32_t lanes, uint32_t n_ids, uint32_t ids_most)
{
	struct engine_loop *const l = calloc(1, sizeof(*l));

	if (l == NULL)
		post_fail("no memory for an engine");
	l->own = own;
	l->n_ids = n_ids;
	l->most = lanes;
	l->lane = calloc(lanes, sizeof(*l->lane));
	l->next = calloc(lanes, sizeof(*l->next));
	l->taken = calloc(lanes, sizeof(*l->taken));
	l->text = calloc(lanes, sizeof(*l->text));
	l->look = calloc(lanes, sizeof(*l->look));
	l->ids = calloc(ids_most, sizeof(*l->ids));
	if (!l->lane || !l->next || !l->taken || !l->text || !l->look || !l->ids)
		post_fail("no memory for an engine");
	return l;
}

bool
engine_loop_prompt_of(
	const struct tokg_geometry *g, const struct tokg_out_entry *e, struct engine_prompt *p)
{
	const struct tokg_engine_area a = tokg_engine_area_plan(g);

	if (e->status != TOKG_OK || !(e->flags & TOKG_GENERATE))
		return false;
	p->lane = TOKD_LANE(e->lane, e->use);
	p->at = tokg_engine_ids_at(
		&a, e->producer * g->out_bytes + (e->out_off & (g->out_bytes - 1)));
	p->tokens = e->tokens;
	return true;
}

void
engine_loop_take(struct engine_loop *l, const struct engine_prompt *p)
{
	uint32_t i = 0;

	if (p->tokens == 0)
		post_fail("a prompt without ids");
	if (!l->own->ops->prompt(l->own, p->at, p->tokens, l->ids))
		post_fail("a prompt cannot be read: %s", l->own->why);
	/* What the lane had before is over, whether it was noticed or not. */
	while (i < l->n && TOKD_LANE_INDEX(l->lane[i]) != TOKD_LANE_INDEX(p->lane))
		i++;
	if (i == l->most)
		post_fail("prompts of more than %u lanes", l->most);
	l->lane[i] = p->lane;
	l->text[i] =
		(struct text){.last = l->ids[p->tokens - 1], .prompt = p->tokens, .stop = p->stop};
	l->n += i == l->n;
}

/* A text that was ended stays until a look says so: until then its lane is open and takes no id. */
static void
end_texts(struct engine_loop *l)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->text[i].stop == 0 || l->text[i].made < l->text[i].stop)
			continue;
		if (!l->own->ops->end(l->own, l->lane[i], TOKD_LANE_STOP))
			post_fail("a lane cannot be ended: %s", l->own->why);
		l->text[i].stop = 0;
	}
}

void
engine_loop_pass(struct engine_loop *l)
{
	uint32_t kept = 0, all = 0;

	if (l->n == 0)
		return;
	end_texts(l);
	for (uint32_t i = 0; i < l->n; i++)
		l->next[i] = tokg_engine_next(
			l->text[i].last, l->text[i].before, l->text[i].prompt, l->n_ids);
	if (!l->own->ops->put(l->own, l->lane, l->next, l->n, l->taken))
		post_fail("ids cannot be put: %s", l->own->why);
	for (uint32_t i = 0; i < l->n; i++) {
		if (!l->taken[i])
			continue;
		l->text[i].before = l->text[i].last;
		l->text[i].last = l->next[i];
		l->text[i].made++;
		all++;
	}
	if (all == l->n)
		return;
	if (!l->own->ops->look(l->own, l->lane, l->n, l->look))
		post_fail("lanes cannot be looked at: %s", l->own->why);
	for (uint32_t i = 0; i < l->n; i++) {
		if (l->look[i].end != TOKD_LANE_OPEN)
			continue;
		l->lane[kept] = l->lane[i];
		l->text[kept++] = l->text[i];
	}
	l->n = kept;
}

void
engine_loop_close(struct engine_loop *l)
{
	free(l->lane);
	free(l->next);
	free(l->taken);
	free(l->text);
	free(l->look);
	free(l->ids);
	free(l);
}
