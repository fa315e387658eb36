/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A loaded vocabulary: read-only tables, built once by vocab_build.c.
 *
 * libtok identifies a token by its *rank id*. The 256 single bytes have the rank ids 0..255. The
 * result of merge number r has the rank id 256 + r. So a token of an earlier merge has a lower
 * rank id, and the result of a merge gives its rank. Users see *outside ids*: `ext` maps a rank id
 * to its outside id.
 */
#pragma once

#include <assert.h>
#include <string.h>

#include "tables/added_set.h"
#include "tables/longest.h"
#include "tables/metaspace.h"
#include "tables/norm.h"
#include "tables/repeats.h"
#include "tables/stages.h"
#include "tables/words.h"
#include "unicode/classes.h"
#include "unicode/inline.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "keys are bytes as they lie in memory");

#define TOK_BYTES 256u
#define TOK_KEY_BYTES 8 /* words of up to 8 bytes are looked up by value */

/* A word of up to 8 bytes that is one token, which no merge makes. len 0: free. */
struct tok_word {
	uint64_t key; /* its bytes, little-endian, padded with zeros */
	uint32_t id;  /* outside id */
	uint32_t len;
};
static_assert(sizeof(struct tok_word) == 16, "four to a cache line");

/* The same of more than 8 bytes. len 0: free. */
struct tok_long_word {
	uint64_t first, last; /* its first and its last 8 bytes: most words have at most 16 */
	uint32_t id;	      /* outside id */
	uint32_t len;
	uint32_t off; /* offset of its bytes in `bytes` */
	uint32_t reserved;
};
static_assert(sizeof(struct tok_long_word) == 32, "two to a cache line");

/*
 * A node of the Aho-Corasick automaton over all tokens. Nodes are numbered breadth first, so the
 * children of a node are consecutive. The number of a child is `first` plus its rank in the bit set
 * `child`. Node 0 is the root. One cache line.
 */
struct tok_node {
	uint64_t child[4]; /* bit b: there is a child for byte b */
	uint8_t below[4];  /* number of children in child[0 .. i) */
	uint32_t first;	   /* node of the first child */
	uint32_t fail;	   /* node of the longest proper suffix that is in the trie */
	uint32_t token;	   /* rank id of the token spelled by this node, or TOK_NO_TOKEN */
	uint32_t dict;	   /* longest proper suffix that is a token, or 0 */
	uint16_t depth;	   /* bytes spelled */
	uint16_t extends;  /* 0: no longer token begins with these bytes; else TOK_EXTENDS... */
	union {
		/* Unigram: the score of `token`, which is an outside id; in the root: of the
		 * unknown token. */
		double score;
		/* BPE: what all longer tokens that begin with these bytes have in common
		   (stems.c). Not used in the root or where `extends` is 0 */
		struct {
			uint32_t stem;	/* rank id of the largest token that begins all of them */
			uint32_t limit; /* rank id of the first merge that extends the stem, or
					   TOK_NO_TOKEN */
		};
	};
};
static_assert(sizeof(struct tok_node) == 64, "one cache line");

/* tok_node.extends */
#define TOK_EXTENDS 1u
#define TOK_EXTENDS_RUN 2u	 /* BPE: the node spells a run of one byte; */
#define TOK_EXTENDS_RUN_SHIFT 8u /* this byte is stored from this bit on */

/*
 * Two bytes side by side, by first << 8 | second. The least rank ids tell which merges of two bytes
 * are certain (encode/merge/bpe_merge.h). They are UINT16_MAX if they are not below.
 */
struct tok_byte_pair {
	uint32_t merge;	   /* rank id of the two bytes merged, or TOK_NO_TOKEN */
	uint16_t as_right; /* least of a merge whose left token ends with the first byte, and whose
			      right token is the second */
	uint16_t as_left;  /* least of a merge whose left token is the first byte, and whose right
			      token begins with the second */
};
static_assert(sizeof(struct tok_byte_pair) == 8, "eight to a cache line");

/*
 * TOK_PRETOK_SENTENCEPIECE: where the vector kernels cut ASCII text, by code point. If left[a] and
 * right[b] have a bit in common, no token has b after a. Not all such pairs are marked, but all
 * with a character that is in no token.
 */
struct tok_pieces_cuts {
	uint8_t left[128], right[128];
};

struct tok_split {
	uint32_t left, right; /* rank ids; a single byte is its own left and right */
};

