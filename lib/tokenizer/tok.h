/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libtok: exact streaming tokenization. The public interface.
 *
 * A vocabulary is read-only once loaded and can be shared by any number of threads. A cache belongs
 * to one thread. A stream is plain memory that the caller owns; one thread may use it at a time.
 * Memory is allocated only when a vocabulary or a cache is created, and by tok_encode and
 * tok_offsets, until they return, for text that no stream would accept.
 *
 * The ids of a stream do not depend on how its text is split into pieces. They are the ids that the
 * reference tokenizer gives for the whole text. Special tokens in the text are treated as text
 * unless a flag of enum tok_flags is set. Input bytes mean bytes.decode("utf-8", "replace").
 * doc/internals/streaming.md states when an id is certain and can be released.
 *
 *	struct tok_error err;
 *	struct tok_vocab *v = tok_vocab_load("gpt2", NULL, &err); // NULL: err.text says why
 *	struct tok_cache *c = tok_cache_create(v, 0, NULL);
 *	size_t room = tok_encode_bound(v, n, 0);
 *	uint32_t *ids = malloc(room * sizeof(*ids));
 *	struct tok_result r = tok_encode(v, c, text, n, 0, ids, room); // ids[0 .. r.produced)
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

/* An error message for the user. It names the thing, the value, the limit and the remedy. */
struct tok_error {
	char text[512];
};

/*
 * The allocator for tables. alloc returns zeroed memory aligned to `align` (a power of two), or
 * NULL. free releases memory that alloc returned. Both are called only while a vocabulary or a
 * cache is made or freed.
 */
struct tok_mem {
	void *(*alloc)(void *ctx, size_t bytes, size_t align);
	void (*free)(void *ctx, void *p, size_t bytes);
	void *ctx;
};

struct tok_load_opts {
	const char *pretokenizer;  /* for files that do not name it (.tiktoken, vocab.json,
				      vocab.txt) and are not recognised by their content; or NULL.
				      For example "gpt2". For vocab.txt: "bert-uncased", the
				      default, or "bert-cased" */
	const struct tok_mem *mem; /* NULL: mmap, with transparent huge pages where they help */
	const char *algo; /* "exact", or "greedy": longest match within pretokens; NULL: exact */
	const char
		*search_path; /* colon-separated folders; NULL: $TOK_VOCAB_PATH, then the default */
	bool huge_pages;      /* put tables in reserved huge pages (libhugetlbfs); the load fails if
				 there are too few. `mem` must be NULL */
};

/*
 * Load a vocabulary by name or path. Formats: tokenizer.json, a GPT-2 pair (vocab.json and
 * merges.txt in one folder), .tiktoken, tekken.json, BERT vocab.txt, SentencePiece .model, and the
 * .tokv files that tok_vocab_compile writes. A string with a '/' or with the ending of one of these
 * formats is a path. Any other string is a name, looked up in the search path. In a folder, the
 * first of these that exists is loaded: tokenizer.json, vocab.json with merges.txt, vocab.txt,
 * tekken.json, tokenizer.model. opts may be NULL. On error returns NULL and fills in *err.
 * Unsupported components are rejected with an error that names them.
 */
struct tok_vocab *tok_vocab_load(
	const char *name_or_path, const struct tok_load_opts *opts, struct tok_error *err);
/* The search path where none is given, into `room` bytes. False: they are too few. */
bool tok_vocab_search_path(char *out, size_t room);
/*
 * Load the text of a tokenizer.json or a tekken.json: `size` bytes at `text`, which the caller may
 * free afterwards; at most 256 MiB. `name` stands for it in errors, and for its path in
 * tok_vocab_info. Otherwise as tok_vocab_load.
 */
struct tok_vocab *tok_vocab_load_memory(const char *name, const void *text, size_t size,
	const struct tok_load_opts *opts, struct tok_error *err);
void tok_vocab_free(struct tok_vocab *v);

/*
 * Compile a vocabulary: write its tables to the file `out`, whose name must end in ".tokv". The
 * vocabulary is found and read as by tok_vocab_load. Loading the compiled file maps it: no table is
 * built, and all processes share the memory. The file is replaced atomically. Equal input gives an
 * equal file. On error returns false and fills in *err.
 */
