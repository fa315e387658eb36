/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the borders of pretokens by arithmetic on masks, in blocks of 64 bytes, for each family. The
 * regular expressions are in names.c; tok_pretok_step() is the definition. The kernels, scan_*.c,
 * include this file after defining what scan_classes.h needs. Hot path.
 *
 *   text            I  '  v  e  .  S  e  t  .  .  n  o  w      (. is a blank)
 *   letter          1  0  1  1  0  1  1  1  0  0  1  1  1
 *   space           0  0  0  0  1  0  0  0  1  1  0  0  0
 *   after a letter  0  1  0  1  1  0  1  1  1  0  0  1  1
 *   begins, word    1  1  1  0  0  0  0  0  0  0  0  0  0     not after its class, or a blank
 *   begins, space   0  0  0  0  1  0  0  0  1  1  0  0  0     a run, or its last before a word
 *   contraction     0  1  1  1  0  0  0  0  0  0  0  0  0     'v begins no pretoken
 *
 * A run is filled from one of its bits by an addition, whose carry stops after it.
 */
#pragma once

#include "pieces_borders.h"
#include "scan_classes.h"

static inline bool
tok_is_newline(uint32_t cp)
{
	return cp == '\r' || cp == '\n';
}

/* DeepSeek's: U+4E00-9FA5, U+3040-30FF. */
static inline bool
tok_is_ideograph(uint32_t cp)
{
	return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff);
}

/* Characters that follow a character of m. before: 1 if the last one of the previous block is in m.
 */
ALWAYS_INLINE uint64_t
behind(uint64_t m, uint64_t before)
{
	return m << 1 | before;
}

/* For each run of m, the part from its first bit of `from` on. `from` is a subset of m. */
ALWAYS_INLINE uint64_t
run_from(uint64_t m, uint64_t from)
{
	return m & ~((m + from) & ~from);
}

/* What is known of a block from the previous block and from the borders found so far. */
struct borders {
	struct block b;
	uint64_t other;	  /* characters of runs of symbols */
	uint64_t opens;	  /* those of `other` that begin a pretoken without a blank before it */
	uint64_t tail;	  /* line ends after symbols: they belong to the symbols */
	uint64_t taken;	  /* characters of a contraction, without its quote */
	uint64_t begin;	  /* beginnings of pretokens */
	uint64_t decided; /* characters decided: all, or all but the last if `cut` */
	bool cut;	  /* a piece of text, not the last, ends inside a contraction */
};

/* ---- contractions ---- */

/* Offset of the i-th character of the block. */
ALWAYS_INLINE size_t
offset_of(const struct tok_pretok_scan *s, const struct block *b, uint32_t i)
{
	return s->at + (b->packed ? (uint32_t)__builtin_ctzll(unpack(&b->packing, 1ull << i)) : i);
}

static inline uint32_t
fold(uint8_t c)
{
	return c < 0x80 ? c | 0x20 : 0;
}

/* Length in characters of the contraction after the quote at p: 1 or 2; 0: none; -1: cut off. */
static int
contraction(const uint8_t *p, const uint8_t *end, bool last, bool any_case)
{
	uint32_t c;

	if (p + 1 == end)
		return last ? 0 : -1;
	c = any_case ? fold(p[1]) : p[1];
	switch (c) {
	case 's':
	case 't':
	case 'm':
	case 'd':
		return 1;
	case 'r':
	case 'v':
	case 'l':
		if (p + 2 == end)
			return last ? 0 : -1;
		return (any_case ? fold(p[2]) : p[2]) == (c == 'l' ? 'l' : 'e') ? 2 : 0;
	default: /* U+017F is a small s */
		return any_case && p[1] == 0xc5 && p[2] == 0xbf;
	}
}

/* The i-th character is a quote that may begin a contraction. If it does, adds it to m->taken and
 * returns true. */