/*
 * The tables: name, and the field of struct tok_vocab that points to it. All tables are allocated,
 * freed, moved, compiled and loaded by this list. A table holds no pointers, so it can lie at any
 * address. If you add a table or change the contents of one: check its size and its contents in
 * compiled/check.c, and increase TOK_COMPILED_VERSION.
 */
#define TOK_TABLES(T)                                                                              \
	T(WORD, word)                                                                              \
	T(LONG_WORD, long_word)                                                                    \
	T(UNMERGED, unmerged)                                                                      \
	T(PAIR, pair)                                                                              \
	T(PAIR_PILOT, pair_pilot)                                                                  \
	T(PAIR_FILTER, pair_filter)                                                                \
	T(BYTE_PAIR, byte_pair)                                                                    \
	T(SPLIT, split)                                                                            \
	T(EXT, ext)                                                                                \
	T(LEN, len)                                                                                \
	T(NODE, node)                                                                              \
	T(LONGEST_NODE, longest.node)                                                              \
	T(LONGEST_POP, longest.pop)                                                                \
	T(ADDED_TEXT, added[0].token)                                                              \
	T(ADDED_TEXT_NODE, added[0].trie.node)                                                     \
	T(ADDED_TEXT_POP, added[0].trie.pop)                                                       \
	T(ADDED_NORMAL, added[1].token)                                                            \
	T(ADDED_NORMAL_NODE, added[1].trie.node)                                                   \
	T(ADDED_NORMAL_POP, added[1].trie.pop)                                                     \
	T(SPECIAL, special)                                                                        \
	T(REPEAT, repeat)                                                                          \
	T(JOINS, joins)                                                                            \
	T(CUTS, cuts)                                                                              \
	T(CAT_PAGE, cat_page)                                                                      \
	T(CAT, cat)                                                                                \
	T(STEP, step)                                                                              \
	T(NORM_STEP, norm.step)                                                                    \
	T(MAP_PAGE, norm.page)                                                                     \
	T(MAP_ELEMENT, norm.element)                                                               \
	T(MAP_TEXT, norm.text)                                                                     \
	T(LITERAL, norm.literal)                                                                   \
	T(NORM_PAGE, wordpiece.norm.page)                                                          \
	T(NORM_ELEMENT, wordpiece.norm.element)                                                    \
	T(NORM_SEQ, wordpiece.norm.seq)                                                            \
	T(AT_START, wordpiece.at_start)                                                            \
	T(BEHIND, wordpiece.behind)                                                                \
	T(TEXT, wordpiece.text)                                                                    \
	T(CHARSMAP, unigram.norm.unit)                                                             \
	T(CHARSMAP_TEXT, unigram.norm.text)                                                        \
	T(SPAN, span)                                                                              \
	T(BYTES, bytes)

enum tok_table {
#define TOK_TABLE_ENUM(name, field) TOK_TABLE_##name,
	TOK_TABLES(TOK_TABLE_ENUM)
#undef TOK_TABLE_ENUM
		TOK_N_TABLES
};

/* Numbers stored in a compiled vocabulary. All other numbers follow from the sizes of the tables.
 */
