/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids to bytes, of byte-level BPE and of WordPiece, known ids and unknown ones: at once, with any
 * room; and as a stream, however they are cut and whatever room each piece has. Always the texts of
 * the ids one after the other, in a stream never a part of a character, and never more held back
 * than the beginning of one.
 */
#include <string.h>

#include "test.h"
#include "fuzz.h"
#include "small_vocab.h"
#include "unicode/utf8.h"

#define BPE 2
#define VOCABS (BPE + 2)
#define IDS_MAX 120
#define GUARD 8 /* bytes behind the room */

/* What each is at the start and behind other ids, as it is and with cleanup. */
static const struct {
	const char *token, *start, *behind, *clean_start, *clean_behind;
} pieces[] = {
	{"[UNK]", "[UNK]", " [UNK]", "[UNK]", " [UNK]"},
	{"he", "he", " he", "he", " he"},
	{"##llo", "##llo", "llo", "##llo", "llo"},
	{"", "", "", "", ""}, /* no such id */
	{"##", "##", "", "##", ""},
	{".", ".", " .", ".", "."},
	{"a ,b", "a ,b", " a ,b", "a,b", " a,b"},
	{"##x !", "##x !", "x !", "##x!", "x!"},
	{"n't", "n't", " n't", "n't", "n't"},
	{"'", "'", " '", "'", " '"},
	{"' ", "' ", " ' ", "' ", "'"},
	{"do not", "do not", " do not", "do not", " don't"},
	{"\xc3\xa9", "\xc3\xa9", " \xc3\xa9", "\xc3\xa9", " \xc3\xa9"},
	{"##\xe4\xb8\xad", "##\xe4\xb8\xad", "\xe4\xb8\xad", "##\xe4\xb8\xad", "\xe4\xb8\xad"},
	{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", " \xf0\x9f\x98\x80", "\xf0\x9f\x98\x80",
		" \xf0\x9f\x98\x80"},
};
#define PIECES (sizeof(pieces) / sizeof(pieces[0]))

static struct small_vocab bpe[BPE];
static struct tok_vocab *wordpiece[VOCABS - BPE];

/* One input. */
struct texts {
	const struct tok_vocab *v;
	uint32_t id[IDS_MAX];
	uint32_t n;	/* ids */
	uint32_t known; /* up to the first unknown one */
	uint8_t bytes[IDS_MAX * SMALL_BYTES_MAX];
	uint32_t end[IDS_MAX + 1]; /* bytes of the first i ids */
	uint32_t longest;	   /* bytes of one */
};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const alphabet[BPE] = {
		"ab \xc3\xa9\xe4\xb8\xad", "\xf0\x9f\x98\x80\xed\xa0\xc1\xffz"};
	const char *token[PIECES];
	uint64_t seed = 1;

	for (uint32_t i = 0; i < BPE; i++)
		small_vocab_make(&bpe[i], &seed, alphabet[i], SMALL_MERGES_MAX);
	for (uint32_t i = 0; i < PIECES; i++)
		token[i] = pieces[i].token;
	for (uint32_t i = 0; i < VOCABS - BPE; i++) {
		const struct tok_model_bert options = {.max_chars = 100, .cleanup = i};

		wordpiece[i] = small_wordpiece(token, PIECES, &options);
	}
	return 0;
}

/* The text of id, or NULL. */
static const void *
text_of(uint32_t which, uint32_t id, bool first, uint32_t *len)
{
	const char *text;

	if (which < BPE) {
		if (id >= bpe[which].n)
			return NULL;
		*len = bpe[which].len[id];
		return bpe[which].bytes[id];
	}
	if (id >= PIECES || pieces[id].token[0] == '\0')
		return NULL;
	if (which == BPE)
		text = first ? pieces[id].start : pieces[id].behind;
	else
		text = first ? pieces[id].clean_start : pieces[id].clean_behind;
	*len = (uint32_t)strlen(text);
	return text;
}

/* Two bytes an id: the highest bit for one that there may not be, and all of them for the last. */
static void
take_ids(struct input *in, uint32_t which, struct texts *t)
{
	const uint32_t n_ids = tok_vocab_info(t->v).n_ids;
	bool known = true;

	t->longest = 0;
	for (t->n = t->known = 0; t->n < IDS_MAX && input_more(in); t->n++) {
		const uint32_t x = (uint32_t)input_take(in, 2);
		const uint32_t id = x & 0x8000 ? n_ids + (x & 0xff) : x % n_ids;
		const uint32_t at = t->end[t->known];
		const void *text;
		uint32_t len;

		t->id[t->n] = x == 0xffff ? UINT32_MAX : id;
		text = text_of(which, t->id[t->n], t->n == 0, &len);
		known = known && text != NULL;
		if (!known)
			continue;
		memcpy(t->bytes + at, text, len);
		t->end[++t->known] = at + len;
		t->longest = len > t->longest ? len : t->longest;
	}
}

