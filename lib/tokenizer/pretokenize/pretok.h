/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The second machine: characters to pretokens, as the regular expression of the vocabulary's family
 * finds them (pretokenize/names.c). No regular expression is executed. A stepper takes one
 * character at a time and returns what it does to the open pretoken.
 *
 * The stepper is used at the ends of pieces of text (pretokenize/feed.c). For the text between,
 * kernels scan 64 bytes at a time (pretokenize/scan_*.c). Both must agree.
 */
#pragma once

#include "vocab.h"

/* State of the open pretoken, tok_stream.state. Each family uses some of them. */
enum tok_pretok_state {
	TOK_ST_NONE = 0, /* no pretoken is open */
	/* white space */
	TOK_ST_BLANK,	 /* one U+0020, which a word may follow */
	TOK_ST_SPACE,	 /* one other white space character */
	TOK_ST_SPACES,	 /* two or more; the last is held: it may begin the next pretoken */
	TOK_ST_NEWLINES, /* up to a line end; white space after it is held */
	/* letters */
	TOK_ST_LETTERS,
	TOK_ST_UPPERS,	    /* only capitals, perhaps after a prefix */
	TOK_ST_MIXED,	    /* capitals and caseless letters; the last is caseless */
	TOK_ST_MIXED_UPPER, /* the same; capitals after the last caseless letter are held */
	TOK_ST_LOWERS,	    /* small and caseless letters, after anything */
	TOK_ST_ASCII,	    /* ASCII letters after an ASCII symbol */
	/* a contraction after a word: held from its quote on */
	TOK_ST_WORD_QUOTE,
	TOK_ST_WORD_QUOTE_RV,
	TOK_ST_WORD_QUOTE_L,
	/* numbers */
	TOK_ST_NUMBERS,
	TOK_ST_NUMBER_1,
	TOK_ST_NUMBER_2,
	/* the rest */
	TOK_ST_OTHERS,
	TOK_ST_OTHERS_TAIL, /* others, then line ends */
	TOK_ST_OTHER_1,	    /* one, which may be the prefix of a word */
	TOK_ST_SYMBOL_1,    /* one ASCII symbol, which ASCII letters may follow */
	TOK_ST_QUOTE,	    /* ' at the beginning */
	TOK_ST_QUOTE_RV,    /* ' then r or v */
	TOK_ST_QUOTE_L,	    /* ' then l */
	TOK_ST_GAP_1,	    /* one that matches nothing else; may be the prefix of a word */
	TOK_ST_GAP,	    /* two or more of these; the last is held */
	TOK_ST_IDEOGRAPHS,
};

/* What a character does to the open pretoken and to held[], the bytes not decided so far. */
enum tok_pretok_step {
	TOK_STEP_TAKE,	     /* held[] and the character belong to it */
	TOK_STEP_TAKE_CLOSE, /* the same, and the pretoken ends after the character */
	TOK_STEP_HOLD,	     /* hold the character too */
	TOK_STEP_TAKE_HOLD,  /* held[] belongs to it; hold the character */
	TOK_STEP_HELD_CLOSE, /* held[] belongs to it, and it ends; step the character again */
	TOK_STEP_CLOSE,	     /* it ends; step held[] again, then the character */
};

/* Step for the character cp of category cat; *state becomes the state after it. */
enum tok_pretok_step tok_pretok_gpt2_step(uint32_t *state, enum tok_cat cat, uint32_t cp);
enum tok_pretok_step tok_pretok_words_step(
	enum tok_pretok kind, uint32_t *state, enum tok_cat cat, uint32_t cp);
enum tok_pretok_step tok_pretok_deepseek_step(uint32_t *state, enum tok_cat cat, uint32_t cp);
/* The same for SentencePiece's models. `known`: some token has the character. */
enum tok_pretok_step tok_pretok_pieces_step(
	const struct tok_vocab *v, uint32_t *state, uint32_t known, uint32_t cp);

/* Step for the next character of a vocabulary's text. */
static inline enum tok_pretok_step
tok_pretok_step(const struct tok_vocab *v, uint32_t *state, uint32_t cp)
{
	const enum tok_cat cat = tok_cat_of(v, cp);

	switch (v->pretok) {
	case TOK_PRETOK_GPT2:
		return tok_pretok_gpt2_step(state, cat, cp);
	case TOK_PRETOK_DEEPSEEK:
		return tok_pretok_deepseek_step(state, cat, cp);
	case TOK_PRETOK_SENTENCEPIECE:
		return tok_pretok_pieces_step(v, state, cat, cp);
	default:
		return tok_pretok_words_step(v->pretok, state, cat, cp);
	}
}

