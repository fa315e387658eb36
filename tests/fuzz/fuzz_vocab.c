/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vocabulary files, one format by the first byte of the input. A byte-level vocabulary has a token
 * for each byte, which would be most of an input: a \1 in it stands for these 256, as the format
 * has them; before a SentencePiece model there always are. What is refused is so in one line; with
 * what is loaded, a text becomes the same ids whole and byte by byte, and those the same bytes at
 * once and one by one: the text again, unless a normalizer has changed it.
 */
#include <malloc.h>
#include <string.h>

#include "fuzz.h"
#include "build/model_make.h"
#include "unicode/utf8.h"

#define BETWEEN "\n---\n"
#define ALL_BYTES 1 /* what stands for the 256 */

enum format {
	TOKENIZER_JSON, /* byte-level BPE, WordPiece or Unigram */
	GPT2_PAIR,	/* vocab.json and merges.txt, a line that is --- between */
	TIKTOKEN_GPT2,	/* said to be gpt2's */
	TIKTOKEN_O200K,
	VOCAB_TXT,
	VOCAB_TXT_CASED,
	TEKKEN_JSON,
	TIKTOKEN, /* by its content */
	SENTENCEPIECE,
	FORMATS
};
#define GREEDY 0x80 /* of the first byte */

static const char sample[] = "hello world, the 123 \xc3\xa9 \xe4\xb8\xad\n  end";

static struct {
	char *text;
	size_t bytes;
} file[2];

/* The tokens of the single bytes, of ids or ranks 0 to 255. */
static char json_bytes[4096], tiktoken_bytes[4096], tekken_bytes[12288], piece_bytes[4096];

char *__wrap_tok_read_file(const char *path, size_t *len, struct tok_error *err);

/* The two files there are: named "0" and "1". */
char *
__wrap_tok_read_file(const char *path, size_t *len, struct tok_error *err)
{
	const uint32_t i = path[0] == '1';
	char *text = malloc(file[i].bytes + 1);

	MUST(text != NULL);
	memcpy(text, file[i].text, file[i].bytes);
	text[file[i].bytes] = '\0';
	*len = file[i].bytes;
	return text;
}

/* ---- files from an input ---- */

/* As GPT-2's encoder.py writes a byte: itself if it is printable Latin-1, else from U+0100 on. */
static uint32_t
letter_of(uint32_t byte, uint32_t *others)
{
	if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174)
		return byte;
	return 256 + (*others)++;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *json = json_bytes, *tiktoken = tiktoken_bytes, *tekken = tekken_bytes;
	char *piece = piece_bytes;
	uint32_t others = 0;

	for (uint32_t i = 0; i < 256; i++) {
		const uint32_t letter = letter_of(i, &others);
		const char base64[] = {digit[i >> 2], digit[(i & 3) << 4], '=', '=', '\0'};
		const char *comma = i > 0 ? "," : "";
		uint8_t utf8[4];

		json += sprintf(json, "%s\"%s%.*s\":%u", comma, i == '"' || i == '\\' ? "\\" : "",
			(int)tok_utf8_encode(letter, utf8), (const char *)utf8, i);
		tiktoken += sprintf(tiktoken, "%s %u\n", base64, i);
		/* A message in field 1: a piece in field 1, its type in field 3. */
		piece += sprintf(piece, "\x0a\x0a\x0a\x06<0x%02X>\x18\x06", i);
		tekken +=
			sprintf(tekken, "%s{\"rank\":%u,\"token_bytes\":\"%s\"}", comma, i, base64);
	}
	/* What a load frees is for the next one, and need not go to the system in between. */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	return 0;
}

static const char *
bytes_of(enum format format)
{
	switch (format) {
	case TOKENIZER_JSON:
	case GPT2_PAIR:
		return json_bytes;
	case TEKKEN_JSON:
		return tekken_bytes;
	case VOCAB_TXT:
	case VOCAB_TXT_CASED:
		return NULL;
	default:
		return tiktoken_bytes;
	}
}

