/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled vocabularies: they give the ids of what they were compiled from; a file that is damaged,
 * or of something else, is refused; one that somebody made up, checksums and all, is refused or
 * does no harm.
 */
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mix.h>
#include "tables/crc32.h"
#include "compiled/compiled.h"
#include "fixture.h"
#include "sp_file.h"

#define CRAFTED 100 /* files of each kind */

static const char sample[] =
	"hello wORLd, ab abc'RE  they'll hell he\xc3\xa9l \r\n e\xcc\x81 \xe4\xb8\xad\xe6\x96\x87 "
	"12345's \xc2\xa0x/\n\x01\x02 xyz hel \xed\x95\x9c\xea\xb5\xad W\xc3\x96RLD hellohellohello"
	"hellohellohellohellohell       \n\n end \xf0\x9f\x98\x80 hell <|endoftext|><|endof";
#define N_SAMPLE (sizeof(sample) - 1)
#define FLAGS (TOK_TEMPLATE | TOK_SPECIAL)

static uint64_t seed = 1;

static size_t
below(size_t n)
{
	return (size_t)(dice_throw(&seed) % n);
}

/* ---- the kinds there are ---- */

static const char *
put_gpt2(void **state)
{
	return put_json(state, "gpt2/tokenizer.json", small_tokenizer_json());
}

/* As Llama 3: tokens that only a whole pretoken is, and another pretokenizer; form C besides. */
static const char *
put_llama3(void **state)
{
	static const char regex[] =
		"\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|"
		"\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
		"\\\\s+(?!\\\\S)|\\\\s+\"";
	json_t *document = small_tokenizer_json();
	char pretokenizer[1024];

	snprintf(pretokenizer, sizeof(pretokenizer),
		"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
		"{\"Regex\":%s},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":"
		"\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":"
		"false}]}",
		regex);
	set_at(document, "pre_tokenizer", pretokenizer);
	set_at(document, "normalizer", "{\"type\":\"NFC\"}");
	set_at(document, "model.ignore_merges", "true");
	set_at(document, "model.vocab.xyz", "261");
	set_at(document, "model.vocab.hel", "262");
	set_at(document, "model.vocab.hellohellohello", "263");
	set_at(document, "added_tokens",
		"[{\"id\":260,\"content\":\"<|endoftext|>\",\"special\":true,\"lstrip\":true},"
		"{\"id\":264,\"content\":\"Ld, a\",\"special\":false,\"normalized\":true},"
		"{\"id\":265,\"content\":\"\xe6\x96\x87\",\"special\":false,\"rstrip\":true},"
		"{\"id\":261,\"content\":\"xyz\",\"special\":false,\"single_word\":true}]");
	set_at(document, "post_processor",
		"{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<b>\","
		"\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[{\"Sequence\":"
		"{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}],"
		"\"special_tokens\":{\"<b>\":{\"id\":\"<b>\",\"ids\":[260],\"tokens\":[\"<b>\"]}}}");
	return put_json(state, "llama3/tokenizer.json", document);
}

static const char *
put_bert(void **state)
{
	return put_text(state, "bert/vocab.txt",
		"[UNK]\n[CLS]\nhe\nhell\n##llo\n##o\nwor\n##ld\n,\nthe\n12\n##3\n##he\n##ll\nab\n"
		"\xe4\xb8\xad\n'\nx\n##l\n##xyz\n/\n");
}

