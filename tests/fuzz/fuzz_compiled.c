/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled vocabularies that somebody made up. The input says what is changed of a sound file,
 * whose checksums are then made right: what is looked at is whether tables are believed that must
 * not be. First a byte for which file; then changes of eight bytes: header or table, bytes, place,
 * value. What is loaded encodes a text, and decodes what comes of it, within the room that it says
 * it needs.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "tables/crc32.h"
#include "compiled/compiled.h"
#include "fuzz.h"
#include "build/model_make.h"
#include "build/pieces.h"
#include "pretokenize/pretok.h"
#include "small_vocab.h"

#define KINDS 14
#define CHANGES_MAX 32

static const char sample[] =
	"hello wORLd he'll \xc3\xa9\xcc\x81 \xe4\xb8\xad \xed\x95\x9c 12345  \n"
	"hellohellohellohellohello xyz hel\n  end <a><s>  bb cab \n\n LO e\xcc\x81 < ##xyz";

#define FLAGS (TOK_TEMPLATE | TOK_SPECIAL)

static struct {
	uint8_t *data; /* of a sound file */
	size_t n;
} kind[KINDS];

static uint8_t *made; /* what is loaded, at the path below */
static int made_fd;
static char made_path[64];

/* ---- sound files ---- */

static void
put_token(struct tok_model *m, const char *text, uint32_t n, bool special)
{
	tok_model_put(m, m->n_tokens++, (const uint8_t *)text, n, special);
}

/* All bytes, and some words of the sample. The first of `merges` tokens behind the bytes are
 * merged. */