ALWAYS_INLINE bool
take_contraction(struct tok_pretok_scan *s, struct borders *m, uint32_t i, bool any_case)
{
	const int more =
		contraction(s->text + offset_of(s, &m->b, i), s->text + s->n, s->last, any_case);
	uint32_t end;

	if (more <= 0) {
		if (more < 0) {
			m->decided = (1ull << i) - 1;
			m->cut = true;
		}
		return false;
	}
	end = i + 1 + (uint32_t)more;
	m->taken |= (2ull << i) << (more - 1) | (more == 2 ? 2ull << i : 0);
	if (end > m->b.n)
		s->taken = end - m->b.n;
	return true;
}

/* Remove the characters that are taken from all classes. */
ALWAYS_INLINE void
leave_out_taken(struct borders *m)
{
	m->b.letter &= ~m->taken;
	m->b.upper &= ~m->taken;
	m->b.lower &= ~m->taken;
	m->other &= ~m->taken;
}

/* Contractions that are pretokens: a pretoken must begin at the quote. */
ALWAYS_INLINE void
lone_contractions(struct tok_pretok_scan *s, struct borders *m, bool any_case)
{
	for (uint64_t q = m->b.quote & m->opens; q != 0; q &= q - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(q);

		take_contraction(s, m, i, any_case);
		m->decided |= 1ull << i; /* the quote begins a pretoken in any case */
	}
	leave_out_taken(m);
}

/* Contractions that end a word (o200k). */
ALWAYS_INLINE void
word_contractions(struct tok_pretok_scan *s, struct borders *m)
{
	for (uint64_t q = m->b.quote; q != 0; q &= q - 1) {
		const uint32_t i = (uint32_t)__builtin_ctzll(q);

		if ((behind(m->b.letter, s->before.letter) >> i & 1) == 0 ||
			!take_contraction(s, m, i, true))
			continue;
		m->taken |= 1ull << i;
		leave_out_taken(m);
		m->opens &= ~m->taken;
	}
}

/* ---- numbers ---- */

ALWAYS_INLINE uint64_t
number_runs(struct tok_pretok_scan *s, const struct block *b)
{
	return b->number & ~behind(b->number, s->before.number);
}

/* \p{N}{1,3}; s->digits: characters of the open pretoken before the block, 1 to 3. */
ALWAYS_INLINE uint64_t
number_triples(struct tok_pretok_scan *s, const struct block *b)
{
	const uint64_t number = b->number, inside = number & number << 1 & number << 2;
	uint64_t begin = number_runs(s, b), all = inside;

	if ((s->before.number & number) != 0) {
		const uint64_t up_to = 2ull << (3 - s->digits);

		if ((number & (up_to - 1)) == up_to - 1)
			begin |= up_to >> 1;
	}
	if ((begin << 3 & inside) != 0) {
		for (uint32_t k = 3; k < 64; k *= 2) {
			begin |= begin << k & all;
			all &= all << k;
		}
	}
	if (number >> (b->n - 1) != 0)
		s->digits = begin != 0 ? b->n + (uint32_t)__builtin_clzll(begin) - 63
				       : s->digits + b->n;
	return begin;
}

/* ---- white space ---- */

/* The first character that begins at or after `at`; -1: the text ends before that. */
ALWAYS_INLINE int
character_at(const struct tok_pretok_scan *s, size_t at)
{
	while (at < s->n && (s->text[at] & 0xc0) == 0x80)
		at++;
	if (at >= s->n)
		return -1;
	return (int)tok_utf8_decode(s->text + at, tok_utf8_length(s->text[at]));
}

/* Its category. */
ALWAYS_INLINE int
category_at(const struct tok_pretok_scan *s, size_t at)
{
	const int cp = character_at(s, at);

	return cp < 0 ? cp : (int)tok_cat_of(s->v, (uint32_t)cp);
}