/* Characters that fall back to bytes; runs of l, of which the longest comes first. */
static const char *
put_pieces(void **state)
{
	static struct sp_file f;

	f.n = 0;
	sp_bytes(&f);
	sp_piece(&f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(&f, "[X]", 0, TOK_SP_USER_DEFINED);
	for (uint32_t i = 0; i < 4; i++)
		sp_piece(&f, &"llll"[3 - i], -50, TOK_SP_NORMAL);
	sp_piece(&f, TOK_METASPACE, -3, TOK_SP_NORMAL);
	sp_piece(&f, "h", -4, TOK_SP_NORMAL);
	sp_piece(&f, "e", -5, TOK_SP_NORMAL);
	sp_piece(&f, "\xe4\xb8\xad", -6, TOK_SP_NORMAL);
	sp_piece(&f, "he", -7, TOK_SP_NORMAL);
	sp_piece(&f, TOK_METASPACE "he", -8, TOK_SP_NORMAL);
	sp_piece(&f, "hell", -60, TOK_SP_NORMAL);
	sp_settings(&f);
	return put_file(state, "pieces.model", f.data, f.n);
}

#define METASPACE                                                                                  \
	"{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"always\","  \
	"\"split\":true}"

/* As T5, without its map of characters, but with the 256 bytes. */
static const char *
put_unigram(void **state)
{
	static const char *const words[] = {"<unk>", "\xe2\x96\x81", "\xe2\x96\x81he", "l", "ll",
		"llo", "o", "\xe2\x96\x81w", "or", "ld", "e", "ab", "bc", "c", "1", "12", "he",
		"hell", "\xe4\xb8\xad"};
	const size_t n = sizeof(words) / sizeof(words[0]);
	json_t *document = json_loads(
		"{\"version\":\"1.0\",\"added_tokens\":[{\"id\":275,\"content\":\"<|endoftext|>\","
		"\"special\":true,\"lstrip\":true},{\"id\":276,\"content\":\"  they\",\"special\":"
		"false,\"normalized\":true}],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{"
		"\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true},{\"type\":\"Replace\","
		"\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" \"}]},\"pre_tokenizer\":" METASPACE
		",\"post_processor\":null,\"decoder\":" METASPACE
		",\"model\":{\"type\":\"Unigram\","
		"\"unk_id\":0,\"vocab\":[],\"byte_fallback\":true}}",
		0, NULL);
	json_t *vocab = json_object_get(json_object_get(document, "model"), "vocab");

	assert_non_null(vocab);
	for (size_t i = 0; i < n + 256; i++) {
		char byte[8];

		snprintf(byte, sizeof(byte), "<0x%02X>", (unsigned int)(i - n) & 0xff);
		json_array_append_new(
			vocab, json_pack("[sf]", i < n ? words[i] : byte, -(double)(i % 7)));
	}
	return put_json(state, "unigram/tokenizer.json", document);
}

/* The kind and the settings are what is left out: Unigram, all blanks are squeezed. */
static const char *
put_unigram_model(void **state)
{
	static const char *const words[] = {TOK_METASPACE, TOK_METASPACE "he", "l", "ll", "llo",
		"o", TOK_METASPACE "w", "or", "ld", "e", "ab", "bc", "c", "1", "12", "he", "hell",
		"\xe4\xb8\xad"};
	static struct sp_file f;

	f.n = 0;
	sp_piece(&f, "<unk>", 0, TOK_SP_UNKNOWN);
	sp_piece(&f, "</s>", 0, TOK_SP_CONTROL);
	sp_piece(&f, "[X]", 0, TOK_SP_USER_DEFINED);
	sp_piece(&f, "they", 0, TOK_SP_USER_DEFINED);
	sp_bytes(&f);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sp_piece(&f, words[i], (float)(i % 7) * -20000.25f, TOK_SP_NORMAL);
	sp_field(&f, 2, "\x98\x02\x01", 3);
	return put_file(state, "unigram.model", f.data, f.n);
}

static const struct kind {
	const char *name;
	const char *(*put)(void **state);
	const char *algo;
} kinds[] = {
	{"gpt2", put_gpt2, NULL},
	{"greedy", put_gpt2, "greedy"},
	{"llama3", put_llama3, NULL},
	{"bert", put_bert, NULL},
	{"pieces", put_pieces, NULL},
	{"unigram", put_unigram, NULL},
	{"unigram .model", put_unigram_model, NULL},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Compile what is at `from`. Its path to out. */
static void
compile(void **state, const char *from, const char *algo, char out[PATH_MAX])
{
	const struct tok_load_opts opts = {.algo = algo};
	struct tok_error err;

	snprintf(out, PATH_MAX, "%s/a.tokv", (const char *)*state);
	if (!tok_vocab_compile(from, &opts, out, &err))
		fail_msg("%s", err.text);
}

static struct tok_vocab *
load(const char *path, const struct tok_load_opts *opts)
{
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(path, opts, &err);

	if (v == NULL)
		fail_msg("%s", err.text);
	return v;
}

/* ---- the same ids ---- */

struct ids {
	uint32_t n;
	uint32_t id[TOK_IDS_PER_BYTE_MAX * N_SAMPLE + 512];
};

/* Of the sample, fed in pieces. */
static void
encode(const struct tok_vocab *v, struct tok_cache *cache, size_t piece, struct ids *out)
{
	static struct tok_stream s;

	out->n = 0;
	tok_stream_init(&s, v, cache, FLAGS);
	for (size_t at = 0; at < N_SAMPLE; at += piece) {
		size_t n = N_SAMPLE - at < piece ? N_SAMPLE - at : piece;
		struct tok_result r = tok_stream_feed(&s, sample + at, n, at + n == N_SAMPLE,
			out->id + out->n, sizeof(out->id) / sizeof(out->id[0]) - out->n);

		assert_int_equal(r.status, TOK_OK);
		out->n += (uint32_t)r.produced;
	}
}

static void
assert_same_ids(const struct tok_vocab *v, const struct tok_vocab *w)
{
	static const size_t pieces[] = {N_SAMPLE, 1, 7};
	struct tok_cache *cache = tok_cache_create(w, 0, NULL);
	static uint8_t text[2][8 * N_SAMPLE];
	static struct ids a, b;

	assert_non_null(cache);
	encode(v, NULL, N_SAMPLE, &a);
	assert_true(a.n > 40);
	for (size_t i = 0; i < 2 * sizeof(pieces) / sizeof(pieces[0]); i++) {
		encode(w, i % 2 == 0 ? NULL : cache, pieces[i / 2], &b);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.id, b.id, a.n * sizeof(a.id[0]));
	}
	tok_cache_free(cache);
	for (int i = 0; i < 2; i++) {
		struct tok_result r =
			tok_decode(i == 0 ? v : w, a.id, a.n, text[i], sizeof(text[i]));

		assert_int_equal(r.status, TOK_OK);
		assert_int_equal(r.consumed, a.n);
	}
	assert_memory_equal(text[0], text[1], sizeof(text[0]));
}

static void
assert_same_info(const struct tok_vocab *v, const struct tok_vocab *w)
{
	struct tok_vocab_info a = tok_vocab_info(v), b = tok_vocab_info(w);

	assert_string_equal(a.pretokenizer, b.pretokenizer);
	assert_string_equal(a.algo, b.algo);
	assert_int_equal(a.checksum, b.checksum);
	assert_int_equal(a.n_ids, b.n_ids);
	assert_int_equal(a.n_merges, b.n_merges);
	assert_int_equal(a.n_special, b.n_special);
	assert_int_equal(a.max_token_bytes, b.max_token_bytes);
	assert_int_equal(a.table_bytes, b.table_bytes);
	for (uint32_t id = 0; id < a.n_ids; id++) {
		uint32_t n = 0, m = 0;
		const uint8_t *p = tok_vocab_token(v, id, &n), *q = tok_vocab_token(w, id, &m);

		assert_int_equal(p == NULL, q == NULL);
		assert_int_equal(n, m);
		assert_memory_equal(
			p == NULL ? (const void *)"" : p, q == NULL ? (const void *)"" : q, n);
	}
}

FOLDER_TEST(each_kind_is_the_same_when_compiled)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		const char *from = kinds[i].put(state);
		const struct tok_load_opts opts = {.algo = kinds[i].algo};
		struct tok_vocab *v = load(from, &opts), *w;
		struct tok_vocab_info info;
		char path[PATH_MAX];

		compile(state, from, kinds[i].algo, path);
		w = load(path, NULL);
		assert_same_info(v, w);
		assert_same_ids(v, w);
		info = tok_vocab_info(w);
		assert_string_equal(info.format, "tokv");
		assert_string_equal(info.storage, "mapped file");
		assert_string_equal(tok_vocab_info(v).storage, "memory");
		assert_null(tok_vocab_info(v).source);
		assert_non_null(strstr(info.source, strrchr(from, '/') + 1));
		tok_vocab_free(v);
		tok_vocab_free(w);
	}
}

