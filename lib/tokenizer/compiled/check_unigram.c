/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Validate the tables of a compiled Unigram vocabulary: the automaton is the one that vocab_build.c
 * builds from these pieces; pieces are whole characters; the map stays in bounds; the texts of ids
 * are valid. Scores are only checked to be finite. Set-up only.
 */
#include <math.h>
#include <stdlib.h>

#include "compiled.h"
#include "build/parts.h"
#include "encode/unigram.h"
#include "normalize/spm_norm.h"
#include "unicode/pages.h"
#include "unicode/utf8.h"
#include "build/vocab_table.h"

/* The edge that leads to a node. */
struct reached {
	uint32_t parent;
	uint8_t byte;
};

/* The nodes are a tree, numbered breadth first. */
static bool
spread(const struct tok_vocab *v, struct reached *reached)
{
	uint32_t used = 1;

	for (uint32_t at = 0; at < used; at++) {
		const struct tok_node *node = &v->node[at];
		uint32_t below = 0;

		if (node->first != used || node->depth >= TOK_PIECE_BYTES_MAX)
			return false;
		for (uint32_t byte = 0; byte < TOK_BYTES; byte++) {
			if (byte % 64 == 0 && node->below[byte / 64] != below)
				return false;
			if (!tok_has_child(node, (uint8_t)byte))
				continue;
			if (used == v->n_nodes || v->node[used].depth != node->depth + 1)
				return false;
			reached[used++] = (struct reached){at, (uint8_t)byte};
			below++;
		}
		if (node->extends != (below > 0))
			return false;
	}
	return used == v->n_nodes && v->node[0].depth == 0 && v->node[0].fail == 0;
}

/* fail is the longest suffix that is a node; dict the longest that is a piece. */
static bool
links_fit(const struct tok_vocab *v, const struct reached *reached)
{
	for (uint32_t at = 1; at < v->n_nodes; at++) {
		const struct tok_node *node = &v->node[at];
		const uint8_t byte = reached[at].byte;
		uint32_t up = reached[at].parent, want = 0;

		while (up != 0 && want == 0) {
			up = v->node[up].fail;
			if (tok_has_child(&v->node[up], byte))
				want = tok_child(&v->node[up], byte);
		}
		if (node->fail != want)
			return false;
		want = v->node[want].token != TOK_NO_TOKEN ? want : v->node[want].dict;
		if (node->dict != want)
			return false;
	}
	return v->node[0].dict == 0;
}

/* Sums of valid scores stay finite. */
static bool
is_score(const struct tok_vocab *v, double score)
{
	return isfinite(score) && (!v->unigram.norm.sentencepiece || fabs(score) < 2e30);
}

/* A node's piece has the bytes that lead to the node, and is whole characters. */
static bool
piece_fits(const struct tok_vocab *v, const struct reached *reached, uint32_t at)
{
	const struct tok_node *node = &v->node[at];
	const struct tok_span *span;
	const uint8_t *bytes;

	if (node->token == TOK_NO_TOKEN)
		return true;
	if (at == 0 || node->token >= v->info.n_ids || !is_score(v, node->score))
		return false;
	span = &v->span[node->token];
	bytes = v->bytes + span->off;
	if (span->len != node->depth || tok_utf8_scan(bytes, span->len).valid != span->len)
		return false;
	for (uint32_t i = span->len; i > 0; at = reached[at].parent) {
		if (bytes[--i] != reached[at].byte)
			return false;
	}
	return true;
}

static bool
nodes_fit(const struct tok_vocab *v)
{
	struct reached *reached = calloc(v->n_nodes, sizeof(*reached));
	bool ok = reached != NULL && spread(v, reached);

	for (uint32_t at = 0; ok && at < v->n_nodes; at++)
		ok = piece_fits(v, reached, at);
	/* No piece starts inside a character, so each search starts between characters. */
	ok = ok && v->node[0].child[2] == 0;
	ok = ok && is_score(v, v->node[0].score) && links_fit(v, reached);
	free(reached);
	return ok;
}

static bool
ids_fit(const struct tok_vocab *v)
{
	const struct tok_span *unk = &v->span[v->unigram.unk];

	for (uint32_t id = 0; id < v->info.n_ids; id++) {
		if (v->len[id] != v->span[id].len)
			return false;
	}
	for (uint32_t byte = 0; v->unigram.byte_fallback && byte < TOK_BYTES; byte++) {
		if (v->ext[byte] >= v->info.n_ids)
			return false;
	}
	return unk->len > 0 && unk->len < TOK_PIECE_BYTES_MAX;
}

/* No USER_DEFINED piece starts with TOK_SPM_BROKEN. */
static bool
own_fit(const struct tok_vocab *v)
{
	const struct tok_added *own = &v->added[TOK_ADDED_TEXT_SET];

	if (!v->unigram.norm.sentencepiece)
		return true;
	for (uint32_t i = 0; i < tok_vocab_table_n(v, TOK_TABLE_ADDED_TEXT_NODE); i++) {
		if (own->trie.node[i].child[3] >> 63 != 0)
			return false;
	}
	return true;
}

static bool
texts_fit(const struct tok_vocab *v, const struct tok_span *text)
{
	const uint32_t room = tok_vocab_table_n(v, TOK_TABLE_TEXT);

	for (uint32_t id = 0; id < v->info.n_ids; id++) {
		if (text[id].len > TOK_MAX_TOKEN_BYTES || text[id].off > room ||
			text[id].len > room - text[id].off)
			return false;
	}
	return true;
}

bool
tok_compiled_check_texts(const struct tok_vocab *v)
{
	return texts_fit(v, v->wordpiece.at_start) && texts_fit(v, v->wordpiece.behind);
}

const char *
tok_compiled_check_unigram(const struct tok_vocab *v)
{
	if (!nodes_fit(v))
		return "node";
	if (!ids_fit(v))
		return "len, ext";
	return tok_compiled_check_pages(v) ? tok_compiled_check_normalizer(v) : "cat";
}

const char *
tok_compiled_check_normalizer(const struct tok_vocab *v)
{
	uint32_t ids_per_byte, several;

	if (!own_fit(v))
		return "added";
	if (!tok_compiled_check_texts(v))
		return "text";
	return tok_spm_norm_check(v, &ids_per_byte, &several);
}