/* White space continues after the block: does it contain a line end? */
static __attribute__((noinline)) bool
newline_follows(const struct tok_pretok_scan *s, size_t at)
{
	for (; at < s->n; at++) {
		if ((s->text[at] & 0xc0) == 0x80)
			continue;
		if (tok_is_newline(s->text[at]))
			return true;
		if (category_at(s, at) != TOK_CAT_SPACE)
			return false;
	}
	/* What follows is not known. cl100k keeps white space at the end of a text together. */
	return !s->last || s->v->pretok == TOK_PRETOK_CL100K;
}

/* White space, except line ends after symbols. before_word: the last character of a run begins a
 * pretoken there. */
ALWAYS_INLINE uint64_t
white_space(struct tok_pretok_scan *s, struct borders *m, uint64_t before_word)
{
	const struct block *b = &m->b;
	const uint64_t space = b->space & ~m->tail, newline = b->newline & ~m->tail;
	const uint64_t gap = b->space & ~b->newline;
	uint64_t after = gap & behind(newline, s->before.newline);
	const uint64_t begin = space & ~behind(space, s->before.space);

	if (after != 0) { /* \s*[\r\n]+ extends to the last line end */
		const uint64_t ends = (gap + after) & ~gap & b->valid, again = ends & newline;
		const uint64_t open = run_from(gap, after) >> (b->n - 1);
		const uint64_t top = 1ull << (63 - __builtin_clzll(after));

		if (again != 0)
			after &= ~select_starts(after, ends, again);
		if (open != 0 && newline_follows(s, s->at + TOK_SCAN_BLOCK))
			after &= ~top;
	}
	s->before.space = space >> (b->n - 1);
	s->before.newline = newline >> (b->n - 1);
	return begin | after | (gap & before_word);
}

/* ---- symbols ---- */

/* Runs of symbols, then line ends and `more`. Characters of `more` may also be inside a run. */
ALWAYS_INLINE void
symbols(struct tok_pretok_scan *s, struct borders *m, uint64_t more)
{
	const struct block *b = &m->b;
	const uint64_t end = b->newline | more;
	const uint64_t first =
		(b->newline & behind(m->other, s->before.other)) | (end & 1 & s->before.tail);
	uint64_t other;

	m->tail = run_from(end, first);
	other = m->other & ~m->tail;
	m->opens = other & ~behind(other, s->before.other) & ~behind(b->blank, s->before.blank);
}

/*
 * A mark belongs to a run of symbols (\p{M} is in [^\s\p{L}\p{N}]) or to a word. It belongs to a
 * word if one can begin there: not after two symbols, and not after a blank and a symbol.
 */
ALWAYS_INLINE void
symbols_and_marks(struct tok_pretok_scan *s, struct borders *m)
{
	for (;;) {
		uint64_t joins, other;

		symbols(s, m, m->b.slash);
		other = m->other & ~m->tail;
		joins = m->b.mark & ~m->other & behind(other, s->before.other) &
			~behind(m->opens, s->before.opens);
		if (joins == 0)
			return;
		m->other |= run_from(m->b.mark, joins & -joins); /* decide the other marks later */
	}
}

/* ---- words ---- */

/* Capitals continue after the block: does another letter or a mark follow them? */
static __attribute__((noinline)) bool
word_follows(const struct tok_pretok_scan *s, size_t at)
{
	for (; at < s->n; at++) {
		int cat;

		if ((s->text[at] & 0xc0) == 0x80)
			continue;
		cat = category_at(s, at);
		if (cat != TOK_CAT_UPPER)
			return cat > TOK_CAT_UPPER || cat == TOK_CAT_MARK;
	}
	return !s->last;
}

