/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtok: exact streaming tokenization. The public interface.
 *
 * A vocabulary is loaded once, is read-only afterwards and may be shared by any number of
 * threads. A cache belongs to one thread. A stream belongs to one thread at a time and is plain
 * memory of the caller's. Nothing is allocated after a vocabulary and its caches are made.
 *
 * The ids of a stream do not depend on how its text was cut into pieces: they are those of the
 * whole text under the reference tokenizer, special tokens taken as text unless enum tok_flags says
 * otherwise. Bytes mean bytes.decode("utf-8", "replace"). doc/internals/streaming.md states which
 * ids may be given out when.
 */
#ifndef TOK_H
#define TOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tok_vocab;
struct tok_cache;

/* A message for a person: names the thing, the value, the limit and the remedy. */
struct tok_error {
	char text[512];
};

/*
 * Where tables live. alloc returns zeroed memory aligned to `align` (a power of two) or NULL;
 * free takes back what alloc gave. Used only while loading and freeing.
 */
struct tok_mem {
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *p, size_t bytes);
	void *ctx;
};

struct tok_load_opts {
	const char *pretokenizer; /* for files that do not say it (.tiktoken, vocab.json, vocab.txt)
				     and are not known by their content; or NULL. "gpt2"; for
				     vocab.txt "bert-cased", or "bert-uncased", the default */
	const struct tok_mem *mem; /* NULL: mmap, with transparent huge pages where they help */
	const char *algo; /* "exact", or "greedy": longest match within pretokens; NULL: exact */
	const char
		*search_path; /* colon-separated folders; NULL: $TOK_VOCAB_PATH, then the default */
	bool huge_pages;      /* tables in huge pages that are reserved (libhugetlbfs), or the load
				 fails; `mem` is NULL then */
};

/*
 * Load a vocabulary by name or path: a tokenizer.json, a GPT-2 pair (vocab.json with merges.txt
 * beside it), a .tiktoken file, a tekken.json, a BERT vocab.txt, a SentencePiece .model, or what
 * tok_vocab_compile made of one. A string with a '/' or an ending of one of these formats is a
 * path; anything else is a name looked up in the search path. Of a folder it is the first there is
 * of tokenizer.json, vocab.json with merges.txt, vocab.txt, tekken.json, tokenizer.model. opts may
 * be NULL. Returns NULL with *err filled in; a component that is not implemented is refused by
 * name.
 */
struct tok_vocab *tok_vocab_load(
	const char *name_or_path, const struct tok_load_opts *opts, struct tok_error *err);
void tok_vocab_free(struct tok_vocab *v);

/*
 * Write the tables of a vocabulary, which is found and read as tok_vocab_load does, to the file
 * `out`, whose name ends in ".tokv". Loading that maps it: nothing is built, and processes share
 * its memory. The file is there as a whole or not at all, and equal for equal input. False with
 * *err filled in.
 */
bool tok_vocab_compile(const char *name_or_path, const struct tok_load_opts *opts, const char *out,
	struct tok_error *err);

struct tok_vocab_info {
	const char *name;   /* as asked for; owned by the vocabulary, like all strings here */
	const char *path;   /* file it was read from */
	const char *format; /* "tokenizer.json", "vocab.json", "tiktoken", "tekken.json",
			       "vocab.txt", "sentencepiece", "tokv" */
	const char *source; /* of a "tokv", what it was compiled from: format, files; else NULL */
	const char *pretokenizer; /* "gpt2", "bert", "metaspace"; "none" */
	const char *normalizer;	  /* "none": text comes back from its ids; "nfc", "bert",
				     "sentencepiece", "metaspace": U+2581 comes back as a blank */
	const char *algo;	  /* "exact", "greedy" */
	uint32_t checksum;	  /* CRC-32 over the canonical content: equal for equal tokenizers,
				     whatever file format they came from; never 0 */
	uint32_t n_ids;		  /* ids are below this */
	uint32_t n_merges;
	uint32_t n_special;	  /* not given for text, but with TOK_SPECIAL */
	uint32_t n_added;	  /* other added tokens: not given with TOK_ADDED_AS_TEXT */
	uint32_t max_token_bytes; /* of those that encoding gives, as they are decoded; special
				     ones may be longer */
	size_t table_bytes;	  /* memory of the tables */
	const char *storage;	  /* where they are: "mapped file", "huge pages", "memory" */
	const char *isa; /* instruction set that encoding uses: "portable", "avx2", "avx512",
			    "neon" */
};
struct tok_vocab_info tok_vocab_info(const struct tok_vocab *v);

/*
 * What a tokenizer.json has done to the ids of a text, which the checksum leaves out: it names how
 * text becomes ids. Encoding puts the template around a text where TOK_TEMPLATE asks for it;
 * truncation and padding are the caller's.
 */