bool tok_vocab_compile(const char *name_or_path, const struct tok_load_opts *opts, const char *out,
	struct tok_error *err);

struct tok_vocab_info {
	const char *name;   /* as given to tok_vocab_load; the vocabulary owns all strings here */
	const char *path;   /* file it was read from */
	const char *format; /* "tokenizer.json", "vocab.json", "tiktoken", "tekken.json",
			       "vocab.txt", "sentencepiece", "tokv" */
	const char *source; /* "tokv": the format and files it was compiled from; else NULL */
	const char *pretokenizer; /* "gpt2", "bert", "metaspace"; "none" */
	const char *normalizer;	  /* "none": decoding gives the same text back; "nfc", "bert",
				     "steps": several, or others;
				     "sentencepiece"; "metaspace": U+2581 is decoded as a blank */
	const char *algo;	  /* "exact", "greedy" */
	uint32_t checksum;	  /* CRC-32 over the canonical content, never 0: equal for equal
				     tokenizers, whatever their file format */
	uint32_t n_ids;		  /* all ids are below this */
	uint32_t n_merges;
	uint32_t n_special;	  /* special tokens: recognised only with TOK_SPECIAL */
	uint32_t n_added;	  /* other added tokens: recognised without TOK_ADDED_AS_TEXT */
	uint32_t max_token_bytes; /* longest decoded token that encoding can give; a special token
				     may be longer */
	size_t table_bytes;	  /* memory of the tables */
	bool cuts_before_blanks;  /* a text can be cut before a single blank between two ASCII
				     letters: without added tokens, the pieces have its ids */
	const char *storage;	  /* of the tables: "mapped file", "huge pages", "memory" */
	const char *isa; /* instruction set used for encoding: "portable", "avx2", "avx512",
			    "neon" */
};
struct tok_vocab_info tok_vocab_info(const struct tok_vocab *v);

/*
 * Post-processing of ids as a tokenizer.json requests it. The checksum does not cover it: the
 * checksum covers only how text becomes ids. Encoding adds the template if TOK_TEMPLATE is set.
 * Truncation and padding are left to the caller.
 */
#define TOK_TEMPLATE_MAX 16
struct tok_template {
	uint32_t n_before, n_after;
	uint32_t before[TOK_TEMPLATE_MAX]; /* ids before a text: [CLS], <|begin_of_text|> */
	uint32_t after[TOK_TEMPLATE_MAX];
};
struct tok_truncation {
	bool on;
	bool left;	     /* remove the first ids, not the last */
	bool pairs_only;     /* truncates the second text of a pair: a single text is an error */
	uint32_t max_length; /* in ids, including those of the template */
	uint32_t stride;     /* ids that consecutive overflowing parts have in common */
};
struct tok_padding {
	bool on;
	bool left;
	bool fixed; /* pad to `length` ids; else to the longest text of a batch */
	uint32_t length;
	uint32_t multiple_of; /* round lengths up to a multiple of this; 0: do not round */
	uint32_t id, type_id;
};
struct tok_shape {
	struct tok_template around; /* for a vocab.txt with [CLS] and [SEP]: these two */
	struct tok_truncation truncation;
	struct tok_padding padding;
};
const struct tok_shape *tok_vocab_shape(const struct tok_vocab *v);

/* Bytes of one id, not NUL-terminated, owned by the vocabulary. For WordPiece its text, including
 * ##. NULL if there is no such id. */
const uint8_t *tok_vocab_token(const struct tok_vocab *v, uint32_t id, uint32_t *len);

/*
 * Merge number i, in order of priority: ids of two tokens and of the one they become. Merges that
 * no text can use are not listed. False: there are no more, or the vocabulary is not byte-level
 * BPE.
 */
struct tok_merge {
	uint32_t left, right, result;
};
bool tok_vocab_merge(const struct tok_vocab *v, uint32_t i, struct tok_merge *out);

/* The i-th regular expression that splits a text, applied in order. NULL: there are no more, or the
 * vocabulary does not keep them. */
