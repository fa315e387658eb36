/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regular expressions as the files of tokenizers use them, in Oniguruma's Ruby syntax: $ is the end
 * of a line, {m,n}+ repeats {m,n}, and [a[b]] nests. What is not implemented is refused by name.
 */
#include <stdio.h>
#include <string.h>

#include "inside.h"
#include "pretokenize/names.h"
#include "unicode/classes.h"
#include "unicode/utf8.h"
#include "unicode/word.h"

#define DEPTH_MAX 32 /* of groups and classes */
#define REPEAT_MAX 1000

struct parser {
	struct rx *rx;
	const uint8_t *begin, *p, *end;
	uint32_t depth;
	bool fold;	 /* inside (?i:...) */
	uint32_t before; /* there: the letter just before, which might join the next one; or 0 */
};

static struct rx_node *parse_either(struct parser *s);

/* Always NULL. The construct begins at `at`; some of it is shown. */
static void *
refuse(struct parser *s, const uint8_t *at, const char *why)
{
	const int n = (int)(s->end - at > 24 ? 24 : s->end - at);

	tok_fail(s->rx->err, "%s: regular expression %u of %u, at byte %zu, \"%.*s\": %s",
		s->rx->where, s->rx->number, s->rx->of, (size_t)(at - s->begin), n,
		(const char *)at, why);
	return NULL;
}

