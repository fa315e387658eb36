/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fixture.h"

const char small_merges[] = "#version: 0.2\nh e\nl l\nhe ll\n\xc4\xa0 w\n";

static const char *const made[] = {"he", "ll", "hell", "\xc4\xa0w"};
#define N_MADE (sizeof(made) / sizeof(made[0]))

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int
folder_make(void **state)
{
	char *path = strdup("/tmp/test-tok-XXXXXX");

	*state = path == NULL ? NULL : mkdtemp(path);
	return *state == NULL ? -1 : 0;
}

int
folder_remove(void **state)
{
	int failed = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return failed;
}

const char *
put_file(void **state, const char *name, const void *data, size_t n)
{
	static char paths[8][256];
	static unsigned int turn;
	char *path = paths[turn++ % 8], *slash;
	FILE *f;

	snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
	slash = path + strlen((const char *)*state);
	while ((slash = strchr(slash + 1, '/')) != NULL) {
		*slash = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	return path;
}

const char *
put_text(void **state, const char *name, const char *text)
{
	return put_file(state, name, text, strlen(text));
}

const char *
put_json(void **state, const char *name, json_t *document)
{
	char *text = json_dumps(document, 0);
	const char *path;

	assert_non_null(text);
	path = put_text(state, name, text);
	free(text);
	json_decref(document);
	return path;
}

void
byte_text(uint8_t byte, char out[3])
{
	uint32_t rest = 256, c = byte;

	/* As GPT-2's encoder.py, bytes_to_unicode, numbers the bytes that are not printable. */
	for (uint32_t b = 0; b <= byte; b++) {
		if (!((b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae))
			c = b == byte ? rest++ : (rest++, c);
	}
	if (c < 0x80) {
		out[0] = (char)c;
		out[1] = '\0';
	} else {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		out[2] = '\0';
	}
}

static json_t *
small_ranks(void)
{
	json_t *vocab = json_object();
	uint32_t id;

	for (id = 0; id < 256; id++) {
		char text[3];

		byte_text((uint8_t)id, text);
		json_object_set_new(vocab, text, json_integer(id));
	}
	for (size_t i = 0; i < N_MADE; i++)
		json_object_set_new(vocab, made[i], json_integer(id++));
	return vocab;
}

json_t *
small_vocab_json(void)
{
	json_t *vocab = small_ranks();

	json_object_set_new(vocab, SMALL_SPECIAL, json_integer(SMALL_RANKS));
	return vocab;
}

json_t *
small_tokenizer_json(void)
{
	json_t *document = json_loads(
		"{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,"
		" \"added_tokens\": [{\"id\": 260, \"content\": \"" SMALL_SPECIAL "\","
		"   \"single_word\": false, \"lstrip\": false, \"rstrip\": false,"
		"   \"normalized\": false, \"special\": true}],"
		" \"normalizer\": null,"
		" \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false,"
		"   \"trim_offsets\": true, \"use_regex\": true},"
		" \"post_processor\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true,"
		"   \"trim_offsets\": false, \"use_regex\": true},"
		" \"decoder\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true,"
		"   \"trim_offsets\": true, \"use_regex\": true},"
		" \"model\": {\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null,"
		"   \"continuing_subword_prefix\": \"\", \"end_of_word_suffix\": \"\","
		"   \"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,"
		"   \"merges\": [\"h e\", \"l l\", \"he ll\", \"\xc4\xa0 w\"]}}",
		0, NULL);

	assert_non_null(document);
	json_object_set_new(json_object_get(document, "model"), "vocab", small_vocab_json());
	return document;
}

/* RFC 4648, section 4. */
static char *
put_base64(char *out, const char *bytes, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t bits = 0;

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (i + k < n ? (uint8_t)bytes[i + k] : 0);
		*out++ = digit[bits >> 18];
		*out++ = digit[bits >> 12 & 63];
		*out++ = i + 1 < n ? digit[bits >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digit[bits & 63] : '=';
	}
	return out;
}

char *
small_tiktoken(void)
{
	static const char *const bytes[] = {"he", "ll", "hell", " w"};
	char *text = malloc(SMALL_RANKS * 16), *at = text;

	assert_non_null(text);
	for (uint32_t id = 0; id < SMALL_RANKS; id++) {
		char one = (char)id;

		at = id < 256 ? put_base64(at, &one, 1)
			      : put_base64(at, bytes[id - 256], strlen(bytes[id - 256]));
		at += sprintf(at, " %u\n", id);
	}
	return text;
}

void
set_at(json_t *document, const char *path, const char *value)
{
	char key[64];
	const char *dot;

	while ((dot = strchr(path, '.')) != NULL) {
		snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
		document = json_object_get(document, key);
		assert_non_null(document);
		path = dot + 1;
	}
	if (value == NULL)
		assert_int_equal(json_object_del(document, path), 0);
	else
		assert_int_equal(json_object_set_new(
					 document, path, json_loads(value, JSON_DECODE_ANY, NULL)),
			0);
}

void
assert_refused_as(const char *path, const char *pretokenizer, const char *says)
{
	const struct tok_load_opts opts = {.pretokenizer = pretokenizer};
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(path, &opts, &err);

	if (v != NULL) {
		tok_vocab_free(v);
		fail_msg("%s was loaded; expected: %s", path, says);
	}
	if (strncmp(err.text, "vocab \"", 7) != 0 || strstr(err.text, says) == NULL ||
		strchr(err.text, '\n') != NULL)
		fail_msg("expected: vocab \"...\" %s\nfound: %s", says, err.text);
}

void
assert_refused(const char *path, const char *says)
{
	assert_refused_as(path, NULL, says);
}

uint32_t
assert_loads(const char *path)
{
	const struct tok_load_opts opts = {.pretokenizer = "gpt2"};
	struct tok_error err;
	struct tok_vocab *v = tok_vocab_load(path, &opts, &err);
	uint32_t checksum;

	if (v == NULL)
		fail_msg("%s", err.text);
	checksum = tok_vocab_info(v).checksum;
	tok_vocab_free(v);
	assert_int_not_equal(checksum, 0);
	return checksum;
}

static void *
plain_alloc(void *ctx, size_t bytes, size_t align)
{
	void *p = NULL;

	assert_int_equal(posix_memalign(&p, align, bytes), 0);
	memset(p, 0, bytes);
	return p;
}

static void
plain_free(void *ctx, void *p, size_t bytes)
{
	free(p);
}

const struct tok_mem plain_mem = {.alloc = plain_alloc, .free = plain_free};

/* Counts what is out, and has no more after `left` blocks. */
struct counted {
	size_t bytes;
	int left;
};

static void *
counted_alloc(void *ctx, size_t bytes, size_t align)
{
	struct counted *c = ctx;

	if (c->left-- <= 0)
		return NULL;
	c->bytes += bytes;
	return plain_alloc(NULL, bytes, align);
}

static void
counted_free(void *ctx, void *p, size_t bytes)
{
	struct counted *c = ctx;

	c->bytes -= bytes;
	free(p);
}

void
assert_memory_may_end(const char *path, void (*use)(const struct tok_vocab *v, const char *path))
{
	struct tok_vocab *v = NULL;
	int blocks;

	for (blocks = 0; v == NULL && blocks < 100; blocks++) {
		struct counted c = {.left = blocks};
		const struct tok_mem mem = {counted_alloc, counted_free, &c};
		const struct tok_load_opts opts = {.mem = &mem};
		struct tok_error err;

		v = tok_vocab_load(path, &opts, &err);
		if (v == NULL) {
			assert_non_null(strstr(err.text, "out of memory"));
		} else {
			assert_int_equal(c.bytes, tok_vocab_info(v).table_bytes);
			if (use != NULL)
				use(v, path);
			tok_vocab_free(v);
		}
		assert_int_equal(c.bytes, 0);
	}
	assert_true(blocks > 1 && blocks < 100);
}