const char *tok_vocab_regex(const struct tok_vocab *v, uint32_t i);

/* Ids of special tokens in ascending order; *n is their number. Owned by the vocabulary. */
const uint32_t *tok_vocab_specials(const struct tok_vocab *v, uint32_t *n);

/* An added token that encoding recognises in text, with the flags of a tokenizer.json. */
struct tok_added_info {
	uint32_t id;
	bool special, single_word, lstrip, rstrip, normalized;
};
/* Added token number i, in no particular order; one may have several numbers. False: there are no
 * more. */
bool tok_vocab_added(const struct tok_vocab *v, uint32_t i, struct tok_added_info *out);

/*
 * A cache of the ids of pretokens seen before. It has a fixed size and belongs to one thread.
 * `entries` is rounded up to a power of two from 16 to 2^24; 0: the default. NULL if memory
 * allocation fails.
 */
struct tok_cache *tok_cache_create(
	const struct tok_vocab *v, uint32_t entries, const struct tok_mem *mem);
void tok_cache_free(struct tok_cache *c);

/* The result of a call, returned by value. */
enum tok_status {
	TOK_OK = 0,   /* all input was consumed */
	TOK_MORE = 1, /* the output is full: read it, then call again with the remaining input */
	TOK_BAD = 2,  /* rejected, see `error`; the stream has ended */
};
enum tok_error_code {
	TOK_ERROR_NONE = 0,
	TOK_ERROR_UTF8 = 1,	/* invalid UTF-8, and TOK_STRICT_UTF8 is set */
	TOK_ERROR_CARRY = 2,	/* more than TOK_CARRY_MAX bytes whose ids are not yet certain */
	TOK_ERROR_ID = 3,	/* decode: no such id */
	TOK_ERROR_FINISHED = 4, /* fed after the end or after TOK_BAD */
	TOK_ERROR_MARKS = 5,	/* more than TOK_NFC_MARKS_MAX combining marks in a row */
	TOK_ERROR_ADDED = 6, /* more than TOK_ADDED_HELD_MAX bytes that an added token may take */
	TOK_ERROR_WHITE = 7, /* more than TOK_SPM_WHITE_MAX bytes of white space held at once */
};
struct tok_result {
	enum tok_status status;
	enum tok_error_code error;
	/*
	 * Bytes (encode) or ids (decode) consumed. With TOK_ERROR_UTF8 this is where the invalid
	 * character begins, and with TOK_ERROR_ID the index of the id. With the other errors, the
	 * error is at or after this index.
	 */
	size_t consumed;
	/* TOK_ERROR_UTF8: bytes of the invalid character that earlier calls were given */
	size_t begun;
	size_t produced; /* ids (encode) or bytes (decode) written */
};

enum tok_flags {
	TOK_STRICT_UTF8 = 1 << 0, /* reject invalid UTF-8 instead of replacing it by U+FFFD */
	TOK_TEMPLATE = 1 << 1,	  /* add the vocabulary's template (tok_vocab_shape) */
	/*
	 * Which added tokens are recognised in text. With neither of these flags: those that are
	 * not special, as in the reference with encode_special_tokens.
	 */
	TOK_ADDED_AS_TEXT = 1 << 2, /* none; overrides TOK_SPECIAL. For untrusted text, which must
				       not control a model */
	TOK_SPECIAL = 1 << 3,	    /* all, including special tokens. For trusted text only */
};

/*
 * The most combining marks in a row that form C accepts in a stream. Marks of decomposed characters
 * are counted one by one. The Unicode standard has no limit; its Stream-Safe Text Format allows 30.
 * tok_encode has none either: it allocates at most 24 bytes for each mark of a longer row.
 */
#define TOK_NFC_MARKS_MAX 256

/* The most bytes of one pretoken whose ids may depend on later bytes, and of text held after it. */
#define TOK_CARRY_MAX 2048

/*
 * The most bytes of an added token that is recognised in text. A stream holds at most twice as many
 * bytes, because a token may also take the white space before it. Text that is fed in one piece
 * has no such limit.
 */