FOLDER_TEST(a_pair_says_both_of_its_files)
{
	char path[PATH_MAX], folder[PATH_MAX];
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_vocab *v;

	put_json(state, "pair/vocab.json", small_vocab_json());
	put_text(state, "pair/merges.txt", small_merges);
	snprintf(folder, sizeof(folder), "%s/pair", (char *)*state);
	snprintf(path, sizeof(path), "%s/a.tokv", (char *)*state);
	assert_true(tok_vocab_compile(folder, &opts, path, NULL));
	v = load(path, NULL);
	assert_non_null(strstr(tok_vocab_info(v).source, "vocab.json: vocab.json of "));
	assert_non_null(strstr(tok_vocab_info(v).source, ", merges.txt of 33 bytes with CRC-32 "));
	tok_vocab_free(v);
}

/* ---- files ---- */

static uint8_t *
read_all(const char *path, size_t *n)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	uint8_t *data;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	*n = (size_t)st.st_size;
	data = malloc(*n + 4096);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *n, f), *n);
	fclose(f);
	return data;
}

FOLDER_TEST(the_same_input_gives_the_same_bytes)
{
	char path[PATH_MAX];
	uint8_t *a, *b;
	size_t n, m;

	compile(state, put_llama3(state), NULL, path);
	a = read_all(path, &n);
	compile(state, put_llama3(state), NULL, path);
	b = read_all(path, &m);
	assert_int_equal(n, m);
	assert_memory_equal(a, b, n);
	free(a);
	free(b);
}