/* Borders inside runs of letters and marks, which b->letter has: A*B+|A+B* of o200k. */
ALWAYS_INLINE uint64_t
case_borders(struct tok_pretok_scan *s, const struct block *b)
{
	const uint64_t upper = b->upper, caseless = b->letter & ~(upper | b->lower);
	const uint64_t low =
		b->lower | run_from(caseless, caseless & behind(b->lower, s->before.low));
	/* Capitals after caseless letters. They are A, or begin a new word if the word ends with
	 * B before them. */
	uint64_t after = upper & behind(caseless & ~low, s->before.caseless);
	const uint64_t begin = upper & behind(low, s->before.low);

	if (after != 0) {
		const uint64_t ends = (upper + after) & ~upper & b->valid, again = ends & b->letter;
		const uint64_t open = run_from(upper, after) >> (b->n - 1);
		const uint64_t top = 1ull << (63 - __builtin_clzll(after));

		if (again != 0)
			after &= ~select_starts(after, ends, again);
		if (open != 0 && word_follows(s, s->at + TOK_SCAN_BLOCK))
			after &= ~top;
	}
	s->before.low = low >> (b->n - 1);
	s->before.caseless = (caseless & ~low) >> (b->n - 1);
	return begin | after;
}

/* ---- families ---- */

/* Shift a mask to the characters before. `next`: the character after the block is set. */
ALWAYS_INLINE uint64_t
ahead(uint64_t m, bool next, const struct block *b)
{
	return m >> 1 | (uint64_t)next << (b->n - 1);
}

ALWAYS_INLINE void
gpt2_borders(struct tok_pretok_scan *s, struct borders *m)
{
	const struct block *b = &m->b;
	const uint64_t front = ~behind(b->blank, s->before.blank), word = b->valid & ~b->space;
	const int next = category_at(s, s->at + TOK_SCAN_BLOCK);

	m->other = word & ~(b->letter | b->number | m->taken);
	m->opens = m->other & ~behind(m->other, s->before.other) & front;
	lone_contractions(s, m, false);
	m->begin = m->opens | (b->letter & ~behind(b->letter, s->before.letter) & front) |
		   (number_runs(s, b) & front) | (b->space & ~behind(b->space, s->before.space)) |
		   (b->space & ahead(word, next >= 0 && next != TOK_CAT_SPACE, b));
	s->before.space = b->space >> (b->n - 1);
}

/* cl100k, llama3, qwen2, and those with cases, o200k and tekken. */
ALWAYS_INLINE void
words_borders(struct tok_pretok_scan *s, struct borders *m, enum tok_pretok kind)
{
	const bool cased = kind == TOK_PRETOK_O200K || kind == TOK_PRETOK_TEKKEN;
	struct block *b = &m->b;
	const uint64_t word = b->valid & ~b->space;
	const int next = category_at(s, s->at + TOK_SCAN_BLOCK);
	uint64_t prefix;

	m->other = word & ~(b->letter | b->number | m->taken);
	if (cased) {
		m->other &= ~b->mark;
		symbols_and_marks(s, m);
		b->letter |= b->mark & ~m->other;
		if (kind == TOK_PRETOK_O200K)
			word_contractions(s, m);
	} else {
		symbols(s, m, 0);
		lone_contractions(s, m, true);
	}
	prefix = m->opens | (b->space & ~b->newline);
	m->begin = m->opens | white_space(s, m, ahead(word, next >= 0 && next != TOK_CAT_SPACE, b));
	m->begin |= b->letter & ~behind(b->letter | prefix, s->before.letter | s->before.prefix);
	if (cased)
		m->begin |= case_borders(s, b);
	m->begin |= kind == TOK_PRETOK_QWEN2 || kind == TOK_PRETOK_TEKKEN ? b->number
									  : number_triples(s, b);
	s->before.prefix = prefix >> (b->n - 1);
}

