/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pretokenizers of random expressions against their definition: a backtracking matcher that walks
 * the expression's tree, and the pieces that each split makes of a text, as `tokenizers` does. The
 * borders of the compiled machine must be those, and the ids of the text, however it is cut, those
 * of its pieces. The text may be any bytes.
 */
#include <string.h>

#include "test.h"
#include "fuzz.h"
#include "small_vocab.h"
#include "pretokenize/pretok.h"
#include "pretokenize/regex/regex.h"
#include "unicode/pages.h"
#include "unicode/utf8.h"

#define SPLITS_MAX 3
#define NODES_MAX 64
#define REGEX_MAX 2048
#define CHARS_MAX 96
#define BYTES_MAX (3 * CHARS_MAX) /* U+FFFD for each byte */
#define STEPS_MAX 20000		  /* of backtracking, for one text */

/* ---- sets of characters, by the general categories of the library's table ---- */

static const char *
category(uint32_t cp)
{
	uint32_t low = 0, high = tok_unicode_n_runs;

	while (high - low > 1) {
		const uint32_t middle = (low + high) / 2;

		if (tok_unicode_runs[middle] >> TOK_GC_BITS <= cp)
			low = middle;
		else
			high = middle;
	}
	return tok_gc_names[tok_unicode_runs[low] & 31];
}

static bool
is_space(uint32_t cp)
{
	return category(cp)[0] == 'Z' || (cp >= 9 && cp <= 13) || cp == 0x85;
}

static bool
is_of(uint32_t cp, const char *any)
{
	return strchr(any, category(cp)[0]) != NULL;
}

enum { SETS = 22 };

static const char *const set_text[SETS] = {"a", "b", " ", "\\p{L}", "\\p{N}", "\\s",
	"[^\\s\\p{L}\\p{N}]", "[ab]", "'", "\\n", "[\\r\\n]", ".", "\\S", "\\p{M}", "\\P{L}",
	"\\p{Lu}", "[a-z&&[^a]]", "[^\\r\\n\\p{L}\\p{N}]", "1", "[\\p{P}\\p{S}]", "(?i:a)",
	"\\x{4e2d}"};

static bool
in_set(uint32_t set, uint32_t c)
{
	switch (set) {
	case 0:
		return c == 'a';
	case 1:
		return c == 'b';
	case 2:
		return c == ' ';
	case 3:
		return is_of(c, "L");
	case 4:
		return is_of(c, "N");
	case 5:
		return is_space(c);
	case 6:
		return !is_space(c) && !is_of(c, "LN");
	case 7:
		return c == 'a' || c == 'b';
	case 8:
		return c == '\'';
	case 9:
		return c == '\n';
	case 10:
		return c == '\r' || c == '\n';
	case 11:
		return c != '\n';
	case 12:
		return !is_space(c);
	case 13:
		return is_of(c, "M");
	case 14:
		return !is_of(c, "L");
	case 15:
		return strcmp(category(c), "Lu") == 0;
	case 16:
		return c > 'a' && c <= 'z';
	case 17:
		return c != '\r' && c != '\n' && !is_of(c, "LN");
	case 18:
		return c == '1';
	case 19:
		return is_of(c, "PS");
	case 20:
		return c == 'a' || c == 'A';
	default:
		return c == 0x4e2d;
	}
}

/* ---- random expressions ---- */

enum kind { SET, CONCAT, EITHER, REPEAT, LOOK, NOT_LOOK, LINE_END, KINDS };
enum mode { GREEDY, LAZY, POSSESSIVE };

struct node {
	enum kind kind;
	const struct node *a, *b;
	uint32_t set, min, max;
	enum mode mode;
};

struct regex {
	struct node node[NODES_MAX];
	uint32_t n;
	const struct node *root;
	enum tok_behavior behavior;
	char text[REGEX_MAX];
	uint32_t len;
};

static struct node *
node_of(struct regex *r, enum kind kind)
{
	MUST(r->n < NODES_MAX);
	r->node[r->n].kind = kind;
	return &r->node[r->n++];
}