#define TOK_NUMBERS(N)                                                                             \
	N(KIND, kind)                                                                              \
	N(PRETOK, pretok)                                                                          \
	N(STEP_WIDTH, step_width)                                                                  \
	N(METASPACE, metaspace.stage)                                                              \
	N(PREFIX, metaspace.prefix)                                                                \
	N(STRIP, metaspace.strip)                                                                  \
	N(IDS, info.n_ids)                                                                         \
	N(UNK, wordpiece.unk)                                                                      \
	N(MAX_CHARS, wordpiece.max_chars)                                                          \
	N(WHOLE, wordpiece.whole)                                                                  \
	N(WORD_END, word_end)                                                                      \
	N(DIGITS_APART, digits_apart)                                                              \
	N(WORDS, unigram.words)                                                                    \
	N(BLANKS, unigram.blanks)                                                                  \
	N(SPLIT_WORDS, unigram.split)                                                              \
	N(WORD_PREFIX, unigram.prefix)                                                             \
	N(UNKNOWN, unigram.unk)                                                                    \
	N(BYTE_FALLBACK, unigram.byte_fallback)                                                    \
	N(STRIP_LEFT, unigram.norm.strip_left)                                                     \
	N(STRIP_RIGHT, unigram.norm.strip_right)                                                   \
	N(SQUEEZE, unigram.norm.squeeze)                                                           \
	N(SQUEEZE_TO_MARK, unigram.norm.squeeze_to_mark)                                           \
	N(SENTENCEPIECE, unigram.norm.sentencepiece)                                               \
	N(DUMMY, unigram.norm.dummy)                                                               \
	N(CHECKSUM, info.checksum)                                                                 \
	N(SPECIAL, info.n_special)                                                                 \
	N(MAX_TOKEN_BYTES, info.max_token_bytes)                                                   \
	N(BEFORE, shape.around.n_before)                                                           \
	N(AFTER, shape.around.n_after)                                                             \
	N(TRUNCATES, shape.truncation.on)                                                          \
	N(TRUNCATES_LEFT, shape.truncation.left)                                                   \
	N(TRUNCATES_PAIRS, shape.truncation.pairs_only)                                            \
	N(MAX_LENGTH, shape.truncation.max_length)                                                 \
	N(STRIDE, shape.truncation.stride)                                                         \
	N(PADS, shape.padding.on)                                                                  \
	N(PADS_LEFT, shape.padding.left)                                                           \
	N(PADS_TO_FIXED, shape.padding.fixed)                                                      \
	N(PAD_LENGTH, shape.padding.length)                                                        \
	N(PAD_MULTIPLE, shape.padding.multiple_of)                                                 \
	N(PAD_ID, shape.padding.id)                                                                \
	N(PAD_TYPE, shape.padding.type_id)

enum tok_number {
#define TOK_NUMBER_ENUM(name, field) TOK_NUMBER_##name,
	TOK_NUMBERS(TOK_NUMBER_ENUM)
#undef TOK_NUMBER_ENUM
		TOK_N_NUMBERS
};

/* Where the tables live. */
enum tok_storage {
	TOK_STORAGE_MEM,  /* each table is allocated separately with tok_vocab.mem */
	TOK_STORAGE_FILE, /* all tables are in tok_vocab.storage: a mapped file */
	TOK_STORAGE_HUGE, /* all tables are in tok_vocab.storage: huge pages of libhugetlbfs */
};

struct tok_kernels;