#define TOK_ADDED_BYTES_MAX 512
#define TOK_ADDED_HELD_MAX (2 * TOK_ADDED_BYTES_MAX)

/* The most ids per byte of text. Most vocabularies give three or fewer. */
#define TOK_IDS_PER_BYTE_MAX 12

/*
 * The largest value of tok_stream_bound(s, 1). White space may wait twice: before a map and after
 * it.
 */
#define TOK_STREAM_HELD_MAX                                                                        \
	(2 * TOK_CARRY_MAX + 3 +                                                                   \
		TOK_IDS_PER_BYTE_MAX * (20 + 4 * (3 + TOK_NFC_MARKS_MAX) + 15 * TOK_LITERALS_MAX + \
					       2 * TOK_SPM_WHITE_MAX + 2 * TOK_ADDED_HELD_MAX) +   \
		2 * TOK_TEMPLATE_MAX)

#define TOK_WORD_MAX 500 /* upper limit of a WordPiece vocabulary's max_input_chars_per_word */

/* The most bytes of an open pretoken that are kept, to encode it as a whole. Private. */
#define TOK_KEPT_MAX 63

/* The open word of a WordPiece vocabulary. Characters are normalized ones. Private. */
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
	uint8_t origin; /* index of position 0 in tok_stream.score, a ring of the last scores */
	uint8_t run;	/* enum tok_unigram_run */
	bool later;	/* a text between added tokens has ended */
	uint16_t since; /* bytes since a score of tok_stream.single was last reset to 0, at most
			   TOK_UNIGRAM_SCORES */
};

/* State of the normalization to form C (normalize/nfc.h). Private. */
struct tok_nfc {
	bool decompose; /* to form D instead */
	uint32_t n;	/* entries of held[], including the starter's; 0: nothing is held */
	uint32_t n_in;	/* bytes of text that they came from */
	bool unordered; /* marks are not sorted by combining class */
	uint32_t room;	/* entries of held[] */
	/* [0]: the starter, or TOK_NFC_NO_STARTER; then marks. Overwritten by their UTF-8. Set by
	   tok_nfc_next: own[], or `more` unless that is NULL. */
	uint32_t *held;
	uint32_t own[1 + TOK_NFC_MARKS_MAX];
	uint32_t *more; /* `room` entries, and as many to sort them */
	/* Double the room. NULL: a stream's is fixed. */
	bool (*grow)(struct tok_nfc *n);
};

/* The most texts of several characters that a normalizer replaces. Private. */
#define TOK_LITERALS_MAX 4

/* The most bytes of normalized white space that are held: it is dropped at the end of a text. */
#define TOK_SPM_WHITE_MAX 1000

/* A USER_DEFINED piece, or a key of sentencepiece's map, has fewer bytes than this. */
#define TOK_SPM_WINDOW 256

/* Longer clusters are normalized character by character, as in normalizers/precompiled.rs. */
#define TOK_CLUSTER_BYTES 5

/* State of the open grapheme cluster (grapheme.h). */
struct tok_cluster {
	uint8_t before;	  /* enum tok_grapheme of its last character */
	uint8_t emoji;	  /* 1: a pictograph and marks; 2: the same, then a joiner */
	uint8_t conjunct; /* 1: a consonant and marks; 2: the same, with a linker among them */
};

/* State of the other steps of a normalizer (normalize/steps.h). Private. */
struct tok_norm_state {
	uint8_t matched[TOK_LITERALS_MAX]; /* bytes of each text that came */
	uint8_t run;			   /* enum tok_white_run */
	uint8_t n_one, one[3];		   /* a character of white space that is held */
	bool begun;			   /* a character other than white space has come */
	uint8_t side; /* of a border between words: what came before (tok_border_before) */
	uint16_t n_white;
	uint8_t white[TOK_SPM_WHITE_MAX];
};

