/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vocabulary files: the input is tokenizer.json, vocab.json and merges.txt (a line that is ---
 * between), or a .tiktoken, as its first byte says. What is refused is so in one line; with what is
 * loaded, a text becomes ids and those become the text again.
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
	switch (data[0] % 4) {
	case 0:
		loaded = tok_load_tokenizer_json("0", &m, &err);
		break;
	case 1:
		loaded = tok_load_gpt2_pair("0", "1", "gpt2", &m, &err);
		break;
	default:
		loaded = tok_load_tiktoken("0", data[0] % 4 == 2 ? "gpt2" : NULL, &m, &err);
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
