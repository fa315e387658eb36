/* SPDX-License-Identifier: BSD-3-Clause */
/* Hot path. All bytes are tokens, so every node but the root has a failure link. */
#include "greedy.h"

void
tok_greedy_open(struct tok_stream *s)
{
	s->node = TOK_LONGEST_GO_ON;
	s->n_pos = 0;
}

/* Remove the bytes of ids[0 .. n) from the open pretoken. */
static void
given_out(struct tok_stream *s, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s->n_pos -= s->vocab->span[ids[i]].len;
}

uint32_t *
tok_greedy_push(struct tok_stream *s, const uint8_t *p, size_t n, uint32_t *ids)
{
	const struct tok_longest *l = &s->vocab->longest;
	uint32_t node = s->node, *to = ids;

	for (size_t i = 0; i < n; i++)
		tok_longest_take(l, &node, &to, p[i]);
	s->node = node;
	s->n_pos += (uint32_t)n;
	given_out(s, ids, (size_t)(to - ids));
	return to;
}

uint32_t *
tok_greedy_release(struct tok_stream *s, uint32_t *ids)
{
	const struct tok_longest *l = &s->vocab->longest;
	uint32_t *to = ids;

	while (!tok_longest_goes_on(&l->node[s->node]))
		tok_longest_fall_back(l, &s->node, &to);
	given_out(s, ids, (size_t)(to - ids));
	return to;
}

uint32_t *
tok_greedy_close(struct tok_stream *s, uint32_t *ids)
{
	while (s->node != TOK_LONGEST_GO_ON)
		tok_longest_fall_back(&s->vocab->longest, &s->node, &ids);
	s->n_pos = 0;
	return ids;
}