/* State of SentencePiece's normalizer (normalize/spm_norm.h). Private. */
struct tok_spm_state {
	struct tok_cluster cluster;
	bool decided; /* the open cluster is normalized character by character */
	uint8_t n_held;
	uint8_t held[TOK_CLUSTER_BYTES]; /* the open cluster, unless `decided` */
	bool begun;			 /* a character other than white space has come */
	bool inside;			 /* sentencepiece: the last character was not a blank */
	uint8_t blanks;			 /* length of the open run of blanks: 0, 1, or 2 for more */
	uint16_t n_white;		 /* bytes in white[]; sentencepiece: blanks held */
	union {
		uint8_t white[TOK_SPM_WHITE_MAX];
		struct { /* sentencepiece: a possible beginning of a longer key */
			uint16_t n;
			uint8_t held[TOK_SPM_WINDOW];
		} window;
	};
};

/* Text that may be part of an added token, or white space that the token takes. Private. */
struct tok_added_state {
	uint16_t n_held;
	uint16_t begun; /* the search continues here; held[0 .. begun) is white space that a token
			   may take */
	bool strip;	/* the last token takes the white space that follows it */
	bool word;	/* a word character came before held[] */
	uint8_t held[TOK_ADDED_HELD_MAX];
};

/*
 * The state of one text that is being encoded. The caller owns the memory and calls
 * tok_stream_init; there is nothing to free. The fields are private. The vocabulary and the cache
 * must outlive the stream.
 */
struct tok_stream {
	const struct tok_vocab *vocab;
	struct tok_cache *cache;
	uint32_t flags;
	uint8_t finished; /* ended, or rejected with TOK_BAD */
	bool added[2];	  /* by set: whether its added tokens are recognised */
	uint8_t n_utf8;	  /* bytes of an incomplete character in utf8[] */
	uint8_t n_before; /* ids of the template not released yet */
	uint8_t n_after;
	bool prefix;	 /* a blank may be put before the text that follows */
	uint16_t n_held; /* bytes in held[]: they may belong to the open pretoken or not */
	uint8_t utf8[4];
	uint32_t state;		/* of the open pretoken */
	uint32_t unmerged_low;	/* vocab->unmerged[low .. high): the tokens for whole pretokens */
	uint32_t unmerged_high; /* that begin with the open pretoken */
	uint32_t node;		/* automaton state at the end of the open pretoken */
	uint32_t followed;	/* node of the first n_followed bytes of kept[] */
	uint32_t base;	/* the token that ends where pos[0] begins; TOK_NO_TOKEN at the start */
	uint32_t n_pos; /* bytes in pos[]: their ids are not released yet */
	uint16_t n_run; /* equal bytes at the end of the open pretoken */
	uint8_t run_byte;
	bool keeps; /* the bytes of the open pretoken are in kept[], from 1 on */
	uint8_t n_kept;
	uint8_t n_machine; /* of them: bytes that went through pos[] */
	uint8_t n_followed;
	uint8_t kept_given; /* bytes whose ids were released, and these ids */
	uint8_t ids_given;
	uint8_t kept[1 + TOK_KEPT_MAX];
	union {				     /* depends on the kind of vocabulary */
		uint32_t pos[TOK_CARRY_MAX]; /* [i]: last token of the encoding up to byte i */
		struct tok_open_word word;
	};
	union {
		uint8_t held[TOK_CARRY_MAX];
		double score[TOK_UNIGRAM_SCORES];
		struct { /* the same in single precision, as in sentencepiece */
			float score[TOK_UNIGRAM_SCORES];
			float taken[TOK_UNIGRAM_SCORES]; /* amount subtracted from it, or 0 */
		} single;
	};
	struct tok_nfc nfc;
	struct tok_norm_state norm;
	struct tok_spm_state spm;
	struct tok_unigram_state unigram;
	struct tok_added_state added_state[2];
};

/* cache may be NULL. */
void tok_stream_init(
	struct tok_stream *s, const struct tok_vocab *v, struct tok_cache *c, uint32_t flags);

/*
 * Feed `n` bytes at `text`. `last`: the text ends here (n may be 0). Ids that are certain are
 * written to ids[0 .. produced). If room >= tok_stream_bound(s, n), the result is never TOK_MORE.
 * If room < tok_stream_bound(s, 1), the call may consume nothing; that bound is at most
 * TOK_STREAM_HELD_MAX. Uses at most 128 KiB of stack.
 */