#define TOK_TEMPLATE_MAX 16
struct tok_template {
	uint32_t n_before, n_after;
	uint32_t before[TOK_TEMPLATE_MAX]; /* ids before a text: [CLS], <|begin_of_text|> */
	uint32_t after[TOK_TEMPLATE_MAX];
};
struct tok_truncation {
	bool on;
	bool left;	     /* the first ids go, not the last */
	bool pairs_only;     /* it cuts the second of two texts: one alone is an error */
	uint32_t max_length; /* ids, those of the template with them */
	uint32_t stride;     /* ids by which what was cut off overlaps */
};
struct tok_padding {
	bool on;
	bool left;
	bool fixed; /* to `length` ids; else to the longest of a batch */
	uint32_t length;
	uint32_t multiple_of; /* lengths are rounded up to one; 0: as they are */
	uint32_t id, type_id;
};
struct tok_shape {
	struct tok_template around; /* a vocab.txt that has them: [CLS], [SEP] */
	struct tok_truncation truncation;
	struct tok_padding padding;
};
const struct tok_shape *tok_vocab_shape(const struct tok_vocab *v);

/* Bytes of one id (of WordPiece its text, ## and all), not NUL-terminated, owned by the vocabulary;
 * NULL if there is no such id. */
const uint8_t *tok_vocab_token(const struct tok_vocab *v, uint32_t id, uint32_t *len);

/* Ids of special tokens, rising; their number to *n. Owned by the vocabulary. */
const uint32_t *tok_vocab_specials(const struct tok_vocab *v, uint32_t *n);

/*
 * A fixed-size cache of the ids of pretokens seen before, for one thread. `entries` is rounded
 * up to a power of two; 0 means the default. NULL if memory is short.
 */
struct tok_cache *tok_cache_create(
	const struct tok_vocab *v, uint32_t entries, const struct tok_mem *mem);
void tok_cache_free(struct tok_cache *c);

/* How a call went: by value, so that a result cannot be forgotten in a struct. */
enum tok_status {
	TOK_OK = 0,   /* all bytes taken */
	TOK_MORE = 1, /* room for ids ran short: take the ids, call again with the bytes left */
	TOK_BAD = 2,  /* refused, see `error`; the stream has ended */
};
enum tok_error_code {
	TOK_ERROR_NONE = 0,
	TOK_ERROR_UTF8 = 1,	/* not UTF-8, and TOK_STRICT_UTF8 was asked for */
	TOK_ERROR_CARRY = 2,	/* more than TOK_CARRY_MAX bytes whose ids are still uncertain */
	TOK_ERROR_ID = 3,	/* decode: no such id */
	TOK_ERROR_FINISHED = 4, /* fed after the end or after TOK_BAD */
	TOK_ERROR_MARKS = 5,	/* more combining marks in a row than form C is given for (nfc.h) */
	TOK_ERROR_ADDED = 6, /* more than TOK_ADDED_HELD_MAX bytes that an added token may take */
	TOK_ERROR_WHITE = 7, /* more than TOK_SPM_WHITE_MAX bytes of white space at the end */
};
struct tok_result {
	enum tok_status status;
	enum tok_error_code error;
	/*
	 * Bytes (encode) or ids (decode) taken. With TOK_ERROR_UTF8 those before the byte that does
	 * not belong; with the others it lies somewhere behind them.
	 */
	size_t consumed;
	size_t produced; /* ids (encode) or bytes (decode) written */
};

enum tok_flags {
	TOK_STRICT_UTF8 = 1 << 0, /* refuse invalid UTF-8 instead of replacing it by U+FFFD */
	TOK_TEMPLATE = 1 << 1,	  /* the vocabulary's template around the text (tok_vocab_shape) */
	/*
	 * Which added tokens are recognised in text. Without these flags: those that are not
	 * special, as the reference does with encode_special_tokens.
	 */
	TOK_ADDED_AS_TEXT = 1 << 2, /* none, whatever TOK_SPECIAL says: for text of others, who must
				       not steer a model */
	TOK_SPECIAL = 1 << 3,	    /* all, special ones too: for one's own text only */
};

/*
 * Combining marks in a row that form C can be given for, those of decomposed characters counted
 * one by one. The standard has no limit (its Stream-Safe Format allows 30).
 */
#define TOK_NFC_MARKS_MAX 256

#define TOK_CARRY_MAX 2048 /* bytes of one pretoken that may wait for later ones, and behind it */

/*
 * An added token that is recognised in text has at most so many bytes. Twice as many may wait,
 * where one takes the white space before it: of a text in pieces, for in one piece there is no
 * limit.
 */
#define TOK_ADDED_BYTES_MAX 512
#define TOK_ADDED_HELD_MAX (2 * TOK_ADDED_BYTES_MAX)