/* ---- memory of its own, for AddressSanitizer to guard, and for us without it ---- */

static uint8_t *
make_room(size_t room)
{
	uint8_t *out = malloc(room + GUARD);

	MUST(out != NULL);
	memset(out, 0xa5, room + GUARD);
	return out;
}

static void
check_room(uint8_t *out, size_t room)
{
	for (size_t i = 0; i < GUARD; i++)
		MUST(out[room + i] == 0xa5);
	free(out);
}

/* ---- at once ---- */

static void
decode_whole(const struct texts *t, size_t room)
{
	uint8_t *out = make_room(room);
	const struct tok_result r = tok_decode(t->v, t->id, t->n, out, room);
	uint32_t fit = 0;

	while (fit < t->known && t->end[fit + 1] <= room)
		fit++;
	MUST(r.consumed == fit && r.produced == t->end[fit]);
	MUST(memcmp(out, t->bytes, r.produced) == 0);
	MUST(r.status == (fit < t->known ? TOK_MORE : fit < t->n ? TOK_BAD : TOK_OK));
	MUST(r.error == (r.status == TOK_BAD ? TOK_ERROR_ID : TOK_ERROR_NONE));
	check_room(out, room);
}

/* ---- as a stream ---- */

/* Bytes at the end of a text that begin a character and do not complete it. */
static uint32_t
incomplete(const uint8_t *p, size_t n)
{
	for (;;) {
		const struct tok_utf8_span span = tok_utf8_scan(p, n);

		if (span.end != TOK_UTF8_BROKEN)
			return span.end == TOK_UTF8_SHORT ? span.rest : 0;
		p += span.valid + span.rest;
		n -= span.valid + span.rest;
	}
}

/* Room as a cut says: plenty; just enough for any id; or less. */
static size_t
room_of(uint8_t cut, const struct texts *t)
{
	switch (cut >> 6) {
	case 2:
		return t->longest + 3;
	case 3:
		return cut % 16u;
	default:
		return sizeof(t->bytes);
	}
}

/* In pieces of 0 to 15 ids. */
static void
decode_stream(const struct texts *t, struct input cuts)
{
	struct tok_decode_stream d;
	uint32_t ids = 0, given = 0;

	tok_decode_stream_init(&d, t->v);
	for (;;) {
		const uint8_t cut = input_more(&cuts) ? (uint8_t)input_take(&cuts, 1) : 15;
		const uint32_t left = t->n - ids, piece = cut % 16u < left ? cut % 16u : left;
		const bool last = piece == left && !(cut & 0x10);
		const size_t room = room_of(cut, t);
		uint8_t *out = make_room(room);
		const struct tok_result r =
			tok_decode_stream_feed(&d, t->id + ids, piece, last, out, room);

		MUST(r.consumed <= piece && r.produced <= room && ids + r.consumed <= t->known);
		ids += (uint32_t)r.consumed;
		MUST(given + r.produced <= t->end[ids]);
		MUST(memcmp(out, t->bytes + given, r.produced) == 0);
		given += (uint32_t)r.produced;
		check_room(out, room);
		if (r.status == TOK_OK && last)
			break;
		MUST(given + incomplete(t->bytes, t->end[ids]) == t->end[ids]);
		if (r.status == TOK_BAD) {
			MUST(r.error == TOK_ERROR_ID && ids == t->known && ids < t->n);
			return;
		}
		MUST(r.error == TOK_ERROR_NONE);
		MUST(r.status == TOK_MORE || r.consumed == piece);
		MUST(r.status == TOK_OK || r.consumed > 0 || room < t->longest + 3);
	}
	MUST(ids == t->n && given == t->end[ids]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct texts t;
	struct input in = {data, data + size}, cuts;
	const uint8_t how = (uint8_t)input_take(&in, 1);
	const uint32_t which = how % VOCABS, room = (uint32_t)input_take(&in, 1);
	const uint8_t *bytes;

	t.v = which < BPE ? bpe[which].v : wordpiece[which - BPE];
	cuts.at = in.at;
	cuts.end = in.at + input_bytes(&in, how >> 4, &bytes);
	take_ids(&in, which, &t);
	decode_whole(&t, sizeof(t.bytes));
	decode_whole(&t, room);
	decode_stream(&t, cuts);
	return 0;
}