/* A byte chooses what it is; where the input is at its end, it is a set. */
static const struct node *
make_node(struct regex *r, struct input *in, uint32_t depth)
{
	static const struct {
		uint32_t min, max;
	} times[] = {{0, 1}, {0, UINT32_MAX}, {1, UINT32_MAX}, {1, UINT32_MAX}, {1, 3}, {2, 2},
		{2, UINT32_MAX}, {0, 2}};
	const uint32_t byte = (uint32_t)input_take(in, 1), what = byte % 16;
	struct node *n;

	if (depth == 0 || what < 5 || r->n > NODES_MAX / 2) {
		n = node_of(r, SET);
		n->set = byte / 8 % SETS;
		return n;
	}
	if (what < 9) {
		n = node_of(r, what < 8 ? CONCAT : EITHER);
		n->a = make_node(r, in, depth - 1);
		n->b = make_node(r, in, depth - 1);
		return n;
	}
	if (what < 14) {
		n = node_of(r, REPEAT);
		n->min = times[byte / 16 % 8].min;
		n->max = times[byte / 16 % 8].max;
		n->mode = what < 12 ? GREEDY : what < 13 ? LAZY : POSSESSIVE;
		/* {2,}+ repeats {2,}. */
		if (n->mode == POSSESSIVE && (n->max != UINT32_MAX || n->min == 2))
			n->mode = GREEDY;
		if (n->mode == LAZY && n->min == n->max)
			n->mode = GREEDY;
		n->a = make_node(r, in, n->mode == POSSESSIVE ? 0 : depth - 1);
		return n;
	}
	/* What is looked for stands behind something: an empty match is refused. */
	n = node_of(r, CONCAT);
	n->a = make_node(r, in, depth - 1);
	n->b = node_of(r, what == 15 ? LINE_END : byte & 0x80 ? LOOK : NOT_LOOK);
	((struct node *)n->b)->set = byte / 16 % 8 + 2;
	return n;
}

static void
say(struct regex *r, const char *text)
{
	const uint32_t len = (uint32_t)strlen(text);

	MUST(r->len + len < REGEX_MAX);
	memcpy(r->text + r->len, text, len + 1);
	r->len += len;
}

static void
say_node(struct regex *r, const struct node *n)
{
	char times[32];

	switch (n->kind) {
	case SET:
		say(r, set_text[n->set]);
		return;
	case CONCAT:
		say_node(r, n->a);
		say_node(r, n->b);
		return;
	case EITHER:
		say(r, "(?:");
		say_node(r, n->a);
		say(r, "|");
		say_node(r, n->b);
		say(r, ")");
		return;
	case REPEAT:
		say(r, "(?:");
		say_node(r, n->a);
		say(r, ")");
		if (n->max == UINT32_MAX)
			snprintf(times, sizeof(times), n->min == 2 ? "{2,}" : n->min ? "+" : "*");
		else
			snprintf(times, sizeof(times), "{%u,%u}", n->min, n->max);
		say(r, times);
		say(r, n->mode == LAZY ? "?" : n->mode == POSSESSIVE ? "+" : "");
		return;
	case LOOK:
	case NOT_LOOK:
		say(r, n->kind == LOOK ? "(?=" : "(?!");
		say(r, set_text[n->set]);
		say(r, ")");
		return;
	default:
		say(r, "$");
		return;
	}
}

/* ---- the definition ---- */

/* What comes behind a node. */
struct rest {
	const struct node *node;
	const struct rest *rest;
	uint32_t times; /* a repeat that has been matched so often */
	bool repeats;
};

struct match {
	const uint32_t *text; /* of a piece */
	uint32_t n, end;
	uint32_t steps;
};

static bool match_rest(struct match *m, uint32_t at, const struct rest *rest);

static bool
match_repeat(
	struct match *m, uint32_t at, const struct node *n, uint32_t times, const struct rest *rest)
{
	const struct rest more = {n, rest, times + 1, true}, once = {n->a, &more, 0, false};

	if (n->mode == POSSESSIVE) {
		for (; at < m->n && in_set(n->a->set, m->text[at]); at++)
			times++;
		return times >= n->min && match_rest(m, at, rest);
	}
	if (times < n->min)
		return match_rest(m, at, &once);
	if (n->mode == LAZY)
		return match_rest(m, at, rest) || (times < n->max && match_rest(m, at, &once));
	return (times < n->max && match_rest(m, at, &once)) || match_rest(m, at, rest);
}