struct tok_vocab {
	const struct tok_kernels *kernels;		   /* isa/kernels.h */
	const struct tok_stage *stage[TOK_STAGES_MAX + 1]; /* in order; then NULL */
	enum tok_kind kind;
	enum tok_pretok pretok;
	struct tok_norm norm; /* before all other normalizers */
	struct tok_metaspace metaspace;
	/* words that are one token, which no merge makes: for each of `unmerged` */
	struct tok_word *word; /* buckets of TOK_WORD_SLOTS; a full one overflows into the next */
	uint32_t word_shift;   /* 64 - log2(slots) */
	uint32_t word_mask;
	struct tok_long_word *long_word; /* likewise, of TOK_LONG_SLOTS */
	uint32_t long_shift, long_mask;
	uint32_t *unmerged; /* outside ids of tokens that no merge makes: they match only a whole
			       pretoken; sorted by bytes */
	uint32_t n_unmerged;
	/* merges */
	uint64_t *pair; /* perfect hash table of left << 42 | right << 21 | result; ~0: free */
	uint16_t *pair_pilot;
	uint64_t *pair_filter;		 /* bit set by hash: the bits of all pairs are set */
	uint32_t pair_mask, pair_shift;	 /* slots - 1; 64 - log2(pilots) */
	uint32_t pair_filter_shift;	 /* 64 - log2(bits) */
	struct tok_byte_pair *byte_pair; /* [256 * 256] */
	struct tok_split *split;	 /* by rank id */
	uint32_t *ext; /* outside id by rank id. A byte that is not a token has a number above all
			  ids. What a part of a character has does not matter */
	uint16_t *len; /* length in bytes by rank id */
	struct tok_repeat *repeat;
	/* TOK_PRETOK_SENTENCEPIECE, two bit sets: some token has one character before another. Of
	   two that are ASCII, then of others: 64 bits for 8 by 8 code points, by their hash */
	uint64_t *joins;
	uint32_t join_shift; /* 64 - log2(elements of the second) */
	struct tok_pieces_cuts *cuts;
	/* incremental encoding */
	struct tok_node *node;
	struct tok_longest longest; /* if it has nodes, used instead: greedy BPE, and WordPiece */
	/* characters */
	uint16_t *cat_page; /* by code point / 256: index of a page of 256 in `cat` */
	uint8_t *cat;	/* class: variant << 3 | enum tok_cat; TOK_PRETOK_BERT: the category of what
			   the normalizer makes of it (bert_norm.h); TOK_PRETOK_SENTENCEPIECE: 1 if a
			   token has it; equal pages are stored once */
	uint16_t *step; /* [state * step_width + class]: pretok.h */
	uint32_t step_width;
	/* added tokens, by enum tok_added_which */
	struct tok_added added[2];
	/* decoding */
	struct tok_span *span; /* by outside id: its bytes in `bytes` */
	uint8_t *bytes;
	uint32_t *special; /* outside ids, ascending */
	/* TOK_KIND_WORDPIECE: uses `longest`, and not the tables for merges */
	struct tok_wordpiece wordpiece;
	/* TOK_KIND_UNIGRAM: uses `node`; `len` is by outside id, `ext` by byte, and `cat` has
	   grapheme classes (grapheme.h). TOK_PRETOK_SENTENCEPIECE uses its normalizer, and the
	   texts of `wordpiece` */
	struct tok_unigram unigram;
	uint32_t ids_per_byte; /* at most, per byte of text */
	/* BPE: tokens that end a word have a blank there, which stands for </w> */
	enum tok_word_end word_end;
	bool digits_apart; /* BPE: in a pretoken, bytes of tok_bytelevel_is_number() and others are
			      words of their own (Falcon); no merge joins them */
	bool tight;	   /* a text may have as many ids as that */
	/* set-up and information */
	uint32_t n_ranks; /* 256 + merges */
	uint32_t n_nodes;
	uint32_t n_repeats;
	uint32_t repeats_end; /* above the rank ids of all their tokens; 0: there are none */
	struct tok_repeat_runs repeat_runs[TOK_REPEATS_MAX];
	struct tok_byte_runs byte_runs; /* if kind is BPE, and not greedy */
	struct tok_vocab_info info;
	struct tok_shape shape;
	struct tok_mem mem;
	enum tok_storage storage_kind;
	void *storage;
	size_t storage_bytes;
	size_t table_bytes[TOK_N_TABLES];
};

/* Multiplicative hashing (Knuth, TAOCP 6.4). The tables are fixed at load, so no key is needed. */
#define TOK_HASH_1 0x9e3779b97f4a7c15ull
#define TOK_HASH_2 0xd6e8feb86659fd93ull

TOK_INLINE uint64_t
tok_hash_word(uint64_t key, uint32_t len)
{
	key = (key ^ len) * TOK_HASH_1;
	return (key ^ key >> 32) * TOK_HASH_2;
}

/*
 * Words are stored in buckets. A bucket is filled from its first slot on. If it is full, a word
 * goes to the next bucket with a free slot. The search in a bucket uses arithmetic, because a
 * branch would be mispredicted for most words. tok_nonzero() returns 1 if x is not 0, else 0;
 * compilers make no branch of it.
 */
TOK_INLINE uint32_t
tok_nonzero(uint64_t x)
{
	return (uint32_t)((x | -x) >> 63);
}

#define TOK_WORD_SLOTS 4u /* slots of a bucket: one cache line */

/* First slot of the bucket where the search for a word of up to 8 bytes begins. */
TOK_INLINE uint32_t
tok_word_slot(const struct tok_vocab *v, uint64_t key, uint32_t len)
{
	return (uint32_t)(tok_hash_word(key, len) >> v->word_shift) & ~(TOK_WORD_SLOTS - 1);
}

/* Index of the slot in this bucket that holds the word, or TOK_WORD_SLOTS if none does. */
TOK_INLINE uint32_t
tok_word_in_bucket(const struct tok_word *w, uint64_t key, uint32_t len)
{
	uint32_t at = TOK_WORD_SLOTS;

	for (uint32_t i = 0; i < TOK_WORD_SLOTS; i++)
		at -= (TOK_WORD_SLOTS - i) * (1 ^ tok_nonzero((w[i].key ^ key) | (w[i].len ^ len)));
	return at;
}

