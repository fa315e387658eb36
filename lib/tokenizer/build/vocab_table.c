/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <sys/mman.h>

#include "isa/kernels.h"
#include "pretokenize/names.h"
#include "vocab_table.h"

const struct tok_table_place tok_table_places[TOK_N_TABLES] = {
#define TOK_TABLE_PLACE(name, field)                                                               \
	{#field, offsetof(struct tok_vocab, field), sizeof(*((struct tok_vocab *)0)->field)},
	TOK_TABLES(TOK_TABLE_PLACE)
#undef TOK_TABLE_PLACE
};

void *
tok_vocab_table(const struct tok_vocab *v, enum tok_table which)
{
	void *p;

	memcpy(&p, (const uint8_t *)v + tok_table_places[which].field, sizeof(p));
	return p;
}

void
tok_vocab_table_set(struct tok_vocab *v, enum tok_table which, void *p, size_t bytes)
{
	memcpy((uint8_t *)v + tok_table_places[which].field, &p, sizeof(p));
	v->info.table_bytes += bytes - v->table_bytes[which];
	v->table_bytes[which] = bytes;
}

uint32_t
tok_vocab_table_n(const struct tok_vocab *v, enum tok_table which)
{
	return (uint32_t)(v->table_bytes[which] / tok_table_places[which].element);
}

bool
tok_vocab_table_make(struct tok_vocab *v, enum tok_table which, size_t n)
{
	size_t bytes = n * tok_table_places[which].element;
	void *p = v->mem.alloc(v->mem.ctx, bytes, 64);

	if (p != NULL)
		tok_vocab_table_set(v, which, p, bytes);
	return p != NULL;
}

void
tok_vocab_table_drop(struct tok_vocab *v, enum tok_table which)
{
	v->mem.free(v->mem.ctx, tok_vocab_table(v, which), v->table_bytes[which]);
	tok_vocab_table_set(v, which, NULL, 0);
}

/* 64 - log2(n), where n is a power of two; 0 if the table does not exist. */
static uint32_t
shift_for(uint32_t n)
{
	return n == 0 ? 0 : 64 - (uint32_t)__builtin_ctz(n);
}

void
tok_vocab_shifts(struct tok_vocab *v)
{
	uint32_t words = tok_vocab_table_n(v, TOK_TABLE_WORD);
	uint32_t longs = tok_vocab_table_n(v, TOK_TABLE_LONG_WORD);
	uint32_t pilots = tok_vocab_table_n(v, TOK_TABLE_PAIR_PILOT);
	uint32_t filter = tok_vocab_table_n(v, TOK_TABLE_PAIR_FILTER);
	uint32_t joins = tok_vocab_table_n(v, TOK_TABLE_JOINS);

	v->word_shift = shift_for(words);
	v->word_mask = words - 1;
	v->long_shift = shift_for(longs);
	v->long_mask = longs - 1;
	v->pair_mask = tok_vocab_table_n(v, TOK_TABLE_PAIR) - 1;
	v->pair_shift = shift_for(pilots);
	v->join_shift = shift_for(joins > 0 ? joins - TOK_JOINS_ASCII / 64 : 0);
	v->pair_filter_shift = shift_for(filter * 64);
}

uint64_t
tok_vocab_layout(const size_t bytes[TOK_N_TABLES], uint64_t from, uint64_t off[TOK_N_TABLES])
{
	for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
		uint64_t align = bytes[t] < TOK_LAYOUT_PAGE ? 64 : TOK_LAYOUT_PAGE;

		off[t] = 0;
		if (bytes[t] > 0) {
			off[t] = (from + align - 1) & ~(align - 1);
			from = off[t] + bytes[t];
		}
	}
	return from;
}

void
tok_vocab_leave(struct tok_vocab *v)
{
	switch (v->storage_kind) {
	case TOK_STORAGE_MEM:
		for (enum tok_table t = 0; t < TOK_N_TABLES; t++) {
			if (v->table_bytes[t] > 0)
				v->mem.free(v->mem.ctx, tok_vocab_table(v, t), v->table_bytes[t]);
		}
		break;
	case TOK_STORAGE_FILE:
		munmap(v->storage, v->storage_bytes);
		break;
	case TOK_STORAGE_HUGE:
		tok_huge_free(v->storage);
		break;
	}
}

void
tok_vocab_free(struct tok_vocab *v)
{
	if (v == NULL)
		return;
	tok_vocab_leave(v);
	free(v);
}

static const char *
norm_name(const struct tok_vocab *v)
{
	return v->norm.n == 1 && v->norm.step[0].kind == TOK_NORM_FORM_C ? "nfc" : "steps";
}

struct tok_vocab_info
tok_vocab_info(const struct tok_vocab *v)
{
	static const char *const storages[] = {
		[TOK_STORAGE_MEM] = "memory",
		[TOK_STORAGE_FILE] = "mapped file",
		[TOK_STORAGE_HUGE] = "huge pages",
	};
	struct tok_vocab_info info = v->info;

	info.storage = storages[v->storage_kind];
	info.isa = v->kernels->isa;
	info.normalizer = v->kind == TOK_KIND_WORDPIECE	  ? "bert"
			  : v->kind == TOK_KIND_UNIGRAM	  ? "sentencepiece"
			  : v->unigram.norm.sentencepiece ? "sentencepiece"
			  : v->norm.n > 0		  ? norm_name(v)
			  : v->metaspace.stage == TOK_METASPACE_NORMALIZER ||
					  v->metaspace.stage == TOK_METASPACE_PRETOKENIZER
				  ? "metaspace"
				  : "none";
	return info;
}

const struct tok_shape *
tok_vocab_shape(const struct tok_vocab *v)
{
	return &v->shape;
}

const uint32_t *
tok_vocab_specials(const struct tok_vocab *v, uint32_t *n)
{
	*n = v->info.n_special;
	return v->special;
}

bool
tok_vocab_merge(const struct tok_vocab *v, uint32_t i, struct tok_merge *out)
{
	const struct tok_split *parts;

	if (v->kind != TOK_KIND_BPE || v->pretok == TOK_PRETOK_SENTENCEPIECE ||
		i >= v->info.n_merges)
		return false;
	parts = &v->split[TOK_BYTES + i];
	*out = (struct tok_merge){v->ext[parts->left], v->ext[parts->right], v->ext[TOK_BYTES + i]};
	return true;
}

const char *
tok_vocab_regex(const struct tok_vocab *v, uint32_t i)
{
	return v->kind == TOK_KIND_BPE ? tok_pretok_regex(v->pretok, i) : NULL;
}

bool
tok_vocab_added(const struct tok_vocab *v, uint32_t i, struct tok_added_info *out)
{
	const struct tok_added *set = &v->added[TOK_ADDED_TEXT_SET];
	uint32_t what;

	if (i >= set->n) {
		i -= set->n;
		set = &v->added[TOK_ADDED_NORMAL_SET];
	}
	if (i >= set->n)
		return false;
	what = set->token[i].what;
	*out = (struct tok_added_info){
		.id = set->token[i].id,
		.special = what & TOK_ADDED_SPECIAL,
		.single_word = what & TOK_ADDED_SINGLE_WORD,
		.lstrip = what & TOK_ADDED_LSTRIP,
		.rstrip = what & TOK_ADDED_RSTRIP,
		.normalized = what & TOK_ADDED_NORMALIZED,
	};
	return true;
}