FOLDER_TEST(every_file_that_is_cut_is_refused)
{
	struct tok_error err;
	char path[PATH_MAX];
	uint8_t *data;
	size_t n;

	compile(state, put_gpt2(state), NULL, path);
	data = read_all(path, &n);
	free(data);
	/* At each byte of the head, and some of the tables behind it. */
	for (n--; n > 0; n -= n > 4096 ? 61 : 1) {
		assert_int_equal(truncate(path, (off_t)n), 0);
		assert_null(tok_vocab_load(path, NULL, &err));
	}
	assert_int_equal(truncate(path, 0), 0);
	assert_null(tok_vocab_load(path, NULL, &err));
	assert_non_null(strstr(err.text, "damaged, 0 bytes"));
}

FOLDER_TEST(a_file_with_more_at_its_end_is_refused)
{
	static const size_t more[] = {1, 63, 64, 4096};
	char path[PATH_MAX];
	size_t n;
	uint8_t *data;

	compile(state, put_gpt2(state), NULL, path);
	data = read_all(path, &n);
	memset(data + n, 0, 4096);
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		assert_refused(put_file(state, "b.tokv", data, n + more[i]), "damaged");
	free(data);
}

/* Each bit of the header; of the tables, bits of every 97th byte. */
FOLDER_TEST(every_flipped_bit_is_refused)
{
	const size_t header = sizeof(struct tok_compiled_header);
	char path[PATH_MAX];
	uint8_t *data;
	size_t n;
	int fd;

	compile(state, put_gpt2(state), NULL, path);
	data = read_all(path, &n);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	for (size_t at = 0; at < n; at += at < header ? 1 : 97) {
		for (uint32_t bit = 0; bit < 8; bit++) {
			uint8_t other = data[at] ^ (uint8_t)(1u << bit);
			struct tok_error err;

			if (at >= header && bit != at % 8)
				continue;
			assert_int_equal(pwrite(fd, &other, 1, (off_t)at), 1);
			if (tok_vocab_load(path, NULL, &err) != NULL)
				fail_msg("byte %zu, bit %u", at, bit);
		}
		assert_int_equal(pwrite(fd, data + at, 1, (off_t)at), 1);
	}
	close(fd);
	tok_vocab_free(load(path, NULL));
	free(data);
}

/* ---- files that somebody made ---- */