/* Ids that a vocabulary may make of a byte of text, at most; most make three or fewer. */
#define TOK_IDS_PER_BYTE_MAX 12

/* Most that tok_stream_bound(s, 1) can be. */
#define TOK_STREAM_HELD_MAX                                                                        \
	(2 * TOK_CARRY_MAX + 3 + 3 * 4 * (3 + TOK_NFC_MARKS_MAX) +                                 \
		TOK_IDS_PER_BYTE_MAX * (16 + TOK_SPM_WHITE_MAX + 2 * TOK_ADDED_HELD_MAX) +         \
		2 * TOK_TEMPLATE_MAX)

#define TOK_WORD_MAX 500 /* characters of a word that a WordPiece vocabulary may ask for */

/* The open word of a WordPiece vocabulary, characters as the normalizer leaves them. Private. */
struct tok_open_word {
	uint32_t n_chars;
	uint32_t n_ids;
	uint32_t n_marks;
	uint32_t id[TOK_WORD_MAX];   /* certain unless the word turns out to be unknown */
	uint32_t mark[TOK_WORD_MAX]; /* characters whose order later ones may change */
};

/* The open word of a Unigram vocabulary. Private. */
#define TOK_UNIGRAM_SCORES 256
struct tok_unigram_state {
	uint8_t origin; /* of position 0 in tok_stream.score, where there is one for each of the
			   last */
	uint8_t run;	/* enum tok_unigram_run */
	bool later;	/* a text between added tokens has ended */
	uint16_t since; /* bytes since tok_stream.single was last taken from, at most
			   TOK_UNIGRAM_SCORES */
};

/* A text on its way through form C (normalize/nfc.h). Private. */
struct tok_nfc {
	uint32_t n;	/* characters in held[]; 0: none, not even a place for the starter */
	uint32_t n_in;	/* bytes of text that they were */
	bool unordered; /* marks are not in the order of their classes */
	/* [0] the starter, or TOK_NFC_NO_STARTER; then marks. Their UTF-8 takes its place. */
	uint32_t held[1 + TOK_NFC_MARKS_MAX];
};

/* White space that waits, as it will be given out: the end of a text may leave it out. */
#define TOK_SPM_WHITE_MAX 1000

/* Bytes of a USER_DEFINED piece, or a key of sentencepiece's map, are fewer. */
#define TOK_SPM_WINDOW 256

/* Longer clusters go character by character (normalizers/precompiled.rs). */
#define TOK_CLUSTER_BYTES 5

/* Where a grapheme cluster stands (grapheme.h). */
struct tok_cluster {
	uint8_t before;	  /* enum tok_grapheme of its last character */
	uint8_t emoji;	  /* 1: a pictograph and marks; 2: and a joiner behind */
	uint8_t conjunct; /* 1: a consonant and marks; 2: with a linker among them */
};

/* A text on its way through the normalizer of SentencePiece (normalize/spm_norm.h). Private. */
struct tok_spm_state {
	struct tok_cluster cluster;
	bool decided; /* the open cluster goes character by character */
	uint8_t n_held;
	uint8_t held[TOK_CLUSTER_BYTES]; /* the open cluster, if it is not */
	bool begun;			 /* a character came that is no white space */
	bool inside;			 /* sentencepiece: the last one was no blank */
	uint8_t blanks;			 /* a run of them is open: 1, or 2 for more */
	uint16_t n_white;		 /* before it; sentencepiece: blanks */
	union {
		uint8_t white[TOK_SPM_WHITE_MAX];
		struct { /* sentencepiece: what may be the beginning of a longer key */
			uint16_t n;
			uint8_t held[TOK_SPM_WINDOW];
		} window;
	};
};

/* Text that may be, or belong to, an added token. Private. */
struct tok_added_state {
	uint16_t n_held;
	uint16_t begun; /* the search goes on here; before it white space that may be taken */
	bool strip;	/* white space is taken by the token before it */
	bool word;	/* a word character came before held[] */
	uint8_t held[TOK_ADDED_HELD_MAX];
};

/*
 * A text on its way through. The caller owns the memory, tok_stream_init prepares it; there is
 * nothing to free. Fields are private. The vocabulary and cache must outlive it.
 */