static void
make_bpe(struct tok_model *m, enum tok_pretok pretok, bool greedy, bool whole)
{
	static const char *const words[] = {
		"he", "ll", "hell", " w", "\xc3\xa9", "hello", "xyz", "hel"};
	static const uint32_t merges[][3] = {{'h', 'e', 256}, {'l', 'l', 257}, {256, 257, 258},
		{' ', 'w', 259}, {0xc3, 0xa9, 260}, {258, 'o', 261}};

	*m = (struct tok_model){.format = "fuzz",
		.pretok = pretok,
		.greedy = greedy,
		.ignore_merges = whole,
		.norm = {.n = whole, .step = {{.kind = TOK_NORM_FORM_C}}}};
	MUST(tok_model_init(m, 265, 400, 6, NULL));
	m->n_tokens = 0;
	for (int byte = 0; byte < 256; byte++) {
		char one = (char)byte;

		put_token(m, &one, 1, false);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put_token(m, words[i], (uint32_t)strlen(words[i]), false);
	put_token(m, "<s>", 3, true);
	for (size_t i = 0; i < sizeof(merges) / sizeof(merges[0]); i++)
		tok_model_put_merge(m, merges[i][0], merges[i][1], merges[i][2]);
}

static void
put_map(struct tok_model *m)
{
	static uint8_t map[SMALL_MAP_BYTES];

	m->unigram.charsmap = malloc(SMALL_MAP_BYTES);
	MUST(m->unigram.charsmap != NULL);
	m->unigram.charsmap_bytes =
		small_map(map, &m->unigram.charsmap_trie, m->unigram.sentencepiece);
	memcpy(m->unigram.charsmap, map, m->unigram.charsmap_bytes);
}

/* A piece that sentencepiece's normalizer looks for. */
static void
put_own(struct tok_model *m)
{
	m->added = calloc(2, sizeof(*m->added));
	m->added_bytes = malloc(8);
	MUST(m->added != NULL && m->added_bytes != NULL);
	memcpy(m->added_bytes, "llo", 3);
	m->added[m->n_added++] = (struct tok_model_added){.id = 5, .len = 3};
	if (m->kind == TOK_KIND_BPE)
		m->added[m->n_added++] =
			(struct tok_model_added){.id = 5, .what = TOK_ADDED_NORMALIZED, .len = 3};
}

enum piece_kind {
	PIECES_PLAIN,
	PIECES_NORMALIZED,
	PIECES_WITHOUT_BYTES, /* normalized as well */
};

/* Characters that fall back to bytes or not; runs of l, of which the longest comes first. */
static void
make_pieces(struct tok_model *m, enum piece_kind how)
{
	static const char *const pieces[] = {"h", "e", "l", "\xc3\xa9", "\xe4\xb8\xad", "he", "ll",
		"lll", "llll", TOK_METASPACE, TOK_METASPACE "he", "o", "lo"};
	static const uint32_t merges[][3] = {
		{7, 2, 8}, {6, 2, 7}, {2, 2, 6}, {0, 1, 5}, {9, 5, 10}, {2, 11, 12}};

	*m = (struct tok_model){.format = "fuzz",
		.pretok = TOK_PRETOK_SENTENCEPIECE,
		.metaspace = {TOK_METASPACE_NORMALIZER, TOK_PREFIX_TEXT, true}};
	if (how != PIECES_PLAIN) {
		m->metaspace = (struct tok_metaspace){.stage = TOK_METASPACE_NORMALIZER};
		m->unigram = (struct tok_model_unigram){.strip_left = true,
			.strip_right = true,
			.squeeze = true,
			.sentencepiece = true,
			.dummy = TOK_DUMMY_PREFIX,
			.blanks = true,
			.unk = 4,
			.byte_fallback = how == PIECES_NORMALIZED,
			.decode_strips = true};
		put_map(m);
		put_own(m);
	}
	MUST(tok_piece_init(m, 256 + 13, 4096, 6, NULL));
	m->n_tokens = 0;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		tok_piece_put(m, m->n_tokens++, pieces[i], strlen(pieces[i]), -1);
	for (uint32_t byte = 0; how != PIECES_WITHOUT_BYTES && byte < 256; byte++) {
		char text[8];

		snprintf(text, sizeof(text), "<0x%02X>", byte);
		tok_piece_put(m, m->n_tokens++, text, 6, (int)byte);
	}
	MUST(tok_piece_characters(m, "fuzz", NULL));
	for (size_t i = 0; i < sizeof(merges) / sizeof(merges[0]); i++)
		tok_model_put_merge(m, merges[i][0], merges[i][1], merges[i][2]);
}

static void
make_bert(struct tok_model *m)
{
	static const char *const words[] = {"[UNK]", "he", "hell", "##llo", "##o", "w", "##or",
		"##ld", "12", "##3", "##he", "##ll", "\xe4\xb8\xad", "end", "##xyz", "e"};

	*m = (struct tok_model){.format = "fuzz",
		.kind = TOK_KIND_WORDPIECE,
		.pretok = TOK_PRETOK_BERT,
		.bert = {true, true, true, true, true, 100, 0}};
	MUST(tok_model_init(m, sizeof(words) / sizeof(words[0]), 400, 0, NULL));
	m->n_tokens = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put_token(m, words[i], (uint32_t)strlen(words[i]), i == 0);
}

static void
make_unigram(struct tok_model *m, bool sentencepiece)
{
	static const char *const words[] = {"<unk>", " ", " he", "l", "ll", "llo", "o", " w", "or",
		"ld", "e", "en", "d", "\xe4\xb8\xad", "1", "12", " the", "h", "s"};
	enum { N = sizeof(words) / sizeof(words[0]), ROOM = N + 256 };
	char name[8];

	*m = (struct tok_model){.format = "fuzz",
		.kind = TOK_KIND_UNIGRAM,
		.unigram = {.strip_left = sentencepiece,
			.strip_right = true,
			.squeeze = true,
			.sentencepiece = sentencepiece,
			.dummy = sentencepiece ? TOK_DUMMY_PREFIX : TOK_DUMMY_NONE,
			.blanks = true,
			.split = !sentencepiece,
			.prefix = sentencepiece ? TOK_PREFIX_NONE : TOK_PREFIX_EACH,
			.n_pieces = ROOM,
			.byte_fallback = true,
			.decode_strips = true}};
	MUST(tok_model_init(m, ROOM, 400 + 6 * 256, 0, NULL));
	m->unigram.score = calloc(ROOM + 16, sizeof(*m->unigram.score));
	MUST(m->unigram.score != NULL);
	put_map(m);
	m->n_tokens = 0;
	for (uint32_t i = 0; i < N; i++) {
		m->unigram.score[i] = -(double)(i % 5);
		put_token(m, words[i], (uint32_t)strlen(words[i]), false);
	}
	for (uint32_t byte = 0; byte < 256; byte++) {
		m->unigram.score[m->n_tokens] = -9;
		snprintf(name, sizeof(name), "<0x%02X>", byte);
		put_token(m, name, 6, false);
	}
	if (!sentencepiece)
		return;
	m->unigram.unknown = -15;
	m->token[0].outside = true;
	for (uint32_t byte = 0; byte < 256; byte++) {
		struct tok_model_token *t = &m->token[N + byte];

		t->byte = t->outside = true;
		t->len = 1;
		m->bytes[t->off] = (uint8_t)byte;
	}
	put_own(m);
}

/* Steps of all kinds. Maps of a byte-level vocabulary are behind others; a literal is in others. */
static void
put_steps(struct tok_model *m, enum tok_norm_kind form)
{
	static const struct tok_model_step steps[] = {
		{.kind = TOK_NORM_LITERAL, .literal = {2, 1, "``", "'"}},
		{.kind = TOK_NORM_LITERAL, .literal = {5, 4, "xyxyz", "zz  "}},
		{.kind = TOK_NORM_MAP,
			.n_ops = 3,
			.op = {{.kind = TOK_OP_COMPAT}, {.kind = TOK_OP_CLEAN},
				{.kind = TOK_OP_CHAR, .cp = 'o', .n_to = 3, .to = "e\xcc\x81"}}},
		{.kind = TOK_NORM_FORM_C},
		{.kind = TOK_NORM_MAP,
			.n_ops = 3,
			.op = {{.kind = TOK_OP_ACCENTS}, {.kind = TOK_OP_LOWER},
				{.kind = TOK_OP_AROUND}}},
		{.kind = TOK_NORM_SQUEEZE, .arg = TOK_SQUEEZE_SEVERAL},
		{.kind = TOK_NORM_STRIP, .arg = TOK_STRIP_LEFT | TOK_STRIP_RIGHT},
	};

	m->norm.n = sizeof(steps) / sizeof(steps[0]);
	memcpy(m->norm.step, steps, sizeof(steps));
	m->norm.step[3].kind = form;
}

/* CLIP: all bytes and some words, and the same at the end of a word. */
static void
make_word_ends(struct tok_model *m)
{
	static const char *const words[] = {"he", "hel", "lo", "lo ", "hello ", "xy", "<s>"};
	static const uint32_t merges[][3] = {{'h', 'e', 512}, {512, 'l', 513}, {'l', 'o', 514},
		{514, ' ', 515}, {513, 515, 516}, {'x', 'y', 517}};

	*m = (struct tok_model){.format = "fuzz",
		.pretok = TOK_PRETOK_REGEX,
		.word_end = TOK_WORD_END_SPECIALS,
		.behavior = {TOK_SPLIT_ISOLATED}};
	m->regex[0] = strdup("'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+");
	MUST(m->regex[0] != NULL && tok_model_init(m, 512 + 7, 512 + 256 + 64, 256 + 6, NULL));
	m->n_tokens = 0;
	for (int byte = 0; byte < 512; byte++) {
		const char one[2] = {(char)byte, ' '};

		put_token(m, one, byte < 256 ? 1 : 2, false);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		put_token(m, words[i], (uint32_t)strlen(words[i]), i == 6);
	for (uint32_t byte = 0; byte < 256; byte++)
		tok_model_put_merge(m, byte, ' ', 256 + byte);
	for (size_t i = 0; i < sizeof(merges) / sizeof(merges[0]); i++)
		tok_model_put_merge(m, merges[i][0], merges[i][1], merges[i][2]);
	put_steps(m, TOK_NORM_FORM_C);
}

static void
make_kind(uint32_t which, const char *path)
{
	struct tok_error err;
	struct tok_vocab *v;
	struct tok_model m;
	int fd;

	if (which == 4)
		make_pieces(&m, PIECES_PLAIN);
	else if (which == 10)
		make_word_ends(&m);
	else if (which == 7 || which == 8)
		make_pieces(&m, which == 7 ? PIECES_NORMALIZED : PIECES_WITHOUT_BYTES);
	else if (which == 3 || which == 11 || which == 13)
		make_bert(&m);
	else if (which == 5 || which == 6 || which == 12)
		make_unigram(&m, which == 6);
	else
		make_bpe(&m, which == 2 ? TOK_PRETOK_LLAMA3 : TOK_PRETOK_GPT2, which == 1,
			which == 2);
	if (which == 11) { /* WordLevel */
		m.bert = (struct tok_model_bert){.max_chars = TOK_WORD_MAX, .whole = true};
		m.pretok = TOK_PRETOK_WORDS;
	}
	if (which == 13)
		m.pretok = TOK_PRETOK_WHITE;
	if (which == 9 || which >= 11)
		put_steps(&m, which == 9 ? TOK_NORM_FORM_C : TOK_NORM_FORM_D);
	if (which == 2)
		small_added(&m);
	if (which == 9)
		put_own(&m);
	v = tok_vocab_build(&m, "fuzz", path, NULL, &err);
	if (v == NULL)
		fprintf(stderr, "%u: %s\n", which, err.text);
	MUST(v != NULL && tok_compiled_write(v, NULL, 0, path, &err));
	tok_vocab_free(v);
	tok_model_free(&m);
	fd = open(path, O_RDONLY);
	MUST(fd >= 0);
	kind[which].n = (size_t)lseek(fd, 0, SEEK_END);
	kind[which].data = malloc(kind[which].n);
	MUST(pread(fd, kind[which].data, kind[which].n, 0) == (ssize_t)kind[which].n);
	close(fd);
	unlink(path);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[] = "/tmp/fuzz-compiled-XXXXXX.tokv";
	size_t most = 0;

	close(mkstemps(path, 5));
	for (uint32_t i = 0; i < KINDS; i++) {
		make_kind(i, path);
		most = kind[i].n > most ? kind[i].n : most;
	}
	made_fd = memfd_create("fuzz", 0);
	MUST(made_fd >= 0 && ftruncate(made_fd, (off_t)most) == 0);
	made = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED, made_fd, 0);
	MUST(made != MAP_FAILED);
	snprintf(made_path, sizeof(made_path), "/proc/self/fd/%d", made_fd);
	return 0;
}

/* ---- made-up ones ---- */

/* The directory stays: where tables are was looked at before their content is. */
static void
change(struct input *in)
{
	struct tok_compiled_header *h = (struct tok_compiled_header *)made;
	const uint32_t which = (uint32_t)input_take(in, 1), bytes = 1u << input_take(in, 1) % 4;
	const uint64_t place = input_take(in, 2), value = input_take(in, 4);
	const uint32_t wide = (uint32_t)value;
	uint64_t out = (uint64_t)(int64_t)(int32_t)wide; /* all ones may be meant */
	const struct tok_compiled_table *t;

	if (which == 255) {
		h->number[place % TOK_N_NUMBERS] = wide;
		return;
	}
	t = &h->table[which % TOK_N_TABLES];
	if (t->bytes < 8)
		return;
	/* From the front, or from the back: what is in between is mostly alike. */
	memcpy(made + t->off +
			(which & 0x80 ? t->bytes - bytes - place % (t->bytes - bytes + 1)
				      : place * bytes % (t->bytes - bytes + 1)),
		&out, bytes);
}

static void
feed(const struct tok_vocab *v, struct tok_cache *cache, const char *p, size_t n, size_t first,
	size_t each)
{
	static struct tok_stream s;
	struct tok_result r = {.status = TOK_OK};

	tok_stream_init(&s, v, cache, FLAGS);
	MUST(tok_stream_bound(&s, 1) <= TOK_STREAM_HELD_MAX);
	for (size_t at = 0, some = first; at < n && r.status != TOK_BAD; at += some, some = each) {
		const size_t room = tok_stream_bound(&s, some);
		uint32_t *ids = malloc(room * sizeof(*ids));

		r = tok_stream_feed(&s, p + at, some, at + some == n, ids, room);
		MUST(r.status == TOK_OK || r.error == TOK_ERROR_CARRY ||
			r.error == TOK_ERROR_WHITE);
		MUST(tok_stream_bound(&s, 1) <= TOK_STREAM_HELD_MAX);
		free(ids);
	}
}

static void
use(const struct tok_vocab *v)
{
	static uint8_t text[sizeof(sample) * 4096];
	static struct tok_cache *cache;
	const size_t n = sizeof(sample) - 1, open = n - TOK_SCAN_BLOCK - 2,
		     bound = tok_encode_bound(v, n, FLAGS);
	char broken[sizeof(sample)];
	uint32_t *ids = malloc(bound * sizeof(*ids));
	struct tok_result r;

	cache = tok_cache_create(v, 64, NULL);
	MUST(ids != NULL && cache != NULL);
	r = tok_encode(v, cache, sample, n, FLAGS, ids, bound);
	MUST(r.status == TOK_OK || r.error == TOK_ERROR_CARRY || r.error == TOK_ERROR_WHITE);
	for (size_t i = 0; i < r.produced; i++)
		MUST(ids[i] < tok_vocab_info(v).n_ids);
	r = tok_decode(v, ids, r.produced, text, sizeof(text));
	MUST(r.status == TOK_OK || r.error == TOK_ERROR_ID);
	free(ids);
	feed(v, cache, sample, n, 1, 1);
	/* The second piece goes with the pretoken that the first one leaves open. */
	MUST(n - open >= TOK_SCAN_BLOCK);
	feed(v, cache, sample, n, open, n - open);
	memcpy(broken, sample, n);
	memset(broken + open, 0xff, 32);
	feed(v, cache, broken, n, open, n - open);
	tok_cache_free(cache);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tok_mem mem = {.alloc = plain_alloc, .free = plain_free};
	const struct tok_load_opts opts = {.mem = &mem};
	struct tok_compiled_header *h = (struct tok_compiled_header *)made;
	struct input in = {data, data + size};
	const uint32_t which = (uint32_t)input_take(&in, 1) % KINDS;
	struct tok_error err = {""};
	struct tok_vocab *v;

	MUST(ftruncate(made_fd, (off_t)kind[which].n) == 0);
	memcpy(made, kind[which].data, kind[which].n);
	for (uint32_t i = 0; i < CHANGES_MAX && input_more(&in); i++)
		change(&in);
	h->data_sum = tok_compiled_sum(made + sizeof(*h), kind[which].n - sizeof(*h));
	h->header_crc = tok_crc32(0, made, offsetof(struct tok_compiled_header, header_crc));
	v = tok_compiled_load(made_path, "fuzz", &opts, &err);
	if (v != NULL)
		use(v);
	else
		MUST(strstr(err.text, "contradict") != NULL && strchr(err.text, '\n') == NULL);
	tok_vocab_free(v);
	return 0;
}
