/* SPDX-License-Identifier: BSD-3-Clause */
/* Added tokens in a text that comes in pieces. Hot path. */
#include "added.h"
#include "unicode/word.h"
#include "unicode/utf8.h"

/* The held bytes and the piece after them, as one text. */
struct window {
	const uint8_t *held, *piece;
	size_t n_held, n;
};

static inline uint8_t
byte_at(const struct window *w, size_t i)
{
	return i < w->n_held ? w->held[i] : w->piece[i - w->n_held];
}

/* Every character lies in one of the two parts. */
static inline const uint8_t *
char_at(const struct window *w, size_t i)
{
	return i < w->n_held ? w->held + i : w->piece + (i - w->n_held);
}

static uint32_t
cp_at(const struct window *w, size_t i, uint32_t *len)
{
	const uint8_t *p = char_at(w, i);

	*len = tok_utf8_length(*p);
	return tok_utf8_decode(p, *len);
}

/* Where the character that ends at i begins. i > 0 */
static size_t
char_before(const struct window *w, size_t i)
{
	do
		i--;
	while ((byte_at(w, i) & 0xc0) == 0x80);
	return i;
}

/* Where the white space that ends at `end` begins, not before `from`. */
static size_t
white_before(const struct window *w, size_t from, size_t end)
{
	uint32_t len;

	while (end > from) {
		size_t at = char_before(w, end);

		if (!tok_is_white(cp_at(w, at, &len)))
			break;
		end = at;
	}
	return end;
}

static size_t
skip_white(const struct window *w, size_t from, size_t end)
{
	uint32_t len;

	while (from < end && tok_is_white(cp_at(w, from, &len)))
		from += len;
	return from;
}

#define BLOCK_MIN 16 /* bytes: fewer are looked at one by one */

/* Number of bytes at p that no token begins with. */
static size_t
skip_others(const struct tok_added *set, const uint8_t *p, size_t n)
{
	const uint64_t *first = set->trie.node[TOK_LONGEST_GO_ON].child;
	size_t at = 0;

	if (set->skip != NULL && n >= BLOCK_MIN)
		return set->skip(set->first, p, n);
	while (at < n && !(first[p[at] >> 6] >> (p[at] & 63) & 1))
		at++;
	return at;
}

bool
tok_added_none(
	const struct tok_added_state *a, const struct tok_added *set, struct tok_added_piece *piece)
{
	if (!piece->last || a->n_held > 0 || a->strip)
		return false;
	piece->next = skip_others(set, piece->p, piece->n);
	return piece->next == piece->n;
}

/* The next place from `at` on where a token may begin. */
static size_t
find_first(const struct tok_added *set, const struct window *w, size_t at)
{
	if (at < w->n_held) {
		at += skip_others(set, w->held + at, w->n_held - at);
		if (at < w->n_held)
			return at;
	}
	return at + skip_others(set, w->piece + (at - w->n_held), w->n - at);
}

/* The longest token at `at`, or NULL. False: later text may complete a token or a longer one. */
static bool
find_longest(const struct tok_added *set, const struct window *w, size_t at, bool last,
	const struct tok_added_token **token)
{
	const struct tok_longest *trie = &set->trie;
	uint32_t node = TOK_LONGEST_GO_ON;

	*token = NULL;
	for (size_t i = at; node != TOK_NO_TOKEN; i++) {
		uint32_t found = tok_longest_token(trie, node);

		if (found != TOK_NO_TOKEN)
			*token = &set->token[found];
		if (i == w->n)
			return last || !tok_longest_goes_on(&trie->node[node]);
		node = tok_longest_child(&trie->node[node], byte_at(w, i));
	}
	return true;
}

static bool
word_before(const struct tok_added_state *a, const struct window *w, size_t at)
{
	uint32_t len;

	return at == 0 ? a->word : tok_is_word(cp_at(w, char_before(w, at), &len));
}

/* Is there no word character directly before `at` and at `end`? */
static bool
is_single_word(const struct tok_added_state *a, const struct window *w, size_t at, size_t end)
{
	uint32_t len;

	return !word_before(a, w, at) && (end == w->n || !tok_is_word(cp_at(w, end, &len)));
}

/* Does a token of the model, which is BPE, have this text and this id? */
static bool
is_of_model(const struct tok_vocab *v, const uint8_t *p, const struct tok_added_token *t)
{
	const struct tok_node *node = &v->node[0];

	for (uint32_t i = 0; i < t->len; i++) {
		if (!tok_has_child(node, p[i]))
			return false;
		node = &v->node[tok_child(node, p[i])];
	}
	return node->token != TOK_NO_TOKEN && v->ext[node->token] == t->id;
}

/*
 * Does the model find this token in the text, and the same ids around it? It does if the token is
 * its own, and none of its tokens has characters from both sides of a border.
 */