struct tok_result tok_stream_feed(
	struct tok_stream *s, const void *text, size_t n, bool last, uint32_t *ids, size_t room);

/* The most ids that a stream can still give if n more bytes are fed and the text ends. */
size_t tok_stream_bound(const struct tok_stream *s, size_t n);

/*
 * Bytes consumed whose ids have not been released yet. Bytes that are already normalized are
 * counted in their normalized form.
 */
size_t tok_stream_waiting(const struct tok_stream *s);

/*
 * Encode a whole text in one call. Equal to a stream that is fed once, but without the limit
 * TOK_NFC_MARKS_MAX. room must be at least tok_encode_bound(v, n, flags), where n is at most
 * SIZE_MAX / 32.
 */
struct tok_result tok_encode(const struct tok_vocab *v, struct tok_cache *c, const void *text,
	size_t n, uint32_t flags, uint32_t *ids, size_t room);
size_t tok_encode_bound(const struct tok_vocab *v, size_t n, uint32_t flags);

/* Bytes [begin, end) of a text. */
struct tok_range {
	size_t begin, end;
};

#define TOK_NO_WORD UINT32_MAX

/*
 * Find the bytes of the text that each id came from: range[0 .. n_ids). `ids` must be what
 * tok_encode gave for this text with these flags. word[i] becomes the number of the pretoken that
 * id i belongs to, from 0; each added token counts as one, and an id of the template has
 * TOK_NO_WORD. `word` may be NULL.
 *
 * - Byte-level token: its own bytes, including the blank before a word. It may begin or end inside
 *   a character.
 * - Where BERT's normalizer changed characters: all characters that the token may come from.
 * - Where another normalizer did: the characters that the reference counts; of several that were
 *   composed, the first.
 * - Unknown WordPiece token: the whole word.
 * - Unigram: the range that the reference gives, in bytes (doc/user/python.md).
 * - Added token: includes the white space that it takes.
 * - Id of the template: {0, 0}.
 *
 * Returns false if the text is not UTF-8, if the ids do not cover the text (a wrong id of the same
 * length may pass), or if the vocabulary has no offsets (tok_has_offsets); the contents of range[]
 * and word[] are then undefined. Not for the hot path. Uses at most 128 KiB of stack.
 */
bool tok_offsets(const struct tok_vocab *v, const void *text, size_t n, uint32_t flags,
	const uint32_t *ids, size_t n_ids, struct tok_range *range, uint32_t *word);

/* Does tok_offsets support this vocabulary? It does not support a SentencePiece .model of kind
 * Unigram, or one of kind BPE with a normalizer. */
bool tok_has_offsets(const struct tok_vocab *v);

/*
 * Decode ids to bytes. TOK_MORE: out is full, and `consumed` ids were decoded. TOK_BAD with
 * TOK_ERROR_ID: ids[consumed] is not in the vocabulary. ids[0] is decoded as the first id of a
 * text, which can decode differently from later ones (WordPiece). To decode the remaining ids after
 * TOK_MORE, use a decode stream.
 */
struct tok_result tok_decode(
	const struct tok_vocab *v, const uint32_t *ids, size_t n, uint8_t *out, size_t room);

/*
 * Streaming decode. It never releases part of a character: the bytes of an incomplete character
 * are held until the next call. With `last` they are written as they are. The output of all calls
 * together equals tok_decode of all ids. room must be at least 3 bytes plus the longest token,
 * including special tokens.
 */
struct tok_decode_stream {
	const struct tok_vocab *vocab;
	uint8_t n_held;
	uint8_t held[4];
	uint8_t begun; /* at least one id was decoded */
};
void tok_decode_stream_init(struct tok_decode_stream *d, const struct tok_vocab *v);
struct tok_result tok_decode_stream_feed(struct tok_decode_stream *d, const uint32_t *ids, size_t n,
	bool last, uint8_t *out, size_t room);

const char *tok_error_code_text(enum tok_error_code error);

#ifdef __cplusplus
}
#endif
#endif
