/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vocabularies that are lists of ranks, like tiktoken's: two parts are merged if their bytes are a
 * token, the lowest rank first.
 *
 * The merges are recovered from the ranks. Encoding the bytes of a token with only lower ranks
 * leaves its parts. Two parts are the pair that makes the token. If there are more, no merge makes
 * it, and only a whole pretoken can be this token. No other pair with the same bytes can ever meet
 * (doc/internals/streaming.md, lemma 1).
 */
#include <stdlib.h>
#include <string.h>

#include "rank_model.h"

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long
tok_base64_decode(const char *p, size_t len, size_t most, uint8_t *out)
{
	size_t n = 0, pad = 0;

	if (len == 0 || len % 4 != 0 || len / 4 * 3 > most + 2)
		return -1;
	while (pad < 2 && p[len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < len; i += 4) {
		uint32_t bits = 0;

		for (size_t k = 0; k < 4; k++) {
			int value = i + k >= len - pad ? 0 : base64_value(p[i + k]);

			if (value < 0)
				return -1;
			bits = bits << 6 | (uint32_t)value;
		}
		out[n++] = (uint8_t)(bits >> 16);
		out[n++] = (uint8_t)(bits >> 8);
		out[n++] = (uint8_t)bits;
	}
	n -= pad;
	return n > most ? -1 : (long)n;
}

struct ranks {
	struct tok_index index;
	uint32_t of_two[256][256]; /* what two bytes make: most of what is looked for */
};

/*
 * Encode the bytes of `id` until two parts are left, and put them in part[]. False: more are left,
 * so no merge makes the token.
 */
static bool
split_token(const struct ranks *ranks, uint32_t id, uint32_t *part, uint32_t *end)
{
	const struct tok_index *x = &ranks->index;
	const struct tok_model_token *t = &x->m->token[id];
	const uint8_t *p = x->m->bytes + t->off;
	uint32_t n = t->len, i;

	/* end[i]: where part i ends. part[i]: what it and the next part would make. */
	for (i = 0; i < n; i++)
		end[i] = i + 1;
	for (i = 0; i + 1 < n; i++)
		part[i] = ranks->of_two[p[i]][p[i + 1]];
	while (n > 2) {
		uint32_t at = 0;

		for (i = 1; i + 1 < n; i++)
			at = part[i] < part[at] ? i : at;
		if (part[at] == TOK_NO_TOKEN)
			return false;
		memmove(end + at, end + at + 1, (n - at - 1) * sizeof(*end));
		memmove(part + at, part + at + 1, (n - at - 1) * sizeof(*part));
		n--;
		for (i = at > 0 ? at - 1 : 0; i <= at && i + 1 < n; i++) {
			uint32_t from = i > 0 ? end[i - 1] : 0;

			part[i] = tok_index_find(x, p + from, end[i + 1] - from);
		}
	}
	part[0] = tok_index_find(x, p, end[0]);
	part[1] = tok_index_find(x, p + end[0], end[1] - end[0]);
	return part[0] != TOK_NO_TOKEN && part[1] != TOK_NO_TOKEN;
}

static bool
find_merges(struct ranks *ranks, const char *file, struct tok_model *m, struct tok_error *err)
{
	uint32_t part[TOK_MAX_TOKEN_BYTES], end[TOK_MAX_TOKEN_BYTES];
	uint64_t work = 0;

	memset(ranks->of_two, 0xff, sizeof(ranks->of_two));
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		const uint8_t *p = m->bytes + m->token[id].off;

		if (!tok_index_add(&ranks->index, id))
			return tok_fail(err, "%s: rank %u has the bytes of another rank", file, id);
		if (!tok_model_add_work(&work, m->token[id].len, err))
			return false;
		if (m->token[id].len == 2)
			ranks->of_two[p[0]][p[1]] = tok_index_find(&ranks->index, p, 2);
	}
	for (uint32_t id = 0; id < m->n_tokens; id++) {
		if (m->token[id].len >= 2 && split_token(ranks, id, part, end))
			tok_model_put_merge(m, part[0], part[1], id);
	}
	return true;
}

bool
tok_rank_merges(const char *file, struct tok_model *m, struct tok_error *err)
{
	struct ranks *ranks = calloc(1, sizeof(*ranks));
	bool ok;

	if (ranks == NULL)
		return tok_fail(err, "%s: out of memory for its merges", file);
	ok = tok_index_init(&ranks->index, m, err) && find_merges(ranks, file, m, err);
	tok_index_free(&ranks->index);
	free(ranks);
	return ok;
}