/* Does what comes behind match from here? The first way that does counts. */
static bool
match_rest(struct match *m, uint32_t at, const struct rest *rest)
{
	const struct node *n;
	bool in;

	if (rest == NULL) {
		m->end = at;
		return true;
	}
	if (++m->steps > STEPS_MAX)
		return false;
	n = rest->node;
	if (rest->repeats)
		return match_repeat(m, at, n, rest->times, rest->rest);
	in = at < m->n && (n->kind == SET || n->kind == LOOK || n->kind == NOT_LOOK) &&
	     in_set(n->set, m->text[at]);
	switch (n->kind) {
	case SET:
		return in && match_rest(m, at + 1, rest->rest);
	case LOOK:
		return in && match_rest(m, at, rest->rest);
	case NOT_LOOK:
		return !in && match_rest(m, at, rest->rest);
	case LINE_END:
		return (at == m->n || m->text[at] == '\n') && match_rest(m, at, rest->rest);
	case CONCAT: {
		const struct rest b = {n->b, rest->rest, 0, false}, a = {n->a, &b, 0, false};

		return match_rest(m, at, &a);
	}
	case EITHER: {
		const struct rest a = {n->a, rest->rest, 0, false};
		const struct rest b = {n->b, rest->rest, 0, false};

		return match_rest(m, at, &a) || match_rest(m, at, &b);
	}
	default:
		return match_repeat(m, at, n, 0, rest->rest);
	}
}

/* Set border[] where a split cuts the piece [from, to). False: it takes too many steps. */
static bool
split_piece(const struct regex *r, const uint32_t *text, uint32_t from, uint32_t to, bool *border)
{
	const struct rest root = {r->root, NULL, 0, false};
	struct match m = {.text = text + from, .n = to - from};
	enum { NOTHING, GAP, MATCH } before = NOTHING;

	for (uint32_t at = 0; at < m.n;) {
		const bool is_match = match_rest(&m, at, &root);
		bool cut = before != NOTHING;

		if (m.steps > STEPS_MAX)
			return false;
		MUST(!is_match || m.end > at);
		if (is_match && before == GAP)
			cut = r->behavior != TOK_SPLIT_WITH_PREVIOUS;
		else if (is_match && before == MATCH)
			cut = r->behavior != TOK_SPLIT_CONTIGUOUS;
		else if (before == MATCH)
			cut = r->behavior != TOK_SPLIT_WITH_NEXT;
		else if (before == GAP)
			cut = false;
		border[from + at] = border[from + at] || cut;
		before = is_match ? MATCH : GAP;
		at = is_match ? m.end : at + 1;
	}
	return true;
}

/* Where pieces begin; border[n] is true. */
static bool
define(const struct regex *r, uint32_t n_splits, const uint32_t *text, uint32_t n, bool *border)
{
	memset(border, 0, n * sizeof(*border));
	border[0] = border[n] = true;
	for (uint32_t i = 0; i < n_splits; i++) {
		uint32_t from = 0;

		for (uint32_t to = 1; to <= n; to++) {
			if (!border[to])
				continue;
			/* Borders of this split lie before `to`. */
			if (!split_piece(&r[i], text, from, to, border))
				return false;
			from = to;
		}
	}
	return true;
}

/* ---- the machine ---- */

#define MADE 2048   /* expressions that are compiled once */
#define SPEC_MAX 32 /* bytes that make expressions */

struct machine {
	uint8_t spec[SPEC_MAX];
	uint32_t n_spec, n_splits;
	bool known, compiled;
	struct regex regex[SPLITS_MAX];
	uint16_t *step;
	uint32_t step_width;
	uint8_t *cat;
	uint16_t cat_page[TOK_PAGES];
};

static struct small_vocab small;
static struct tok_vocab vocab; /* `small` with the steps of a machine */
static struct machine *made[MADE], last;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint64_t seed = 1;

	small_vocab_make(&small, &seed, "ab 1'\n", SMALL_MERGES_MAX);
	vocab = *small.v;
	vocab.pretok = TOK_PRETOK_REGEX;
	return 0;
}