static bool
take(struct parser *s, const char *text)
{
	const size_t n = strlen(text);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* ---- nodes ---- */

static struct rx_node *
node(struct parser *s, enum rx_kind kind, struct rx_node *a, struct rx_node *b)
{
	struct rx_node *n = rx_alloc(s->rx, 1, sizeof(*n));

	if (n == NULL)
		return NULL;
	n->kind = kind;
	n->a = a;
	n->b = b;
	n->nullable = kind == RX_EMPTY || kind == RX_LOOK ||
		      (kind == RX_CONCAT && a->nullable && b->nullable) ||
		      (kind == RX_EITHER && (a->nullable || b->nullable));
	return n;
}

static struct rx_node *
set_node(struct parser *s, struct rx_set *set)
{
	struct rx_node *n = set == NULL ? NULL : node(s, RX_SET, NULL, NULL);

	if (n != NULL)
		n->set = set;
	return n;
}

/* ---- characters ---- */

/* The range, and its other cases: Kelvin sign is a small k, U+017F a small s. False: not ASCII. */
static bool
add_cases(struct rx_range *range, uint32_t *n, uint32_t low, uint32_t high)
{
	range[(*n)++] = (struct rx_range){low, high};
	if (high >= 0x80)
		return false;
	for (uint32_t c = low; c <= high; c++) {
		if (!tok_is_ascii_letter(c))
			continue;
		range[(*n)++] = (struct rx_range){c ^ 0x20, c ^ 0x20};
		if ((c | 0x20) == 'k' || (c | 0x20) == 's') {
			const uint32_t other = (c | 0x20) == 'k' ? 0x212a : 0x17f;

			range[(*n)++] = (struct rx_range){other, other};
		}
	}
	return true;
}
#define CASES_MAX 64 /* ranges that one range of ASCII may add, and itself */

/* Do two letters without case match one ligature: ss, st, ff, fi, fl? */
static bool
is_ligature(uint32_t a, uint32_t b)
{
	a |= 0x20;
	b |= 0x20;
	return (a == 's' && (b == 's' || b == 't')) ||
	       (a == 'f' && (b == 'f' || b == 'i' || b == 'l'));
}

static struct rx_node *
literal(struct parser *s, const uint8_t *at, uint32_t c)
{
	struct rx_range range[CASES_MAX];
	uint32_t n = 1;

	range[0] = (struct rx_range){c, c};
	if (s->fold) {
		n = 0;
		if (!add_cases(range, &n, c, c))
			return refuse(s, at, "without case, only ASCII letters are implemented");
		if (is_ligature(s->before, c))
			return refuse(s, at,
				"without case it matches a ligature as well, which is "
				"not implemented");
	}
	s->before = c;
	return set_node(s, rx_set_of(s->rx, range, n));
}

static int
hex_digit(uint8_t c)
{
	return c >= '0' && c <= '9'			     ? c - '0'
	       : tok_is_ascii_letter(c) && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
							     : -1;
}

/* \xHH, \x{H...}, \uHHHH after their letter. */
static bool
hex(struct parser *s, const uint8_t *at, uint32_t *c)
{
	const bool braces = s->p[-1] == 'x' && take(s, "{");
	const int digits = braces ? 6 : s->p[-1] == 'x' ? 2 : 4;
	int n = 0;

	*c = 0;
	for (; n < digits && s->p < s->end && hex_digit(*s->p) >= 0; n++)
		*c = *c << 4 | (uint32_t)hex_digit(*s->p++);
	if (n == 0 || (digits == 4 && n < 4) || (braces && !take(s, "}")) ||
		*c >= TOK_CODE_POINTS || (digits == 2 && *c >= 0x80)) {
		refuse(s, at, "not a code point");
		return false;
	}
	return true;
}

/* \p{Name}, \P{Name}, \p{^Name}; s->p is behind \p. */
static struct rx_set *
property(struct parser *s, const uint8_t *at)
{
	const bool not = s->p[-1] == 'P';
	const uint8_t *name, *close;
	struct rx_set *set;
	bool known, turn;

	if (!take(s, "{"))
		return refuse(s, at, "a property needs braces: \\p{L}");
	turn = take(s, "^") != not ;
	name = s->p;
	close = memchr(name, '}', (size_t)(s->end - name));
	if (close == NULL)
		return refuse(s, at, "no closing brace");
	s->p = close + 1;
	set = rx_set_property(s->rx, (const char *)name, (size_t)(close - name), &known);
	if (!known)
		return refuse(s, at,
			"unknown property (implemented: general categories of one or "
			"two letters, and Han)");
	if (s->fold)
		return refuse(s, at, "a property in (?i:...) is not implemented");
	return set != NULL && turn ? rx_set_not(s->rx, set) : set;
}

/* What follows a backslash: a set, or NULL and *c is the character. False: refused. */
static bool
escape(struct parser *s, bool in_brackets, struct rx_set **set, uint32_t *c)
{
	static const char from[] = "trnfvae", to[] = "\t\r\n\f\v\a\x1b";
	const uint8_t *at = s->p - 1;
	const char *simple;

	*set = NULL;
	if (s->p == s->end)
		return refuse(s, at, "nothing follows") != NULL;
	*c = *s->p++;
	simple = *c < 0x80 ? memchr(from, (int)*c, sizeof(from) - 1) : NULL;
	if (simple != NULL) {
		*c = (uint8_t)to[simple - from];
		return true;
	}
	switch (*c) {
	case 'x':
	case 'u':
		return hex(s, at, c);
	case 'p':
	case 'P':
		*set = property(s, at);
		return *set != NULL;
	case 's':
	case 'd':
	case 'w':
	case 'S':
	case 'D':
	case 'W':
		if (s->fold && (*c | 0x20) == 'w')
			return refuse(s, at, "not implemented in (?i:...)") != NULL;
		*set = rx_set_escape(s->rx, (char)(*c | 0x20), in_brackets);
		if (*set != NULL && *c < 'a')
			*set = rx_set_not(s->rx, *set);
		return *set != NULL;
	default:
		if (*c >= 0x80 || tok_is_ascii_letter(*c) || (*c >= '0' && *c <= '9'))
			return refuse(s, at, "this escape is not implemented") != NULL;
		return true;
	}
}

/* A character as it is. */
static uint32_t
character(struct parser *s)
{
	const uint32_t len = tok_utf8_length(*s->p), c = tok_utf8_decode(s->p, len);

	s->p += len;
	return c;
}

/* ---- classes ---- */

static bool
is_posix(const struct parser *s)
{
	const uint8_t *p = s->p + 1;

	if (s->end - s->p < 4 || s->p[0] != '[' || s->p[1] != ':')
		return false;
	while (++p < s->end && (tok_is_ascii_letter(*p) || *p == '^'))
		;
	return s->end - p >= 2 && p[0] == ':' && p[1] == ']';
}

static struct rx_set *parse_class(struct parser *s);

/* One character of a class, or a set. */
static bool
class_item(struct parser *s, struct rx_set **set, uint32_t *c)
{
	*set = NULL;
	if (s->p == s->end)
		return refuse(s, s->p, "a class has no end") != NULL;
	if (is_posix(s))
		return refuse(s, s->p, "POSIX brackets are not implemented: use \\p{...}") != NULL;
	if (take(s, "[")) {
		*set = parse_class(s);
		return *set != NULL;
	}
	if (take(s, "\\"))
		return escape(s, true, set, c);
	*c = character(s);
	return true;
}

/* Items up to && or ]. */
static struct rx_set *
class_part(struct parser *s, const uint8_t *open)
{
	struct rx_range *range =
		rx_alloc(s->rx, (size_t)(s->end - s->p + 1) * 2 + CASES_MAX * 2, sizeof(*range));
	struct rx_set *set = NULL, *all = NULL;
	uint32_t n = 0, low, high;
	const size_t room = (size_t)(s->end - s->p + 1) * 2;

	if (range == NULL)
		return NULL;
	while (s->p < s->end && *s->p != ']' &&
		!(s->end - s->p > 1 && s->p[0] == '&' && s->p[1] == '&')) {
		const uint8_t *at = s->p;

		if (!class_item(s, &set, &low))
			return NULL;
		if (set != NULL) {
			all = all == NULL ? set : rx_set_or(s->rx, all, set);
			if (all == NULL)
				return NULL;
			continue;
		}
		high = low;
		if (s->end - s->p > 1 && s->p[0] == '-' && s->p[1] != ']') {
			s->p++;
			if (!class_item(s, &set, &high))
				return NULL;
			if (set != NULL || high < low)
				return refuse(s, at, "not a range");
		}
		if (s->fold) {
			if (n > room)
				return refuse(s, at, "too long a class without case");
			if (!add_cases(range, &n, low, high))
				return refuse(
					s, at, "without case, only ASCII letters are implemented");
		} else {
			range[n++] = (struct rx_range){low, high};
		}
	}
	if (s->p == s->end)
		return refuse(s, open, "a class has no end");
	if (n == 0 && all == NULL)
		return refuse(s, open, "an empty class");
	set = rx_set_of(s->rx, range, n);
	return set == NULL || all == NULL ? set : rx_set_or(s->rx, all, set);
}

/* Behind its [. */
static struct rx_set *
parse_class(struct parser *s)
{
	const uint8_t *open = s->p - 1;
	const bool not = take(s, "^");
	struct rx_set *set;

	if (++s->depth > DEPTH_MAX)
		return refuse(s, open, "nested too deeply, the limit is 32");
	set = class_part(s, open);
	while (set != NULL && take(s, "&&")) {
		const struct rx_set *part = class_part(s, open);

		set = part == NULL ? NULL : rx_set_and(s->rx, set, part);
	}
	if (set == NULL)
		return NULL;
	s->p++;
	s->depth--;
	return not ? rx_set_not(s->rx, set) : set;
}

/* ---- groups ---- */

/* The set of characters that a look-ahead names. */
static bool
look_set(struct parser *s, const uint8_t *at, const struct rx_node *n, struct rx_node *look)
{
	if (n->kind == RX_EITHER)
		return look_set(s, at, n->a, look) && look_set(s, at, n->b, look);
	if (n->kind != RX_SET && n->kind != RX_LOOK)
		return refuse(s, at, "a look-ahead of other than one character is not implemented");
	look->set = look->set == NULL ? n->set : rx_set_or(s->rx, look->set, n->set);
	look->end |= n->end;
	return look->set != NULL;
}

/* Behind (?= or (?!. */
static struct rx_node *
look_ahead(struct parser *s, const uint8_t *at, bool not )
{
	struct rx_node *inside = parse_either(s), *look;

	if (inside == NULL)
		return NULL;
	if (!take(s, ")"))
		return refuse(s, at, "a group has no end");
	look = node(s, RX_LOOK, NULL, NULL);
	if (look == NULL || !look_set(s, at, inside, look))
		return NULL;
	if (not ) {
		look->set = rx_set_not(s->rx, look->set);
		look->end = !look->end;
	}
	return look->set == NULL ? NULL : look;
}

/* $: the end of a line. \z: the end of the text. */
static struct rx_node *
end_of(struct parser *s, bool line)
{
	struct rx_range range[] = {{'\n', '\n'}};
	struct rx_node *look = node(s, RX_LOOK, NULL, NULL);

	if (look == NULL)
		return NULL;
	look->set = rx_set_of(s->rx, range, line);
	look->end = true;
	return look->set == NULL ? NULL : look;
}

/* May it be possessive? Where it stops, a character of its set cannot follow: see program.c. */
static bool
is_simple(const struct rx_node *n)
{
	return n->kind == RX_SET ||
	       (n->kind == RX_REPEAT && n->a->kind == RX_SET && n->mode == RX_GREEDY &&
		       (n->min == n->max || n->max == RX_NO_MAX || (n->min == 0 && n->max == 1)));
}

/* Behind its (. */
static struct rx_node *
group(struct parser *s)
{
	const uint8_t *at = s->p - 1;
	const bool fold = s->fold;
	struct rx_node *inside;
	bool atomic = false;

	if (take(s, "?=") || take(s, "?!"))
		return look_ahead(s, at, s->p[-1] == '!');
	if (take(s, "?<=") || take(s, "?<!"))
		return refuse(s, at, "look-behind is not implemented");
	if (take(s, "?i:"))
		s->fold = true;
	else if (take(s, "?>"))
		atomic = true;
	else if (!take(s, "?:") && s->p < s->end && *s->p == '?')
		return refuse(s, at,
			"this group is not implemented (implemented: (...), (?:...), "
			"(?i:...), (?>.), (?=.), (?!.))");
	inside = parse_either(s);
	if (inside == NULL)
		return NULL;
	if (!take(s, ")"))
		return refuse(s, at, "a group has no end");
	if (atomic && !is_simple(inside))
		return refuse(s, at,
			"an atomic group of more than one repeated character class is "
			"not implemented");
	if (atomic && inside->kind == RX_REPEAT)
		inside->mode = RX_POSSESSIVE;
	s->fold = fold;
	return inside;
}

static struct rx_node *
parse_atom(struct parser *s)
{
	const uint8_t *at = s->p;
	struct rx_range all_but[] = {{'\n', '\n'}};
	struct rx_set *set;
	uint32_t c;

	if (take(s, "("))
		return group(s);
	if (take(s, "[")) {
		s->before = 0;
		return set_node(s, parse_class(s));
	}
	if (take(s, ".")) {
		set = rx_set_of(s->rx, all_but, 1);
		return set == NULL ? NULL : set_node(s, rx_set_not(s->rx, set));
	}
	if (take(s, "$"))
		return end_of(s, true);
	if (take(s, "\\z"))
		return end_of(s, false);
	if (take(s, "\\")) {
		if (!escape(s, false, &set, &c))
			return NULL;
		return set != NULL ? set_node(s, set) : literal(s, at, c);
	}
	if (*at == '^')
		return refuse(s, at, "the start of a line is not implemented");
	if (*at == '*' || *at == '+' || *at == '?')
		return refuse(s, at, "nothing to repeat");
	return literal(s, at, character(s));
}

/* ---- repeats ---- */

static bool
number(struct parser *s, const uint8_t **p, uint32_t *n)
{
	bool any = false;

	for (*n = 0; *p < s->end && **p >= '0' && **p <= '9' && *n <= REPEAT_MAX; ++*p, any = true)
		*n = *n * 10 + (uint32_t)(**p - '0');
	return any;
}

/* {m}, {m,}, {,n}, {m,n}; other braces are literal. */
static bool
braces(struct parser *s, uint32_t *min, uint32_t *max)
{
	const uint8_t *p = s->p + 1;
	const bool first = number(s, &p, min);
	bool second = first;

	*max = *min;
	if (p < s->end && *p == ',') {
		p++;
		second = number(s, &p, max);
		if (!second)
			*max = RX_NO_MAX;
	}
	if ((!first && !second) || p == s->end || *p != '}')
		return false;
	s->p = p + 1;
	return true;
}

static struct rx_node *
repeat(struct parser *s, const uint8_t *at, struct rx_node *a, uint32_t min, uint32_t max,
	enum rx_mode mode)
{
	struct rx_node *n = node(s, RX_REPEAT, a, NULL);

	if (n == NULL)
		return NULL;
	if (min > REPEAT_MAX || (max > REPEAT_MAX && max != RX_NO_MAX))
		return refuse(s, at, "repeated too often, the limit is 1000");
	if (min > max)
		return refuse(s, at, "the least number of repeats is above the most");
	if (a->nullable)
		return refuse(s, at, "repeating what may be empty is not implemented");
	if (mode == RX_POSSESSIVE && a->kind != RX_SET)
		return refuse(s, at,
			"a possessive repeat of more than one character class is not "
			"implemented");
	n->min = min;
	n->max = max;
	n->mode = mode;
	n->nullable = min == 0;
	return n;
}

static struct rx_node *
parse_repeat(struct parser *s)
{
	const uint8_t *at = s->p;
	struct rx_node *a = parse_atom(s);

	while (a != NULL && s->p < s->end) {
		uint32_t min = 0, max = RX_NO_MAX;
		enum rx_mode mode = RX_GREEDY;

		if (*s->p == '{' && braces(s, &min, &max)) {
			if (min == max && s->p < s->end && *s->p == '?')
				return refuse(s, at, "{n}? is not implemented");
			mode = take(s, "?") ? RX_LAZY : RX_GREEDY;
		} else if (*s->p == '*' || *s->p == '+' || *s->p == '?') {
			min = *s->p == '+';
			max = *s->p++ == '?' ? 1 : RX_NO_MAX;
			mode = take(s, "?") ? RX_LAZY : take(s, "+") ? RX_POSSESSIVE : RX_GREEDY;
		} else {
			break;
		}
		a = repeat(s, at, a, min, max, mode);
		s->before = 0;
	}
	return a;
}

static struct rx_node *
parse_concat(struct parser *s)
{
	struct rx_node *all = NULL;

	while (s->p < s->end && *s->p != '|' && *s->p != ')') {
		struct rx_node *next = parse_repeat(s);

		if (next == NULL)
			return NULL;
		all = all == NULL ? next : node(s, RX_CONCAT, all, next);
		if (all == NULL)
			return NULL;
	}
	return all != NULL ? all : node(s, RX_EMPTY, NULL, NULL);
}

static struct rx_node *
parse_either(struct parser *s)
{
	const uint32_t before = s->before;
	struct rx_node *all;

	if (++s->depth > DEPTH_MAX)
		return refuse(s, s->p, "nested too deeply, the limit is 32");
	all = parse_concat(s);
	while (all != NULL && take(s, "|")) {
		struct rx_node *next;

		s->before = before;
		next = parse_concat(s);
		all = next == NULL ? NULL : node(s, RX_EITHER, all, next);
	}
	s->depth--;
	return all;
}

struct rx_node *
rx_parse(struct rx *rx, const char *regex)
{
	const size_t n = strlen(regex);
	struct parser s = {.rx = rx, .begin = (const uint8_t *)regex};
	const struct tok_utf8_span span = tok_utf8_scan(s.begin, n);
	struct rx_node *tree;

	if (strcmp(regex, TOK_REGEX_PUNCTUATION) == 0)
		return set_node(&s, rx_set_punctuation(rx));
	if (strcmp(regex, TOK_REGEX_NUMERIC) == 0)
		return set_node(&s, rx_set_numeric(rx));
	s.p = s.begin;
	s.end = s.begin + n;
	if (n > TOK_REGEX_BYTES_MAX) {
		tok_fail(rx->err, "%s: a regular expression of %zu bytes, the limit is %u",
			rx->where, n, TOK_REGEX_BYTES_MAX);
		return NULL;
	}
	if (span.valid != n)
		return refuse(&s, s.begin + span.valid, "not UTF-8");
	tree = parse_either(&s);
	if (tree == NULL)
		return NULL;
	if (s.p < s.end)
		return refuse(&s, s.p, "no group is open");
	if (tree->nullable)
		return refuse(&s, s.begin, "it matches the empty text, which is not implemented");
	return tree;
}
