/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vocabulary files: the input is tokenizer.json, vocab.json and merges.txt (a line that is ---
 * between), a .tiktoken or a vocab.txt, as its first byte says. What is refused is so in one line;
 * with what is loaded, a text becomes ids and those become the text again; BERT's normalizer
 * changes it, but the ids are the same byte by byte.
 */
#include <string.h>

#include "fuzz.h"
#include "model_make.h"

#define BETWEEN "\n---\n"

static const char sample[] = "hello world, the 123 \xc3\xa9 \xe4\xb8\xad\n  end";

static const char *file[2];
static size_t file_bytes[2];

char *__wrap_tok_read_file(const char *path, size_t *len, struct tok_error *err);

/* The two files there are: named "0" and "1". */
char *
__wrap_tok_read_file(const char *path, size_t *len, struct tok_error *err)
{
	const uint32_t i = path[0] == '1';
	char *text = malloc(file_bytes[i] + 1);

	MUST(text != NULL);
	memcpy(text, file[i], file_bytes[i]);
	text[file_bytes[i]] = '\0';
	*len = file_bytes[i];
	return text;
}

static void *
plain_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p = NULL;

	MUST(posix_memalign(&p, align < sizeof(p) ? sizeof(p) : align, bytes) == 0);
	memset(p, 0, bytes);
	return p;
}

static void
plain_free(void *ctx, void *p, size_t bytes)
{
	free(p);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void
take_files(const uint8_t *data, size_t size)
{
	const char *between = memmem(data, size, BETWEEN, strlen(BETWEEN));

	file[0] = (const char *)data;
	file_bytes[0] = between != NULL ? (size_t)(between - file[0]) : size;
	file[1] = between != NULL ? between + strlen(BETWEEN) : file[0] + size;
	file_bytes[1] = (size_t)((const char *)data + size - file[1]);
}

/* Fed byte by byte, the text has the n ids; they decode the same one by one. */
static void
use_bert(const struct tok_vocab *v, const uint32_t *ids, size_t n)
{
	static struct tok_stream s;
	static uint8_t whole[2048 * sizeof(sample)], part[2048];
	uint32_t again[3 * sizeof(sample) + 64];
	struct tok_decode_stream d;
	struct tok_result r;
	size_t got = 0, at = 0;

	tok_stream_init(&s, v, NULL, 0);
	for (size_t i = 0; i < sizeof(sample) - 1; i++) {
		const size_t bound = tok_stream_bound(&s, 1);

		r = tok_stream_feed(&s, sample + i, 1, i + 2 == sizeof(sample), again + got,
			sizeof(again) / sizeof(again[0]) - got);
		MUST(r.status == TOK_OK && r.produced <= bound);
		got += r.produced;
	}
	MUST(got == n && memcmp(ids, again, n * sizeof(*ids)) == 0);
	r = tok_decode(v, ids, n, whole, sizeof(whole));
	MUST(r.status == TOK_OK);
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

static void
use(const struct tok_vocab *v)
{
	const struct tok_vocab_info info = tok_vocab_info(v);
	uint32_t ids[3 * sizeof(sample) + 64];
	uint8_t out[sizeof(sample)];
	struct tok_result r;
	uint32_t len;

	MUST(info.checksum != 0 && info.n_ids > 0);
	for (uint32_t id = 0; id <= info.n_ids; id++)
		MUST(tok_vocab_token(v, id, &len) == NULL || (id < info.n_ids && len > 0));
	r = tok_encode(v, NULL, sample, sizeof(sample) - 1, 0, ids, sizeof(ids) / sizeof(ids[0]));
	MUST(r.status == TOK_OK && r.consumed == sizeof(sample) - 1);
	for (size_t i = 0; i < r.produced; i++)
		MUST(ids[i] < info.n_ids);
	if (strcmp(info.pretokenizer, "bert") == 0) {
		use_bert(v, ids, r.produced);
		return;
	}
	r = tok_decode(v, ids, r.produced, out, sizeof(out));
	MUST(r.status == TOK_OK && r.produced == sizeof(sample) - 1);
	MUST(memcmp(out, sample, sizeof(sample) - 1) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tok_mem mem = {.alloc = plain_alloc, .free = plain_free};
	struct tok_error err = {""};
	struct tok_model m = {0};
	struct tok_vocab *v = NULL;
	bool loaded;

	if (size == 0)
		return 0;
	take_files(data + 1, size - 1);
	switch (data[0] % 6) {
	case 0:
		loaded = tok_load_tokenizer_json("0", &m, &err);
		break;
	case 1:
		loaded = tok_load_gpt2_pair("0", "1", "gpt2", &m, &err);
		break;
	case 4:
		loaded = tok_load_bert_vocab("0", NULL, &m, &err);
		break;
	case 5:
		loaded = tok_load_bert_vocab("0", "bert-cased", &m, &err);
		break;
	default:
		loaded = tok_load_tiktoken("0", data[0] % 6 == 2 ? "gpt2" : NULL, &m, &err);
		break;
	}
	if (loaded) {
		MUST(tok_model_checksum(&m) != 0);
		v = tok_vocab_build(&m, "fuzz", "0", &mem, &err);
		tok_model_free(&m);
	}
	if (v != NULL)
		use(v);
	else
		MUST(err.text[0] != '\0' && strchr(err.text, '\n') == NULL);
	tok_vocab_free(v);
	return 0;
}
