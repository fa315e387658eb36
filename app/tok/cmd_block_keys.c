/* SPDX-License-Identifier: BSD-3-Clause */
/* tok block-keys: reads ids, prints the key of each block as soon as it is full. */
#include <stdlib.h>
#include <string.h>

#include <tokd/block_keys.h>

#include "ids.h"

#define KEY_BYTES_MAX 32u

/* An empty one is a value, too. */
static bool
take_text(const struct opt_def *d, const char *text, void *field, struct opt_error *err)
{
	*(struct tokb_text *)field = (struct tokb_text){text, strlen(text)};
	return true;
}

#define FIELD(f) OPT_FIELD(struct tokb_options, f)
static const struct opt_def defs[] = {
	{"scheme", "llm-d|vllm-sha256-cbor|vllm-xxhash-cbor", OPT_CHOICE, FIELD(scheme), 0, 0, NULL,
		"whose keys", .flags = OPT_REQUIRED},
	{"block-size", "N", OPT_COUNT, FIELD(block_size), 1, TOKB_BLOCK_SIZE_MAX, "16",
		"ids of a block, as the engine has it"},
	{"seed", "TEXT", OPT_OTHER, FIELD(seed), 0, 0, NULL,
		"vLLM's PYTHONHASHSEED, or llm-d's hashSeed; vllm-xxhash-cbor needs one",
		.check = take_text},
	{"model", "NAME", OPT_OTHER, FIELD(model), 0, 0, NULL,
		"the model as llm-d's router knows it; not part of vLLM's keys",
		.check = take_text},
	{"cache-salt", "TEXT", OPT_OTHER, FIELD(cache_salt), 0, 0, NULL,
		"the request's cache_salt; vLLM only", .check = take_text},
};

struct printer {
	struct ids in;
	uint8_t keys[(size_t)IDS_MAX * KEY_BYTES_MAX];
};

/* A line of hexadecimal digits; llm-d's is a number. */
static void
print_key(const uint8_t *key, size_t bytes, bool number)
{
	static const char digit[] = "0123456789abcdef";
	char text[2 * KEY_BYTES_MAX + 1];

	for (size_t i = 0; i < bytes; i++) {
		const uint8_t byte = key[number ? bytes - 1 - i : i];

		text[2 * i] = digit[byte >> 4];
		text[2 * i + 1] = digit[byte & 15];
	}
	text[2 * bytes] = '\n';
	fwrite_unlocked(text, 1, 2 * bytes + 1, stdout);
}

static int
print_keys(struct printer *p, struct tokb *k, enum tokb_scheme scheme)
{
	const size_t bytes = tokb_key_bytes(scheme);
	enum ids_state state;
	int code;

	do {
		size_t n;

		state = ids_read(&p->in);
		n = tokb_feed(k, p->in.ids, p->in.n, p->keys);
		for (size_t i = 0; i < n; i++)
			print_key(p->keys + i * bytes, bytes, scheme == TOKB_LLM_D);
		code = cli_flush();
	} while (state == IDS_MORE && code == 0);
	return code != 0 ? code : ids_error(&p->in, state);
}

static int
run(int argc, char **argv)
{
	struct tokb_options o = {0};
	struct opt_given given;
	struct tokb_error err;
	struct printer *p;
	struct tokb *k;
	int code = opt_main(&tok_block_keys_command, argc, argv, &o, &given);

	if (code >= 0)
		return code;
	k = tokb_create(&o, &err);
	if (k == NULL)
		return cli_error(CLI_USAGE, "%s", err.text);
	p = calloc(1, sizeof(*p));
	code = p != NULL ? print_keys(p, k, o.scheme) : cli_error(CLI_FAILED, "out of memory");
	free(p);
	tokb_free(k);
	return code;
}

const struct opt_program tok_block_keys_command = {
	.name = "tok block-keys",
	.version = TOKD_VERSION,
	.usage = "--scheme SCHEME [options] < ids",
	.about =
		"Reads ids separated by blanks, and prints a key for each full block of them: the "
		"hashes that\nLLM routers use to find cached prefixes. Digests are in hexadecimal, "
		"as are llm-d's numbers.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "ID",
	.operand_missing = "ids are read from standard input",
	.run = run,
};