/* Borders in and before runs of ideographs, which the third expression splits like other text. */
ALWAYS_INLINE uint64_t
ideograph_borders(struct tok_pretok_scan *s, const struct block *b, int cp)
{
	const uint64_t run = b->ideograph, letter = run & (b->letter | b->mark);
	const uint64_t symbol = run & b->symbol, none = run & ~(letter | symbol);
	const bool next = cp >= 0 && tok_is_ideograph((uint32_t)cp) &&
			  (tok_cat_of(s->v, (uint32_t)cp) >= TOK_CAT_UPPER ||
				  tok_cat_of(s->v, (uint32_t)cp) == TOK_CAT_MARK);
	const uint64_t begin =
		(run & ~behind(run, s->before.ideograph)) |
		(symbol & ~behind(symbol, s->before.ideograph_symbol)) |
		(letter & behind(symbol, s->before.ideograph_symbol)) |
		(none & (~behind(none, s->before.ideograph_none) | ahead(letter, next, b)));

	s->before.ideograph = run >> (b->n - 1);
	s->before.ideograph_symbol = symbol >> (b->n - 1);
	s->before.ideograph_none = none >> (b->n - 1);
	return begin;
}

ALWAYS_INLINE void
deepseek_borders(struct tok_pretok_scan *s, struct borders *m)
{
	struct block *b = &m->b;
	const int cp = character_at(s, s->at + TOK_SCAN_BLOCK);
	const int next =
		cp < 0 || tok_is_ideograph((uint32_t)cp) ? -1 : (int)tok_cat_of(s->v, (uint32_t)cp);
	const uint64_t letter = (b->letter | b->mark) & ~b->ideograph;
	const uint64_t ascii_letter = letter & b->ascii;
	uint64_t none, word, prefix, joins, joined;

	m->begin = ideograph_borders(s, b, cp);
	b->letter = letter;
	m->other = b->symbol & ~b->ideograph;
	/* Characters that match no alternative: the last one may be the prefix of a word. */
	none = b->valid & ~(letter | m->other | b->number | b->space | b->ideograph);
	symbols(s, m, 0);
	/* To what comes before it, a number or an ideograph is the end of the text. */
	word = ahead(b->valid & ~(b->space | b->number | b->ideograph),
		next >= 0 && next != TOK_CAT_SPACE && next != TOK_CAT_NUMBER, b);
	m->begin |= m->opens | white_space(s, m, word) | number_triples(s, b);
	word = ahead(letter, next >= TOK_CAT_UPPER || next == TOK_CAT_MARK, b);
	m->begin |= none & (~behind(none, s->before.none) | word);
	/* ASCII letters join an ASCII symbol; other letters after them begin a word. */
	joins = m->opens & b->ascii;
	joined = run_from(ascii_letter, ascii_letter & behind(joins, s->before.joins));
	prefix = none | (b->space & ~b->newline);
	m->begin |=
		letter & ~joined & ~behind(letter | prefix, s->before.letter | s->before.prefix);
	m->begin |= letter & ~joined & behind(joined, s->before.joins);
	s->before.none = none >> (b->n - 1);
	s->before.prefix = prefix >> (b->n - 1);
	s->before.joins = (joined | joins) >> (b->n - 1);
}

/*
 * BERT's: a symbol is a word; the other characters between white space and symbols are one. The
 * ends of words are their own, since white space belongs to none. The text has classes of
 * bert_norm.h: of the categories there are SPACE, SYMBOL and OTHER.
 */
ALWAYS_INLINE void
bert_borders(struct tok_pretok_scan *s, struct borders *m)
{
	struct block *b = &m->b;
	uint64_t space = b->blank | b->newline | (b->space & ~b->ascii), begin, end;
	const uint64_t han = tok_cat_of(s->v, 0x4e00) == TOK_CAT_SYMBOL ? b->han : 0;
	uint64_t rest = b->control & ~b->newline, word;

	for (; rest != 0; rest &= rest - 1) { /* tabs, and what few texts have */
		const uint32_t i = (uint32_t)__builtin_ctzll(rest);

		space |= (uint64_t)(category_at(s, offset_of(s, b, i)) == TOK_CAT_SPACE) << i;
	}
	m->opens = b->symbol | han;
	m->other = b->valid & ~space;
	word = m->other & ~m->opens;
	m->begin = m->opens | (word & ~behind(word, s->before.letter));
	begin = m->begin | space;
	end = begin & behind(m->other, s->before.other);
	b->letter = word;
	if (b->packed)
		end = unpack(&b->packing, end);
	write_starts(s->end + s->n_ends, s->at, end);
	s->n_ends += (uint32_t)__builtin_popcountll(end);
}