static struct tok_compiled_header *
header_of(uint8_t *data)
{
	return (struct tok_compiled_header *)data;
}

static void
repair(uint8_t *data, size_t n)
{
	struct tok_compiled_header *h = header_of(data);

	h->data_sum = tok_compiled_sum(data + sizeof(*h), n - sizeof(*h));
	h->header_crc = tok_crc32(0, data, offsetof(struct tok_compiled_header, header_crc));
}

FOLDER_TEST(what_another_program_wrote_is_refused_by_what_it_is)
{
	struct change {
		size_t at;
		uint32_t value;
		const char *says;
	} changes[] = {
		{offsetof(struct tok_compiled_header, magic), 0, "not a compiled vocabulary"},
		{offsetof(struct tok_compiled_header, order), 0x04030201, "another byte order"},
		{offsetof(struct tok_compiled_header, version), 99, "version 99 of the format"},
		{offsetof(struct tok_compiled_header, n_tables), 3, "for 3 tables"},
		{offsetof(struct tok_compiled_header, constants), 3, "other tables of Unicode"},
		{offsetof(struct tok_compiled_header, table[3].element), 4,
			"of elements of 4 bytes"},
		{offsetof(struct tok_compiled_header, table[3].name), 65, "table \"A\""},
		{offsetof(struct tok_compiled_header, table[TOK_TABLE_BYTE_PAIR].bytes), 64,
			"do not fit the file"},
		{offsetof(struct tok_compiled_header, table[3].bytes) + 4, 64,
			"do not fit the file"},
		{offsetof(struct tok_compiled_header, table[3].off), 64, "do not fit the file"},
		{offsetof(struct tok_compiled_header, number[TOK_NUMBER_KIND]), 7, "contradict"},
		{offsetof(struct tok_compiled_header, number[TOK_NUMBER_PRETOK]), 8, "contradict"},
		{offsetof(struct tok_compiled_header, number[TOK_NUMBER_CHECKSUM]), 0,
			"contradict"},
	};
	char path[PATH_MAX];
	uint8_t *data;
	size_t n;

	compile(state, put_gpt2(state), NULL, path);
	data = read_all(path, &n);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct tok_compiled_header kept = *header_of(data);
		const char *made;

		memcpy(data + changes[i].at, &changes[i].value, sizeof(changes[i].value));
		repair(data, n);
		made = put_file(state, "b.tokv", data, n);
		assert_refused(made, changes[i].says);
		assert_refused(made, "compile it again");
		*header_of(data) = kept;
	}
	free(data);
}

/* What it gives does not matter: it ends, within the room that it says it needs. */
static void
use(const struct tok_vocab *v)
{
	static struct tok_stream s;
	static uint8_t text[N_SAMPLE * 4096];
	uint32_t *ids = malloc(tok_encode_bound(v, N_SAMPLE, FLAGS) * sizeof(*ids));
	struct tok_cache *cache = tok_cache_create(v, 64, NULL);
	struct tok_result r;

	assert_non_null(ids);
	assert_non_null(cache);
	r = tok_encode(
		v, cache, sample, N_SAMPLE, FLAGS, ids, tok_encode_bound(v, N_SAMPLE, FLAGS));
	assert_true(r.status == TOK_OK || r.error == TOK_ERROR_CARRY);
	r = tok_decode(v, ids, r.produced, text, sizeof(text));
	assert_true(r.status == TOK_OK || r.error == TOK_ERROR_ID);
	free(ids);
	tok_stream_init(&s, v, cache, FLAGS);
	for (size_t at = 0; at < N_SAMPLE; at++) {
		size_t room = tok_stream_bound(&s, 1);

		assert_true(room <= TOK_STREAM_HELD_MAX);
		ids = malloc(room * sizeof(*ids));
		assert_non_null(ids);
		r = tok_stream_feed(&s, sample + at, 1, at + 1 == N_SAMPLE, ids, room);
		assert_true(r.status == TOK_OK || r.error == TOK_ERROR_CARRY);
		free(ids);
		if (r.status == TOK_BAD)
			break;
	}
	tok_cache_free(cache);
}