struct tok_stream {
	const struct tok_vocab *vocab;
	struct tok_cache *cache;
	uint32_t flags;
	uint8_t finished; /* ended or refused */
	uint8_t state;	  /* of the open pretoken (enum in pretok.h) */
	bool added[2];	  /* by set: added tokens are recognised */
	uint8_t n_utf8;	  /* bytes of an incomplete character in utf8[] */
	uint8_t n_before; /* ids of the template that are still to be given out */
	uint8_t n_after;
	bool prefix;	 /* a blank may come before the text that follows */
	uint16_t n_held; /* bytes in held[] that may or may not belong to the open pretoken */
	uint8_t utf8[4];
	uint32_t unmerged_low;	/* tokens for whole pretokens that begin with the open one: */
	uint32_t unmerged_high; /* unmerged[low .. high) of the vocabulary */
	uint32_t node;		/* automaton state at the end of the open pretoken */
	uint32_t base;	/* token that ends where pos[0] begins, or TOK_NO_TOKEN at the start */
	uint32_t n_pos; /* bytes of the open pretoken whose ids are not yet given out */
	union {		/* by the kind of vocabulary */
		uint32_t pos[TOK_CARRY_MAX]; /* last token of the encoding that ends after byte i */
		struct tok_open_word word;
	};
	union {
		uint8_t held[TOK_CARRY_MAX];
		double score[TOK_UNIGRAM_SCORES];
		struct { /* likewise, as sentencepiece has them */
			float score[TOK_UNIGRAM_SCORES];
			float taken[TOK_UNIGRAM_SCORES]; /* from it, or 0 */
		} single;
	};
	union {
		struct tok_nfc nfc;
		struct tok_spm_state spm;
	};
	struct tok_unigram_state unigram;
	struct tok_added_state added_state[2];
};

/* cache may be NULL. */
void tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags);

/*
 * Feed `n` bytes at `text`; with `last` the text ends with them (n may be 0). Ids that are certain
 * are written to ids[0 .. produced). With room >= tok_stream_bound(s, n) the result is never
 * TOK_MORE; with less than tok_stream_bound(s, 1), which is at most TOK_STREAM_HELD_MAX, nothing
 * may be taken. It takes some 80 KiB of stack.
 */
struct tok_result tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room);

/* Most ids that feeding n more bytes, and ending, could give out. */
size_t tok_stream_bound(const struct tok_stream *s, size_t n);

/*
 * Bytes taken whose ids have not been given out yet; as they are normalized, where they are
 * already.
 */
size_t tok_stream_waiting(const struct tok_stream *s);

/*
 * Whole text at once: as a stream that is fed once. room must be at least
 * tok_encode_bound(v, n, flags).
 */
struct tok_result tok_encode(const struct tok_vocab *v, struct tok_cache *c, const void *text,
	size_t n, uint32_t flags, uint32_t *ids, size_t room);
size_t tok_encode_bound(const struct tok_vocab *v, size_t n, uint32_t flags);

/* Bytes of a text: from `begin` up to `end`. */
struct tok_range {
	size_t begin, end;
};

/*
 * Where the ids that tok_encode gave for the text with these flags stand in it, to range[0 ..
 * n_ids). A byte-level token has its own bytes, be they part of a character, with the blank before
 * a word; where a normalizer has changed characters, all of those it may come from, and a token
 * that is unknown the whole word. With Unigram it is what the reference gives, in bytes
 * (doc/user/python.md). An added token has the white space it takes as well, and ids of the
 * template have {0, 0}. False: the text is not UTF-8, or the ids are not those, or the vocabulary
 * has none (tok_has_offsets); nothing is said of ranges then. Not for the hot path; it takes some
 * 80 KiB of stack.
 */
bool tok_offsets(const struct tok_vocab *v, const void *text, size_t n, uint32_t flags,
	const uint32_t *ids, size_t n_ids, struct tok_range *range);

/* Does tok_offsets know its ids' places? Not those of SentencePiece's .model of kind Unigram, or of
 * kind BPE whose text is normalized. */
bool tok_has_offsets(const struct tok_vocab *v);

/*
 * Decode ids to bytes. TOK_MORE: out is full, consumed says how far it came. TOK_BAD with
 * TOK_ERROR_ID: ids[consumed] is not in the vocabulary. With WordPiece, whose text at the start of
 * all ids and behind others differs, ids[0] is at the start: what is left after TOK_MORE is
 * decoded by a stream.
 */
struct tok_result tok_decode(
	const struct tok_vocab *v, const uint32_t *ids, size_t n, uint8_t *out, size_t room);

/*
 * Streaming decode: never gives out part of a character. The bytes of an incomplete character wait
 * for the next call; `last` lets go of them as they are. What all calls give out together equals
 * tok_decode of all ids. room must exceed 3 bytes by the longest token, special or not.
 */
struct tok_decode_stream {
	const struct tok_vocab *vocab;
	uint8_t n_held;
	uint8_t held[4];
	uint8_t begun; /* not at the start any more */
};
void tok_decode_stream_init(struct tok_decode_stream *d, const struct tok_vocab *v);
struct tok_result tok_decode_stream_feed(struct tok_decode_stream *d, const uint32_t *ids, size_t n,
	bool last, uint8_t *out, size_t room);

const char *tok_error_code_text(enum tok_error_code error);

#ifdef __cplusplus
}
#endif
#endif
