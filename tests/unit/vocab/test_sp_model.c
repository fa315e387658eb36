/* SPDX-License-Identifier: BSD-3-Clause */
/* SentencePiece's .model: what is read of one, and what is refused. That ids are right is for
 * tests/golden. */
#include <string.h>

#include "fixture.h"
#include "sp_file.h"

/* <unk>, <s>, the bytes, then from id 258: characters, and what is merged of them. */
static void
make_small(struct sp_file *f)
{
	f->n = 0;
	sp_piece(f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(f, "<s>", 0, TOK_SP_CONTROL);
	sp_bytes(f);
	sp_piece(f, TOK_METASPACE, -10, TOK_SP_NORMAL);	    /* 258 */
	sp_piece(f, "h", -11, TOK_SP_NORMAL);		    /* 259 */
	sp_piece(f, "e", -12, TOK_SP_NORMAL);		    /* 260 */
	sp_piece(f, "\xc3\xa9", -13, TOK_SP_NORMAL);	    /* 261 */
	sp_piece(f, "he", -1, TOK_SP_NORMAL);		    /* 262 */
	sp_piece(f, TOK_METASPACE "he", -2, TOK_SP_NORMAL); /* 263 */
}

static const char *
put_model(void **state, const struct sp_file *f)
{
	return put_file(state, "small.model", f->data, f->n);
}

FOLDER_TEST(a_model_gives_pieces_bytes_and_the_blank_before)
{
	/* "he", e with acute, a character that is no piece, U+2581 for a blank. */
	static const char text[] = "he\xc3\xa9\xe4\xb8\xad\xe2\x96\x81he";
	static const uint32_t want[] = {263, 261, 2 + 0xe4, 2 + 0xb8, 2 + 0xad, 263};
	static struct sp_file f;
	struct tok_error err;
	struct tok_vocab *v;
	struct tok_result r;
	uint32_t ids[64], len;
	uint8_t out[64];

	make_small(&f);
	sp_settings(&f);
	v = tok_vocab_load(put_model(state, &f), NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	assert_string_equal(tok_vocab_info(v).format, "sentencepiece");
	assert_string_equal(tok_vocab_info(v).pretokenizer, "none");
	assert_int_equal(tok_vocab_info(v).n_ids, 264);
	assert_null(tok_vocab_token(v, 264, &len)); /* parts of characters are no ids */
	r = tok_encode(v, NULL, text, sizeof(text) - 1, 0, ids, 64);
	assert_int_equal(r.produced, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(ids, want, sizeof(want));
	r = tok_decode(v, ids, r.produced, out, sizeof(out));
	assert_int_equal(r.produced, strlen("he\xc3\xa9\xe4\xb8\xad he"));
	assert_memory_equal(out, "he\xc3\xa9\xe4\xb8\xad he", r.produced);
	assert_int_equal(tok_encode(v, NULL, "", 0, 0, ids, 64).produced, 0);
	tok_vocab_free(v);
}

FOLDER_TEST(what_is_not_implemented_is_refused_by_name)
{
	static const struct {
		uint8_t field;
		const char *bytes;
		size_t n;
		const char *says;
	} settings[] = {
		{2, "\x18\x03", 2, "trainer_spec.model_type 3 is not implemented"},
		{2, "\x98\x02\x00", 3, "piece 2 is a BYTE, and trainer_spec.byte_fallback"},
		{3, "\x28\x00", 2, "escape_whitespaces false is not implemented"},
		{3, "\x12\x01x", 3, "normalizer_spec.precompiled_charsmap: expected a trie's size"},
		{5, "\x12\x01x", 3, "denormalizer_spec is not implemented"},
	};
	static const struct {
		const char *text;
		float score;
		enum tok_sp_type type;
		const char *says;
	} pieces[] = {
		{"x", 0, TOK_SP_UNUSED, "piece 264 is UNUSED: not implemented"},
		{"x", 0, 0, "piece 264 is of a type that is not known"},
		{"", 0, TOK_SP_NORMAL, "piece 264 has 0 bytes, expected 1 to 1024"},
		{"\xc3", 0, TOK_SP_NORMAL, "piece 264 is not UTF-8"},
		{"x", 1e38f, TOK_SP_NORMAL, "piece 264 has no score"},
		{"he", 0, TOK_SP_NORMAL, "piece 264 occurs twice"},
		{"foo", 0, TOK_SP_BYTE, "piece 264 is a BYTE and not <0x..>"},
		{"<2>", 0, TOK_SP_UNKNOWN, "2 pieces are UNKNOWN, expected one"},
		{"\xc3\xa8he", 0, TOK_SP_NORMAL, "piece 264 has a character that is no piece"},
		{"eh", -1, TOK_SP_NORMAL, "with the same score: not implemented"},
	};
	static struct sp_file f;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		make_small(&f);
		sp_settings(&f);
		sp_field(&f, settings[i].field, settings[i].bytes, settings[i].n);
		assert_refused(put_model(state, &f), settings[i].says);
	}
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		make_small(&f);
		sp_piece(&f, pieces[i].text, pieces[i].score, pieces[i].type);
		sp_settings(&f);
		assert_refused(put_model(state, &f), pieces[i].says);
	}
	f.n = 0;
	sp_bytes(&f);
	sp_settings(&f);
	assert_refused(put_model(state, &f), "no piece is U+2581 alone");
	f.n = 0;
	sp_piece(&f, TOK_METASPACE, 0, TOK_SP_NORMAL);
	sp_settings(&f);
	assert_refused(put_model(state, &f), "no token <0x00>");
	f.n = 0;
	sp_piece(&f, TOK_METASPACE, 0, TOK_SP_NORMAL);
	sp_field(&f, 2, "\x18\x02", 2);
	assert_refused(put_model(state, &f), "0 pieces are UNKNOWN, expected one");
}

/* Without byte_fallback, blanks left out; ff is looked for by the normalizer; x is no piece. */
FOLDER_TEST(a_model_without_bytes_gives_one_id_for_what_is_unknown)
{
	static const char text[] = "  hexx\xff\xe4\xb8\xad  hxffxe ";
	static const uint32_t want[] = {6, 0, 2, 3, 0, 5, 0, 4};
	static const char back[] = "he \xe2\x81\x87  h \xe2\x81\x87 ff \xe2\x81\x87 e";
	static struct sp_file f;
	struct tok_error err;
	struct tok_vocab *v;
	struct tok_result r;
	struct tok_stream s;
	uint32_t ids[64];
	uint8_t out[64];
	size_t n = 0;

	f.n = 0;
	sp_piece(&f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(&f, "</s>", 0, TOK_SP_CONTROL);
	sp_piece(&f, TOK_METASPACE, -3, TOK_SP_NORMAL);	     /* 2 */
	sp_piece(&f, "h", -4, TOK_SP_NORMAL);		     /* 3 */
	sp_piece(&f, "e", -4, TOK_SP_NORMAL);		     /* 4 */
	sp_piece(&f, "ff", 0, TOK_SP_USER_DEFINED);	     /* 5 */
	sp_piece(&f, TOK_METASPACE "he", -2, TOK_SP_NORMAL); /* 6 */
	sp_piece(&f, "he", -1, TOK_SP_NORMAL);		     /* 7 */
	sp_field(&f, 2, "\x18\x02", 2);
	v = tok_vocab_load(put_model(state, &f), NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	assert_string_equal(tok_vocab_info(v).normalizer, "sentencepiece");
	assert_int_equal(tok_vocab_info(v).n_ids, 8);
	assert_int_equal(tok_vocab_info(v).n_added, 1);
	r = tok_encode(v, NULL, text, sizeof(text) - 1, 0, ids, 64);
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(ids, want, sizeof(want));
	r = tok_decode(v, ids, r.produced, out, sizeof(out));
	assert_int_equal(r.produced, sizeof(back) - 1);
	assert_memory_equal(out, back, r.produced);
	tok_stream_init(&s, v, NULL, 0);
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		n += tok_stream_feed(&s, text + i, 1, i == sizeof(text) - 2, ids + n, 64 - n)
			     .produced;
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(ids, want, sizeof(want));
	tok_vocab_free(v);
}

/* <unk>, </s>, then from id 2. ff is looked for by the normalizer; x is no piece. */
static void
make_unigram(struct sp_file *f)
{
	f->n = 0;
	sp_piece(f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(f, "</s>", 0, TOK_SP_CONTROL);
	sp_piece(f, TOK_METASPACE, -3, TOK_SP_NORMAL);	    /* 2 */
	sp_piece(f, "h", -4, TOK_SP_NORMAL);		    /* 3 */
	sp_piece(f, "e", -4, TOK_SP_NORMAL);		    /* 4 */
	sp_piece(f, TOK_METASPACE "he", -5, TOK_SP_NORMAL); /* 5 */
	sp_piece(f, "ff", 0, TOK_SP_USER_DEFINED);	    /* 6 */
	sp_piece(f, TOK_METASPACE "h", 0, TOK_SP_UNUSED);   /* 7 */
	sp_piece(f, "</", -4, TOK_SP_NORMAL);		    /* 8 */
}

FOLDER_TEST(a_unigram_gives_pieces_and_one_id_for_what_is_unknown)
{
	/* Blanks around and within, what is unknown in a row, a byte that is no UTF-8. */
	static const char text[] = "  hexx\xff  h</s>ffe ";
	static const uint32_t want[] = {5, 0, 2, 3, 8, 0, 6, 4};
	static const char back[] = "he \xe2\x81\x87  h</ \xe2\x81\x87 ffe";
	static struct sp_file f;
	struct tok_error err;
	struct tok_vocab *v;
	struct tok_result r;
	uint32_t ids[64];
	uint8_t out[64];

	make_unigram(&f);
	v = tok_vocab_load(put_model(state, &f), NULL, &err);
	if (v == NULL)
		fail_msg("%s", err.text);
	assert_string_equal(tok_vocab_info(v).format, "sentencepiece");
	assert_int_equal(tok_vocab_info(v).n_ids, 9);
	assert_int_equal(tok_vocab_info(v).n_added, 1);
	r = tok_encode(v, NULL, text, sizeof(text) - 1, 0, ids, 64);
	assert_int_equal(r.status, TOK_OK);
	assert_int_equal(r.produced, sizeof(want) / sizeof(want[0]));
	assert_memory_equal(ids, want, sizeof(want));
	r = tok_decode(v, ids, r.produced, out, sizeof(out));
	assert_int_equal(r.produced, sizeof(back) - 1);
	assert_memory_equal(out, back, r.produced);
	assert_int_equal(tok_encode(v, NULL, "", 0, 0, ids, 64).produced, 0);
	assert_int_equal(tok_encode(v, NULL, "   ", 3, 0, ids, 64).produced, 0);
	tok_vocab_free(v);
}

FOLDER_TEST(of_unigram_what_is_not_implemented_is_refused_by_name)
{
	static const struct {
		uint8_t field;
		const char *bytes;
		size_t n;
		const char *says;
	} settings[] = {
		{3, "\x28\x00", 2, "escape_whitespaces false is not implemented"},
		{3, "\x12\x01x", 3, "expected a trie's size, the trie and its texts"},
		{5, "\x12\x01x", 3, "denormalizer_spec is not implemented"},
		{2, "\xe2\x02\x01\xff", 4, "unk_surface is not UTF-8"},
	};
	static char long_text[256 + 1];
	static struct sp_file f;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		make_unigram(&f);
		sp_field(&f, settings[i].field, settings[i].bytes, settings[i].n);
		assert_refused(put_model(state, &f), settings[i].says);
	}
	make_unigram(&f);
	sp_piece(&f, "he", -1, TOK_SP_NORMAL);
	sp_piece(&f, "he", -1, TOK_SP_NORMAL);
	assert_refused(put_model(state, &f), "two tokens have the same text");
	make_unigram(&f);
	sp_piece(&f, "<2>", 0, TOK_SP_UNKNOWN);
	assert_refused(put_model(state, &f), "2 pieces are UNKNOWN, expected one");
	f.n = 0;
	sp_piece(&f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(&f, "a", 0, TOK_SP_USER_DEFINED);
	assert_refused(put_model(state, &f), "no piece is NORMAL");
	make_unigram(&f);
	sp_field(&f, 2, "\x98\x02\x01", 3);
	assert_refused(put_model(state, &f), "byte_fallback with 0 of the tokens");
	make_unigram(&f);
	sp_bytes(&f);
	assert_refused(put_model(state, &f), "piece 9 is a BYTE, and trainer_spec.byte_fallback");
	memset(long_text, 'a', sizeof(long_text) - 1);
	make_unigram(&f);
	sp_long_piece(&f, long_text, TOK_SP_USER_DEFINED);
	assert_refused(put_model(state, &f), "is USER_DEFINED and has 256 bytes, the limit");
	make_unigram(&f);
	sp_long_piece(&f, long_text, TOK_SP_NORMAL);
	assert_refused(put_model(state, &f), "has 256 bytes, the limit for Unigram is 255");
}

FOLDER_TEST(a_model_that_is_cut_is_refused)
{
	static struct sp_file f;
	struct tok_error err;
	size_t whole;

	make_small(&f);
	whole = f.n;
	sp_settings(&f);
	assert_refused(put_file(state, "small.model", f.data, 0), "not a SentencePiece model");
	/* Between two messages a part is a model as well, with fewer pieces. */
	for (size_t n = 1; n < f.n; n += n < 64 || n + 64 > whole ? 1 : 11) {
		struct tok_vocab *v =
			tok_vocab_load(put_file(state, "small.model", f.data, n), NULL, &err);

		assert_true(v == NULL || n > whole);
		assert_true(v != NULL || strchr(err.text, '\n') == NULL);
		tok_vocab_free(v);
	}
	f.data[1] = 0xff; /* the first piece has more bytes than there are */
	f.data[2] = 0xff;
	f.data[3] = 0x7f;
	assert_refused(put_model(state, &f), "damaged at byte 0");
}