/* Another value for a word, mostly one that means something. */
static uint32_t
other_word(const uint8_t *table, size_t words, uint32_t old)
{
	uint32_t word;

	switch (below(7)) {
	case 0:
		return 0;
	case 1:
		return UINT32_MAX;
	case 2:
		return old + 1;
	case 3:
		return old - 1;
	case 4:
		return old ^ 1u << below(32);
	case 5:
		return (uint32_t)below(600);
	default:
		memcpy(&word, table + 4 * below(words), sizeof(word));
		return word;
	}
}

FOLDER_TEST(made_up_tables_are_refused_or_do_no_harm)
{
	const struct tok_load_opts opts = {.mem = &plain_mem};

	for (size_t i = 0; i < N_KINDS; i++) {
		uint32_t n_refused = 0;
		char path[PATH_MAX];
		uint8_t *data;
		size_t n;

		compile(state, kinds[i].put(state), kinds[i].algo, path);
		data = read_all(path, &n);
		for (uint32_t round = 0; round < CRAFTED; round++) {
			struct tok_compiled_header kept = *header_of(data);
			const struct tok_compiled_table *t;
			uint32_t old, new;
			uint8_t *at;
			struct tok_error err;
			struct tok_vocab *v;

			do
				t = &kept.table[below(TOK_N_TABLES)];
			while (t->bytes < 4);
			at = data + t->off + 4 * below(t->bytes / 4);
			memcpy(&old, at, sizeof(old));
			new = other_word(data + t->off, t->bytes / 4, old);
			memcpy(at, &new, sizeof(new));
			repair(data, n);
			v = tok_vocab_load(put_file(state, "b.tokv", data, n), &opts, &err);
			if (v != NULL)
				use(v);
			else
				n_refused++;
			tok_vocab_free(v);
			memcpy(at, &old, sizeof(old));
			*header_of(data) = kept;
		}
		print_message("# %s: %u of %u refused\n", kinds[i].name, n_refused, CRAFTED);
		assert_true(n_refused > CRAFTED / 4);
		free(data);
	}
}

/* ---- memory ---- */

static const struct tok_vocab *uncompiled;

/* What was loaded does not need its file. */
static void
use_without(const struct tok_vocab *v, const char *path)
{
	assert_string_equal(tok_vocab_info(v).storage, "memory");
	assert_int_equal(unlink(path), 0);
	assert_same_ids(uncompiled, v);
}

FOLDER_TEST(the_callers_memory_has_copies_of_all_tables)
{
	const char *from = put_llama3(state);
	struct tok_vocab *v = load(from, NULL);
	char path[PATH_MAX];

	compile(state, from, NULL, path);
	uncompiled = v;
	assert_memory_may_end(path, use_without);
	tok_vocab_free(v);
}

/* Where none are reserved the load fails, and says what to do. */
FOLDER_TEST(huge_pages_are_used_or_missed_in_words)
{
	const struct tok_load_opts opts = {.huge_pages = true};
	const char *from = put_llama3(state);
	char compiled[PATH_MAX];

	compile(state, from, NULL, compiled);
	for (int i = 0; i < 2; i++) {
		struct tok_error err;
		struct tok_vocab *v = load(from, NULL);
		struct tok_vocab *w = tok_vocab_load(i == 0 ? from : compiled, &opts, &err);

		if (w == NULL) {
			print_message("# not in huge pages: %s\n", err.text);
			assert_non_null(strstr(err.text, "leave the option out"));
		} else {
			assert_string_equal(tok_vocab_info(w).storage, "huge pages");
			assert_same_info(v, w);
			assert_same_ids(v, w);
		}
		tok_vocab_free(v);
		tok_vocab_free(w);
	}
}

/* Sum of a line of /proc/self/smaps, in KiB, over the mappings of a file; how many they are. */
static uint64_t
mapped(const char *path, const char *what, uint32_t *n)
{
	char line[PATH_MAX + 128];
	FILE *f = fopen("/proc/self/smaps", "r");
	bool ours = false;
	uint64_t sum = 0;

	assert_non_null(f);
	*n = 0;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (strchr(line, '-') != NULL && strchr(line, '-') < strchr(line, ' ')) {
			ours = strstr(line, path) != NULL;
			*n += ours;
			if (ours)
				assert_non_null(strstr(line, " r--s "));
		} else if (ours && strncmp(line, what, strlen(what)) == 0) {
			sum += strtoull(line + strlen(what), NULL, 10);
		}
	}
	fclose(f);
	return sum;
}