/* ---- all of them ---- */

ALWAYS_INLINE uint32_t
scan_block(struct tok_pretok_scan *s, size_t *start, enum tok_pretok kind)
{
	struct borders m = {.taken = (1ull << s->taken) - 1, .decided = ~0ull};
	struct block *b = &m.b;
	uint32_t last;

	classify(b, s->v, s->text + s->at, s->n - s->at);
	if (b->n == 0) { /* the text ends with the rest of a character */
		s->at = s->n;
		return 0;
	}
	s->taken = 0;
	leave_out_taken(&m);
	if (kind == TOK_PRETOK_GPT2)
		gpt2_borders(s, &m);
	else if (kind == TOK_PRETOK_DEEPSEEK)
		deepseek_borders(s, &m);
	else if (kind == TOK_PRETOK_BERT)
		bert_borders(s, &m);
	else
		words_borders(s, &m, kind);

	last = b->n - 1;
	s->before.letter = b->letter >> last;
	s->before.number = b->number >> last;
	s->before.blank = b->blank >> last;
	s->before.other = (m.other & ~m.tail) >> last;
	s->before.opens = m.opens >> last;
	s->before.tail = m.tail >> last;

	m.begin &= m.decided;
	if (b->packed)
		m.begin = unpack(&b->packing, m.begin);
	write_starts(start, s->at, m.begin);
	s->at = m.cut || s->n - s->at < TOK_SCAN_BLOCK ? s->n : s->at + TOK_SCAN_BLOCK;
	return (uint32_t)__builtin_popcountll(m.begin);
}

/* tok_pretok_scan for a text of this family. */
ALWAYS_INLINE uint32_t
scan_family(struct tok_pretok_scan *s, size_t *start, uint32_t room, enum tok_pretok kind)
{
	/*
	 * start[] cannot alias it. At the beginning and the end of a text it is not copied: the
	 * processor waits if it reads at once what was just written in other parts.
	 */
	struct tok_pretok_scan x = {
		.v = s->v, .text = s->text, .n = s->n, .last = s->last, .end = s->end};
	uint32_t n = 0;

	if (s->at > 0)
		x = *s;
	do
		n += kind == TOK_PRETOK_SENTENCEPIECE ? scan_pieces(&x, start + n)
						      : scan_block(&x, start + n, kind);
	while (x.at < x.n && room - n >= TOK_SCAN_BLOCK);
	if (x.at < x.n) {
		*s = x;
	} else {
		s->at = x.at;
		s->n_ends = x.n_ends;
	}
	return n;
}

ALWAYS_INLINE uint32_t
scan_blocks(struct tok_pretok_scan *s, size_t *start, uint32_t room)
{
	switch (s->v->pretok) {
	case TOK_PRETOK_GPT2:
		return scan_family(s, start, room, TOK_PRETOK_GPT2);
	case TOK_PRETOK_O200K:
		return scan_family(s, start, room, TOK_PRETOK_O200K);
	case TOK_PRETOK_TEKKEN:
		return scan_family(s, start, room, TOK_PRETOK_TEKKEN);
	case TOK_PRETOK_DEEPSEEK:
		return scan_family(s, start, room, TOK_PRETOK_DEEPSEEK);
	case TOK_PRETOK_QWEN2:
		return scan_family(s, start, room, TOK_PRETOK_QWEN2);
	case TOK_PRETOK_BERT:
		return scan_family(s, start, room, TOK_PRETOK_BERT);
	case TOK_PRETOK_SENTENCEPIECE:
		return scan_family(s, start, room, TOK_PRETOK_SENTENCEPIECE);
	default: /* they differ only in white space at the end: see newline_follows() */
		return scan_family(s, start, room, TOK_PRETOK_LLAMA3);
	}
}