/* Outside id of the word with these bytes, or TOK_NO_TOKEN. TOK_NO_TOKEN if len > 8. */
TOK_INLINE uint32_t
tok_word_find(const struct tok_vocab *v, uint32_t slot, uint64_t key, uint32_t len)
{
	for (;; slot = (slot + TOK_WORD_SLOTS) & v->word_mask) {
		const struct tok_word *w = &v->word[slot];
		const uint32_t at = tok_word_in_bucket(w, key, len);
		const uint32_t missed = at / TOK_WORD_SLOTS;
		const uint32_t full = tok_nonzero(w[TOK_WORD_SLOTS - 1].len);

		if (__builtin_expect(!(missed & full & (len <= TOK_KEY_BYTES)), 1))
			return w[at % TOK_WORD_SLOTS].id | -missed;
	}
}

/* Hash of a word of more than 8 bytes: of its first and last 8 bytes and its length. */
TOK_INLINE uint64_t
tok_hash_long(uint64_t first, uint64_t last, uint32_t len)
{
	first = (first ^ len) * TOK_HASH_1;
	last = (last ^ last >> 29) * TOK_HASH_2;
	first ^= last ^ first >> 32;
	return first * TOK_HASH_1;
}

/* Little-endian value of the 8 bytes at p. */
TOK_INLINE uint64_t
tok_load8(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

#define TOK_LONG_SLOTS 2u /* slots of a bucket: one cache line */

/* First slot of the bucket where the search for the word of len > 8 bytes at p begins. */
TOK_INLINE uint32_t
tok_long_slot(const struct tok_vocab *v, const uint8_t *p, uint32_t len)
{
	return (uint32_t)(tok_hash_long(tok_load8(p), tok_load8(p + len - 8), len) >>
			  v->long_shift) &
	       ~(TOK_LONG_SLOTS - 1);
}

/* Outside id of the long word with these bytes, or TOK_NO_TOKEN. */
TOK_INLINE uint32_t
tok_long_find(const struct tok_vocab *v, uint32_t slot, const uint8_t *p, uint32_t len)
{
	const uint64_t first = tok_load8(p), last = tok_load8(p + len - 8);

	for (;; slot = (slot + TOK_LONG_SLOTS) & v->long_mask) {
		const struct tok_long_word *w = &v->long_word[slot];
		uint32_t id = TOK_NO_TOKEN;

		for (uint32_t i = 0; i < TOK_LONG_SLOTS; i++) {
			const uint64_t differs =
				(w[i].first ^ first) | (w[i].last ^ last) | (w[i].len ^ len);

			if (len <= 16)
				id &= w[i].id | -tok_nonzero(differs);
			else if (differs == 0 &&
				 tok_equal(v->bytes + w[i].off + 8, p + 8, len - 16))
				return w[i].id;
		}
		if (id != TOK_NO_TOKEN || w[TOK_LONG_SLOTS - 1].len == 0)
			return id;
	}
}

/*
 * The hash of a pair and the pilot of its bucket give the one slot that can hold the pair
 * (build/pairs_build.c). So one look-up shows whether the merge exists.
 */
#define TOK_PAIR_SHARE 8u /* slots per bucket */

TOK_INLINE uint64_t
tok_pair_key(uint32_t left, uint32_t right)
{
	return (uint64_t)left << 21 | right;
}

TOK_INLINE uint64_t
tok_pair_hash(uint64_t key)
{
	key *= TOK_HASH_1;
	return key ^ key >> 32;
}

TOK_INLINE uint32_t
tok_pair_bucket(const struct tok_vocab *v, uint64_t hash)
{
	return (uint32_t)(hash >> v->pair_shift);
}

TOK_INLINE uint32_t
tok_pair_slot(const struct tok_vocab *v, uint64_t hash, uint32_t pilot)
{
	return ((uint32_t)hash + pilot * ((uint32_t)(hash >> 24) | 1)) & v->pair_mask;
}

/* The slot that has a pair if any has. */
TOK_INLINE uint32_t
tok_pair_slot_of(const struct tok_vocab *v, uint64_t key)
{
	const uint64_t hash = tok_pair_hash(key);

	return tok_pair_slot(v, hash, v->pair_pilot[tok_pair_bucket(v, hash)]);
}

#define TOK_PAIR_FILTER_SHARE 16u /* slots per element of the filter: 4 bits per slot */

TOK_INLINE uint64_t
tok_pair_filter_bit(const struct tok_vocab *v, uint64_t hash)
{
	return hash >> v->pair_filter_shift;
}

/*
 * May there be a merge of two rank ids? Of pairs without one some 10% pass. The filter stays in the
 * CPU's cache, where the table of pairs does not: for pairs that mostly have no merge.
 */
TOK_INLINE bool
tok_pair_may_be(const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	const uint64_t bit = tok_pair_filter_bit(v, tok_pair_hash(tok_pair_key(left, right)));

	return v->pair_filter[bit / 64] >> bit % 64 & 1;
}

/* Result of merging two rank ids, or TOK_NO_TOKEN. */
TOK_INLINE uint32_t
tok_pair(const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	const uint64_t key = tok_pair_key(left, right), found = v->pair[tok_pair_slot_of(v, key)];

	/* No branch: the processor could not predict whether the merge exists. */
	return ((uint32_t)found & 0x1fffff) | -tok_nonzero(found >> 21 ^ key);
}

TOK_INLINE bool
tok_has_child(const struct tok_node *node, uint8_t byte)
{
	return node->child[byte >> 6] >> (byte & 63) & 1;
}

/* Child of a node for `byte`. The node must have a child for it. */
TOK_INLINE uint32_t
tok_child(const struct tok_node *node, uint8_t byte)
{
	uint32_t word = byte >> 6;
	uint64_t lower = node->child[word] & ((1ull << (byte & 63)) - 1);

	return node->first + node->below[word] + tok_popcount(lower);
}

/*
 * The automaton's next state. `all`: the root has all bytes, as BPE's. tok_has_child() would cost
 * 1% more instructions (gcc 12).
 */
TOK_INLINE uint32_t
tok_next_node(const struct tok_vocab *v, uint32_t at, uint8_t byte, bool all)
{
	for (;;) {
		const struct tok_node *node = &v->node[at];

		if (node->child[byte >> 6] >> (byte & 63) & 1)
			return tok_child(node, byte);
		if (!all && at == 0)
			return 0;
		at = node->fail;
	}
}

/* Number of children of a node. */
TOK_INLINE uint32_t
tok_children(const struct tok_node *node)
{
	return node->below[3] + tok_popcount(node->child[3]);
}

#define TOK_JOINS_ASCII (0x80u * 0x80)

/* Number of the bit in tok_vocab.joins for two characters. The pairs of an alphabet lie side by
 * side.
 */
TOK_INLINE uint32_t
tok_join_bit(uint32_t shift, uint32_t left, uint32_t right)
{
	const uint64_t squares = (uint64_t)(left >> 3) << 32 | right >> 3;

	if ((left | right) < 0x80)
		return left << 7 | right;
	return TOK_JOINS_ASCII + (uint32_t)(squares * TOK_HASH_1 >> shift) * 64 + (left & 7) * 8 +
	       (right & 7);
}

/* May some token have these two characters side by side? Both are in tokens. */
TOK_INLINE bool
tok_pieces_join(const struct tok_vocab *v, uint32_t left, uint32_t right)
{
	const uint32_t bit = tok_join_bit(v->join_shift, left, right);

	return v->joins[bit / 64] >> bit % 64 & 1;
}

/* Append the outside ids of n single bytes: of a character that is in no token. Returns the end. */
TOK_INLINE uint32_t *
tok_bytes_ids(const struct tok_vocab *v, const uint8_t *p, size_t n, uint32_t *ids)
{
	for (size_t i = 0; i < n; i++)
		*ids++ = v->ext[p[i]];
	return ids;
}

/*
 * Does a character that is in no token become the unknown piece? If so, `ext` maps its bytes to
 * numbers above all ids, and stages.c replaces these by the id of the unknown piece.
 */
TOK_INLINE bool
tok_has_unknown(const struct tok_vocab *v)
{
	return v->kind == TOK_KIND_BPE && v->unigram.norm.sentencepiece &&
	       !v->unigram.byte_fallback;
}

/* Class of a character: the steps of the pretokenizer tell no more apart. */
TOK_INLINE uint32_t
tok_class_of(const struct tok_vocab *v, uint32_t cp)
{
	return v->cat[(uint32_t)v->cat_page[cp >> 8] << 8 | (cp & 255)];
}

TOK_INLINE enum tok_cat
tok_cat_of(const struct tok_vocab *v, uint32_t cp)
{
	return (enum tok_cat)(tok_class_of(v, cp) & 7);
}