FOLDER_TEST(processes_share_a_compiled_vocabulary)
{
	struct tok_vocab *v;
	char path[PATH_MAX], c = 0;
	int up[2], down[2], status;
	uint32_t n;
	pid_t child;

	compile(state, put_gpt2(state), NULL, path);
	assert_int_equal(pipe(up), 0);
	assert_int_equal(pipe(down), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) { /* it has it mapped until we have looked */
		v = tok_vocab_load(path, NULL, NULL);
		_exit(v != NULL && write(up[1], &c, 1) == 1 && read(down[0], &c, 1) == 1 ? 0 : 1);
	}
	assert_int_equal(read(up[0], &c, 1), 1);
	v = load(path, NULL);
	assert_int_equal(
		mapped(path, "Private_Clean:", &n) + mapped(path, "Private_Dirty:", &n), 0);
	assert_true(mapped(path, "Shared_Clean:", &n) + mapped(path, "Shared_Dirty:", &n) >=
		    tok_vocab_info(v).table_bytes / 1024);
	assert_int_equal(n, 1);
	assert_int_equal(write(down[1], &c, 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	tok_vocab_free(v);
}

/* ---- use ---- */

FOLDER_TEST(a_name_finds_the_compiled_one_first)
{
	const struct tok_load_opts opts = {.search_path = *state},
				   greedy = {.search_path = *state, .algo = "greedy"};
	struct tok_error err;
	struct tok_vocab *v;
	char path[PATH_MAX];

	put_gpt2(state);
	v = load("gpt2", &opts);
	assert_string_equal(tok_vocab_info(v).format, "tokenizer.json");
	tok_vocab_free(v);
	snprintf(path, sizeof(path), "%s/gpt2.tokv", (char *)*state);
	assert_true(tok_vocab_compile("gpt2", &opts, path, NULL));
	v = load("gpt2", &opts);
	assert_string_equal(tok_vocab_info(v).format, "tokv");
	assert_string_equal(tok_vocab_info(v).path, path);
	tok_vocab_free(v);
	assert_null(tok_vocab_load("gpt2", &greedy, &err));
	assert_non_null(strstr(err.text, "compiled for algo exact, not greedy"));
}

FOLDER_TEST(what_cannot_be_compiled_is_said_and_leaves_nothing)
{
	char path[PATH_MAX], other[PATH_MAX];
	const char *from = put_gpt2(state);
	struct tok_error err;
	glob_t left;

	compile(state, from, NULL, path);
	snprintf(other, sizeof(other), "%s/b.tokv", (char *)*state);
	assert_false(tok_vocab_compile(path, NULL, other, &err));
	assert_non_null(strstr(err.text, "a.tokv is compiled: name the file"));
	snprintf(other, sizeof(other), "%s/b.json", (char *)*state);
	assert_false(tok_vocab_compile(from, NULL, other, &err));
	assert_non_null(strstr(err.text, "ends in .tokv"));
	snprintf(other, sizeof(other), "%s/none/b.tokv", (char *)*state);
	assert_false(tok_vocab_compile(from, NULL, other, &err));
	assert_non_null(strstr(err.text, "No such file"));
	assert_false(tok_vocab_compile("/none.json", NULL, other, &err));
	snprintf(other, sizeof(other), "%s/folder.tokv", (char *)*state);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_false(tok_vocab_compile(from, NULL, other, &err));
	assert_non_null(strstr(err.text, "Is a directory"));
	snprintf(other, sizeof(other), "%s/*.tokv*", (char *)*state);
	assert_int_equal(glob(other, 0, NULL, &left), 0);
	assert_int_equal(left.gl_pathc, 2); /* a.tokv, and the folder */
	globfree(&left);
}