static void
compile(struct machine *m, const uint8_t *spec, uint32_t n)
{
	struct tok_pretok_split split[SPLITS_MAX];
	struct input in = {spec, spec + n};
	struct tok_machine machine;
	struct tok_error err = {{0}};
	struct tok_spread spread;

	free(m->step);
	free(m->cat);
	m->step = NULL;
	m->cat = NULL;
	memcpy(m->spec, spec, n);
	m->n_spec = n;
	m->known = true;
	m->n_splits = 1 + (uint32_t)input_take(&in, 1) % SPLITS_MAX;
	for (uint32_t i = 0; i < m->n_splits; i++) {
		struct regex *r = &m->regex[i];

		memset(r, 0, sizeof(*r));
		r->behavior = (enum tok_behavior)(input_take(&in, 1) % 8);
		if (r->behavior > TOK_SPLIT_WITH_NEXT)
			r->behavior = TOK_SPLIT_ISOLATED;
		r->root = make_node(r, &in, 4);
		say_node(r, r->root);
		split[i] = (struct tok_pretok_split){r->text, r->behavior};
	}
	m->compiled = tok_regex_compile("fuzz", split, m->n_splits, &machine, &err);
	if (!m->compiled) {
		MUST(strncmp(err.text, "fuzz: ", 6) == 0);
		return;
	}
	MUST(tok_spread_runs(&spread, (struct tok_runs){machine.run, machine.n_runs, 8}));
	memcpy(m->cat_page, spread.page, sizeof(spread.page));
	m->cat = spread.value;
	m->step_width = machine.width;
	m->step = machine.step;
	machine.step = NULL;
	tok_machine_free(&machine);
}

/* One of those made once, or one of the input's own. */
static const struct machine *
choose(uint8_t how, struct input *in)
{
	const uint32_t which = (uint32_t)input_take(in, 2) % MADE;
	uint64_t random = which;
	const uint8_t *spec;
	uint8_t bytes[SPEC_MAX];
	uint32_t n;

	if ((how & 0x7f) != 0) { /* most, since to compile takes most of the time */
		if (made[which] != NULL)
			return made[which];
		made[which] = calloc(1, sizeof(*made[which]));
		MUST(made[which] != NULL);
		for (uint32_t i = 0; i < SPEC_MAX; i++)
			bytes[i] = (uint8_t)small_random(&random, 256);
		compile(made[which], bytes, SPEC_MAX);
		return made[which];
	}
	n = input_bytes(in, which % SPEC_MAX + 1, &spec);
	if (!last.known || n != last.n_spec || memcmp(spec, last.spec, n) != 0)
		compile(&last, spec, n);
	return &last;
}

/* The whole text in memory. */
static void
check_scan(const uint8_t *bytes, uint32_t n, const bool *begins)
{
	struct tok_pretok_scan scan = {.v = &vocab, .text = bytes, .n = n, .last = true};
	size_t start[TOK_SCAN_BLOCK];
	bool found[BYTES_MAX + 1] = {false};

	while (scan.at < n) {
		const uint32_t k = tok_pretok_scan(&scan, start, TOK_SCAN_BLOCK);

		for (uint32_t i = 0; i < k; i++)
			found[start[i]] = true;
	}
	MUST(memcmp(found, begins, n * sizeof(*begins)) == 0);
}

/* In pieces of 0 to 15 bytes, as the input says. */
static void
check_stream(const uint8_t *raw, uint32_t n, struct input cuts, const uint32_t *want, size_t n_want)
{
	static struct tok_stream s;
	uint32_t ids[BYTES_MAX + 64], at = 0;
	size_t n_ids = 0;
	bool more = true;

	tok_stream_init(&s, &vocab, NULL, 0);
	while (more) {
		const uint32_t cut = input_more(&cuts) ? (uint32_t)input_take(&cuts, 1) % 16 : n;
		const uint32_t piece = cut < n - at ? cut : n - at;
		uint32_t got[2 * BYTES_MAX + 64];
		struct tok_result r;

		more = at + piece < n;
		r = tok_stream_feed(&s, raw + at, piece, !more, got, sizeof(got) / sizeof(got[0]));
		MUST(r.status == TOK_OK && r.consumed == piece);
		MUST(n_ids + r.produced <= n_want);
		memcpy(ids + n_ids, got, r.produced * sizeof(*ids));
		n_ids += r.produced;
		at += piece;
	}
	MUST(n_ids == n_want && memcmp(ids, want, n_ids * sizeof(*ids)) == 0);
}