/* The input as a file, with one ALL_BYTES replaced. */
static void
put_file(uint32_t i, const uint8_t *p, size_t n, const char *all_bytes)
{
	const uint8_t *at = all_bytes != NULL ? memchr(p, ALL_BYTES, n) : NULL;
	const size_t before = at != NULL ? (size_t)(at - p) : n;
	const size_t put = at != NULL ? strlen(all_bytes) : 0,
		     behind = at != NULL ? n - before - 1 : 0;
	char *text = malloc(n + put + 1);

	MUST(text != NULL);
	memcpy(text, p, before);
	if (put > 0)
		memcpy(text + before, all_bytes, put);
	memcpy(text + before + put, p + n - behind, behind);
	file[i].text = text;
	file[i].bytes = before + put + behind;
}

static void
put_model(const uint8_t *p, size_t n)
{
	const size_t bytes = strlen(piece_bytes);
	char *text = malloc(bytes + n + 1);

	MUST(text != NULL);
	memcpy(text, piece_bytes, bytes);
	memcpy(text + bytes, p, n);
	file[0].text = text;
	file[0].bytes = bytes + n;
}

static void
take_files(const uint8_t *p, size_t n, enum format format)
{
	const uint8_t *between =
		format == GPT2_PAIR ? memmem(p, n, BETWEEN, strlen(BETWEEN)) : NULL;
	const size_t first = between != NULL ? (size_t)(between - p) : n;
	const size_t skip = between != NULL ? first + strlen(BETWEEN) : n;

	if (format == SENTENCEPIECE)
		put_model(p, n);
	else
		put_file(0, p, first, bytes_of(format));
	put_file(1, p + skip, n - skip, NULL);
}

static bool
load(enum format format, struct tok_model *m, struct tok_error *err)
{
	switch (format) {
	case GPT2_PAIR:
		return tok_load_gpt2_pair("0", "1", "gpt2", m, err);
	case TIKTOKEN_GPT2:
		return tok_load_tiktoken("0", "gpt2", m, err);
	case TIKTOKEN_O200K:
		return tok_load_tiktoken("0", "o200k", m, err);
	case TIKTOKEN:
		return tok_load_tiktoken("0", NULL, m, err);
	case VOCAB_TXT:
		return tok_load_bert_vocab("0", NULL, m, err);
	case VOCAB_TXT_CASED:
		return tok_load_bert_vocab("0", "bert-cased", m, err);
	case SENTENCEPIECE:
		return tok_load_sp_model("0", m, err);
	default:
		return tok_load_tokenizer_json("0", NULL, 0, m, err);
	}
}

/* ---- what is loaded ---- */

#define IDS_MAX (TOK_IDS_PER_BYTE_MAX * sizeof(sample) + 512)

/* Fed byte by byte, the text has the same ids. */
static void
use_stream(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	static struct tok_stream s;
	uint32_t again[IDS_MAX];
	size_t got = 0;

	tok_stream_init(&s, v, NULL, 0);
	for (size_t i = 0; i < sizeof(sample) - 1; i++) {
		const size_t bound = tok_stream_bound(&s, 1);
		const struct tok_result r = tok_stream_feed(
			&s, sample + i, 1, i + 2 == sizeof(sample), again + got, IDS_MAX - got);

		MUST(r.status == TOK_OK && r.produced <= bound);
		got += r.produced;
	}
	MUST(got == n && memcmp(ids, again, n * sizeof(*ids)) == 0);
}