static bool
found_by_model(const struct tok_vocab *v, const struct window *w, size_t at, size_t end, bool last,
	const struct tok_added_token *t)
{
	uint32_t len;

	if (v == NULL || t->what != 0 || at < w->n_held || at == 0 || (end == w->n && !last))
		return false;
	return is_of_model(v, char_at(w, at), t) &&
	       !tok_pieces_join(v, cp_at(w, char_before(w, at), &len), cp_at(w, at, &len)) &&
	       (end == w->n || !tok_pieces_join(v, cp_at(w, char_before(w, end), &len),
				       cp_at(w, end, &len)));
}

/*
 * The end of the white space that the previous token took, or of this run of white space. Each run
 * is scanned once, so many tokens in a row still take linear time.
 */
static size_t
taken_up_to(const struct tok_added_state *a, const struct window *w, struct tok_added_piece *piece)
{
	if (!a->strip)
		return piece->from;
	if (piece->white <= piece->from)
		piece->white = skip_white(w, piece->from, w->n);
	return piece->white;
}

/*
 * Find the text before the next recognised token, or the text that is certain. A token that is not
 * recognised hides the tokens that begin inside it, as in the reference.
 */
static void
search(struct tok_added_state *a, const struct tok_added *set, const struct window *w,
	struct tok_added_piece *piece)
{
	const size_t taken = taken_up_to(a, w, piece);
	const struct tok_added_token *t;
	size_t at = piece->next, end;

	piece->found = true;
	piece->id = TOK_NO_TOKEN;
	for (; (at = find_first(set, w, at)) < w->n; at = end) {
		if (!find_longest(set, w, at, piece->last, &t))
			break;
		end = at + (t == NULL ? 1u : t->len);
		if (t == NULL || ((t->what & TOK_ADDED_SPECIAL) && !piece->special) ||
			found_by_model(piece->model, w, at, end, piece->last, t))
			continue;
		if (t->what & TOK_ADDED_SINGLE_WORD) {
			if (end == w->n && !piece->last)
				break; /* a word character may follow */
			if (!is_single_word(a, w, at, end))
				continue;
		}
		/* A token of white space that also takes white space before it, when the token
		 * before has taken all of it: nothing is left of it. */
		if ((t->what & TOK_ADDED_LSTRIP) && end <= taken)
			continue;
		piece->to = at;
		if ((t->what & TOK_ADDED_LSTRIP) && taken < at)
			piece->to = white_before(w, taken, at);
		piece->next = end;
		piece->id = t->id;
		piece->strips = t->what & TOK_ADDED_RSTRIP;
		return;
	}
	piece->next = at;
	piece->to = at;
	if (!piece->last && (set->what[piece->special] & TOK_ADDED_LSTRIP) && taken < at)
		piece->to = white_before(w, taken, at);
}

/* Hold the bytes from `keep` on. The search continues at `next`. */
static bool
hold(struct tok_added_state *a, uint32_t what, const struct window *w, size_t keep, size_t next)
{
	const size_t n = w->n - keep;
	const size_t old = keep < w->n_held ? w->n_held - keep : 0;

	if (n > TOK_ADDED_HELD_MAX)
		return false;
	if ((what & TOK_ADDED_SINGLE_WORD) && keep > 0)
		a->word = word_before(a, w, keep);
	memmove(a->held, a->held + w->n_held - old, old);
	memcpy(a->held + old, w->piece + (w->n - w->n_held - (n - old)), n - old);
	a->n_held = (uint16_t)n;
	a->begun = (uint16_t)(next - keep);
	return true;
}

enum tok_added_result
tok_added_next(struct tok_added_state *a, const struct tok_added *set,
	struct tok_added_piece *piece, struct tok_added_span *span)
{
	const struct window w = {a->held, piece->p, a->n_held, a->n_held + piece->n};

	if (piece->next < a->begun)
		piece->next = a->begun;
	if (!piece->found)
		search(a, set, &w, piece);
	if (a->strip) {
		piece->from = skip_white(&w, piece->from, piece->to);
		a->strip = piece->from == piece->to;
	}
	if (piece->from < piece->to) {
		size_t end = piece->from < w.n_held && piece->to > w.n_held ? w.n_held : piece->to;

		span->p = char_at(&w, piece->from);
		span->n = end - piece->from;
		span->ends = end == piece->to && (piece->id != TOK_NO_TOKEN || piece->last);
		span->at = piece->from;
		span->behind = end;
		piece->from = end;
		return TOK_ADDED_TEXT;
	}
	if (piece->id != TOK_NO_TOKEN) {
		span->id = piece->id;
		span->at = piece->from;
		span->behind = piece->next;
		piece->from = piece->next;
		piece->found = false;
		a->strip = piece->strips;
		return TOK_ADDED_TOKEN;
	}
	if (piece->last) {
		tok_added_init(a);
		return TOK_ADDED_DONE;
	}
	return hold(a, set->what[piece->special], &w, piece->to, piece->next) ? TOK_ADDED_DONE
									      : TOK_ADDED_FULL;
}