/* Does held[] belong to the open pretoken if the text ends here? If not, it is scanned again. */
static inline bool
tok_pretok_end_takes_held(enum tok_pretok kind, uint32_t state)
{
	if (kind == TOK_PRETOK_SENTENCEPIECE)
		return false; /* the states of this family are characters */
	return state == TOK_ST_SPACES || state == TOK_ST_GAP ||
	       (state == TOK_ST_NEWLINES && kind == TOK_PRETOK_CL100K);
}

/* DeepSeek's: U+4E00-9FA5, U+3040-30FF. */
static inline bool
tok_is_ideograph(uint32_t cp)
{
	return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff);
}

static inline bool
tok_is_newline(uint32_t cp)
{
	return cp == '\r' || cp == '\n';
}

static inline enum tok_pretok_step
tok_step_take(uint32_t *state, enum tok_pretok_state next)
{
	*state = (uint32_t)next;
	return TOK_STEP_TAKE;
}

static inline enum tok_pretok_step
tok_step_take_close(uint32_t *state)
{
	*state = TOK_ST_NONE;
	return TOK_STEP_TAKE_CLOSE;
}

static inline enum tok_pretok_step
tok_step_hold(uint32_t *state, enum tok_pretok_state next)
{
	*state = (uint32_t)next;
	return TOK_STEP_HOLD;
}

static inline enum tok_pretok_step
tok_step_close(uint32_t *state)
{
	*state = TOK_ST_NONE;
	return TOK_STEP_CLOSE;
}

/* Step for white space after one character of white space. */
static inline enum tok_pretok_step
tok_pretok_second_space(uint32_t *state, uint32_t cp)
{
	return tok_is_newline(cp) ? tok_step_take(state, TOK_ST_NEWLINES)
				  : tok_step_hold(state, TOK_ST_SPACES);
}

/*
 * Find the borders of pretokens in a piece of well-formed UTF-8, a block at a time. The piece must
 * begin where a pretoken begins. The caller zeroes this struct, sets v, text, n and last, and calls
 * tok_pretok_scan until `at` reaches n.
 */
struct tok_pretok_scan {
	const struct tok_vocab *v;
	const uint8_t *text;
	size_t n;
	bool last; /* the text ends at n */
	size_t at; /* scanned up to here */
	/* used by the stepper */
	size_t held;	/* bytes before `at` that are held */
	uint32_t state; /* enum tok_pretok_state */
	/* used by the kernels */
	struct {
		uint64_t letter, number, other, opens, tail, space, newline, blank, prefix, low,
			caseless, none, ideograph, joins;
	} before;	 /* of the character before `at`: 1, or 0 (scan_borders.h) */
	uint32_t digits; /* numbers of an open pretoken */
	uint32_t taken;	 /* characters from `at` on that belong to a contraction */
	/* BERT: white space belongs to no pretoken, so their ends are listed too. The caller sets
	   `end`, with room for TOK_SCAN_BLOCK behind the n_ends that it has */
	size_t *end;
	uint32_t n_ends;
};

#define TOK_SCAN_BLOCK 64

/*
 * Scan the next block. Write the offsets in `text` at which pretokens begin to start[], in
 * ascending order; it has room for TOK_SCAN_BLOCK. Returns their number. A pretoken is certain once
 * the start of the next one is known. The last pretoken ends at n or is still open.
 */
uint32_t tok_pretok_scan(struct tok_pretok_scan *scan, size_t *start);

/* The same with the stepper. This is the definition. */
uint32_t tok_pretok_step_scan(struct tok_pretok_scan *scan, size_t *start);

/* The same for SentencePiece's models. */
uint32_t tok_pretok_pieces_scan(struct tok_pretok_scan *scan, size_t *start);

/* Feed well-formed text. `last`: the text ends here. False: the carry was exceeded. */
bool tok_pretok_feed(struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* The same for BERT's words. */
void tok_pretok_bert_feed(
	struct tok_stream *s, const uint8_t *p, size_t n, bool last, uint32_t **ids);

/* End the text and the open pretoken. False: the carry was exceeded. */
bool tok_pretok_finish(struct tok_stream *s, uint32_t **ids);