/* Characters of bytes that are not UTF-8 are U+FFFD, as the first machine has it. */
static uint32_t
characters(const uint8_t *raw, uint32_t n, uint32_t *text, uint8_t *bytes, uint32_t *n_bytes)
{
	uint32_t chars = 0;

	*n_bytes = 0;
	while (n > 0) {
		const struct tok_utf8_span span = tok_utf8_scan(raw, n);

		for (uint32_t at = 0; at < span.valid;) {
			const uint32_t len = tok_utf8_length(raw[at]);

			text[chars++] = tok_utf8_decode(raw + at, len);
			at += len;
		}
		memcpy(bytes + *n_bytes, raw, span.valid);
		*n_bytes += (uint32_t)span.valid;
		if (span.end != TOK_UTF8_WHOLE) {
			text[chars++] = 0xfffd;
			memcpy(bytes + *n_bytes, "\xef\xbf\xbd", 3);
			*n_bytes += 3;
		}
		raw += span.valid + span.rest;
		n -= (uint32_t)(span.valid + span.rest);
	}
	return chars;
}

/* Bytes as they are, or each one of these. */
static uint32_t
make_text(struct input *in, bool as_is, uint8_t *raw)
{
	static const char *const of[] = {"a", "b", " ", "1", "'", "\n", "a", "b", " ", "A", "\t",
		"\xc3\xa9", "\xe4\xb8\xad", "\xcc\x81", "\xc2\xbd", "\r", ".", "+", "\xe3\x80\x80",
		"\xf0\x9f\x98\x80", "\xc2\x85", "c", "\xc2", "\xd0\x96", "-", "s"};
	uint32_t n = 0, byte;

	while (input_more(in) && n + 4 <= CHARS_MAX) {
		byte = (uint32_t)input_take(in, 1);
		if (as_is) {
			raw[n++] = (uint8_t)byte;
		} else {
			const char *text = of[byte % (sizeof(of) / sizeof(of[0]))];

			memcpy(raw + n, text, strlen(text));
			n += (uint32_t)strlen(text);
		}
	}
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t raw[CHARS_MAX], bytes[BYTES_MAX];
	uint32_t text[CHARS_MAX], want[BYTES_MAX], n_bytes, at = 0, from = 0;
	bool border[CHARS_MAX + 1], begins[BYTES_MAX + 1] = {false};
	struct input in = {data, data + size}, cuts;
	const uint8_t how = (uint8_t)input_take(&in, 1);
	const struct machine *m = choose(how, &in);
	const uint8_t *part;
	uint32_t n, chars, n_raw;
	size_t n_want = 0;

	if (!m->compiled)
		return 0;
	vocab.step = m->step;
	vocab.step_width = m->step_width;
	vocab.cat = m->cat;
	vocab.cat_page = (uint16_t *)m->cat_page;
	n = input_bytes(&in, (uint32_t)input_take(&in, 1) % 8, &part);
	cuts = (struct input){part, part + n};
	n_raw = make_text(&in, how & 0x80, raw);
	chars = characters(raw, n_raw, text, bytes, &n_bytes);
	if (chars == 0 || !define(m->regex, m->n_splits, text, chars, border))
		return 0;
	for (uint32_t i = 0; i < chars; i++) {
		begins[at] = border[i];
		at += tok_utf8_length(bytes[at]);
		if (border[i + 1]) {
			n_want += small_encode(&small, bytes + from, at - from, want + n_want);
			from = at;
		}
	}
	check_scan(bytes, n_bytes, begins);
	check_stream(raw, n_raw, cuts, want, n_want);
	for (uint32_t step = 1; step < 3; step++) { /* in ones, and in twos */
		uint8_t every[CHARS_MAX];

		memset(every, (int)step, sizeof(every));
		check_stream(
			raw, n_raw, (struct input){every, every + sizeof(every)}, want, n_want);
	}
	return 0;
}