/* Decoded one by one, the ids have the same bytes. */
static void
use_decoder(const struct tok_vocab *v, const uint32_t *ids, size_t n, bool is_sample)
{
	static uint8_t whole[4096 * sizeof(sample)], part[4096];
	const struct tok_result r = tok_decode(v, ids, n, whole, sizeof(whole));
	struct tok_decode_stream d;
	size_t at = 0;

	MUST(r.status == TOK_OK && r.consumed == n);
	if (is_sample)
		MUST(r.produced == sizeof(sample) - 1 && memcmp(whole, sample, r.produced) == 0);
	tok_decode_stream_init(&d, v);
	for (size_t i = 0; i < n; i++) {
		const struct tok_result one =
			tok_decode_stream_feed(&d, ids + i, 1, i + 1 == n, part, sizeof(part));

		MUST(one.status == TOK_OK && at + one.produced <= r.produced);
		MUST(memcmp(whole + at, part, one.produced) == 0);
		at += one.produced;
	}
	MUST(at == r.produced);
}

/* The template's ids are ids, and there is room for them where tok.h says there is. */
static void
use_template(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	const struct tok_template *t = &tok_vocab_shape(v)->around;
	const size_t room = tok_encode_bound(v, sizeof(sample) - 1, TOK_TEMPLATE);
	uint32_t *all = malloc(room * sizeof(*all));
	struct tok_result r;

	MUST(all != NULL && t->n_before <= TOK_TEMPLATE_MAX && t->n_after <= TOK_TEMPLATE_MAX);
	r = tok_encode(v, NULL, sample, sizeof(sample) - 1, TOK_TEMPLATE, all, room);
	MUST(r.status == TOK_OK && r.produced == t->n_before + n + t->n_after);
	MUST(memcmp(all, t->before, t->n_before * sizeof(*all)) == 0);
	MUST(memcmp(all + t->n_before, ids, n * sizeof(*all)) == 0);
	MUST(memcmp(all + t->n_before + n, t->after, t->n_after * sizeof(*all)) == 0);
	for (size_t i = 0; i < r.produced; i++)
		MUST(all[i] < tok_vocab_info(v).n_ids);
	free(all);
}

static void
use(const struct tok_vocab *v)
{
	const struct tok_vocab_info info = tok_vocab_info(v);
	uint32_t ids[IDS_MAX];
	struct tok_result r;
	uint32_t len;

	MUST(info.checksum != 0 && info.n_ids > 0);
	for (uint32_t id = 0; id <= info.n_ids; id++)
		MUST(tok_vocab_token(v, id, &len) == NULL || (id < info.n_ids && len > 0));
	r = tok_encode(v, NULL, sample, sizeof(sample) - 1, 0, ids, IDS_MAX);
	MUST(r.status == TOK_OK && r.consumed == sizeof(sample) - 1);
	for (size_t i = 0; i < r.produced; i++)
		MUST(ids[i] < info.n_ids);
	use_template(v, ids, r.produced);
	use_stream(v, ids, r.produced);
	use_decoder(v, ids, r.produced,
		strcmp(info.normalizer, "none") == 0 || strcmp(info.normalizer, "nfc") == 0);
}

/* One line of UTF-8. */
static void
check_error(const char *text, size_t n)
{
	MUST(n > 0 && memchr(text, '\n', n) == NULL);
	MUST(tok_utf8_scan((const uint8_t *)text, n).valid == n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tok_mem mem = {.alloc = plain_alloc, .free = plain_free};
	const enum format format = size > 0 ? (data[0] & ~GREEDY) % FORMATS : 0;
	struct tok_error err = {""};
	struct tok_model m = {0};
	struct tok_vocab *v = NULL;

	if (size == 0)
		return 0;
	take_files(data + 1, size - 1, format);
	if (load(format, &m, &err)) {
		m.greedy = m.kind == TOK_KIND_BPE && (data[0] & GREEDY);
		MUST(tok_model_checksum(&m) != 0);
		v = tok_vocab_build(&m, "fuzz", "0", &mem, &err);
		tok_model_free(&m);
	}
	if (v != NULL)
		use(v);
	else
		check_error(err.text, strlen(err.text));
	tok_vocab_free(v);
	free(file[0].text);
	free(file[1].text);
	return 0;
}
