/* SPDX-License-Identifier: BSD-3-Clause */
/* tok vocab info, tok vocab check, tok vocab compile. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char sample[] =
	"Hello, world! It's 3.14 \t\n\n  na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 "
	"\xf0\x9f\x98\x80 ------------ they'll   <|endoftext|> end ";

static void
print_template(const struct tok_template *t)
{
	if (t->n_before + t->n_after == 0)
		return;
	printf("template      ");
	for (uint32_t i = 0; i < t->n_before; i++)
		printf("%u ", t->before[i]);
	printf("TEXT");
	for (uint32_t i = 0; i < t->n_after; i++)
		printf(" %u", t->after[i]);
	printf("\n");
}

static int
print_info(const struct tok_vocab *v)
{
	struct tok_vocab_info i = tok_vocab_info(v);

	printf("name          %s\n", i.name);
	printf("file          %s\n", i.path);
	printf("format        %s\n", i.format);
	if (i.source != NULL)
		printf("compiled from %s\n", i.source);
	printf("pretokenizer  %s\n", i.pretokenizer);
	printf("normalizer    %s\n", i.normalizer);
	printf("algo          %s\n", i.algo);
	printf("instructions  %s\n", i.isa);
	printf("checksum      %08x\n", i.checksum);
	printf("ids           %u\n", i.n_ids);
	printf("merges        %u\n", i.n_merges);
	printf("special       %u\n", i.n_special);
	printf("added         %u\n", i.n_added);
	print_template(&tok_vocab_shape(v)->around);
	printf("longest token %u bytes\n", i.max_token_bytes);
	printf("tables        %.1f MiB in %s\n", (double)i.table_bytes / (1 << 20),
		strcmp(i.storage, "memory") == 0 ? "small pages" : i.storage);
	return cli_flush();
}

/* With a normalizer the decoded text may differ. */
static bool
is_lossless(const struct tok_vocab *v)
{
	return strcmp(tok_vocab_info(v).normalizer, "none") == 0;
}

/* Encodes a text whole and byte by byte, and decodes it: the results must be equal. */
static bool
round_trips(const struct tok_vocab *v)
{
	enum { N = sizeof(sample) - 1, ROOM = TOK_IDS_PER_BYTE_MAX * N + 512 };
	uint32_t ids[ROOM], again[ROOM];
	struct tok_result r = tok_encode(v, NULL, sample, N, TOK_ADDED_AS_TEXT, ids, ROOM);
	size_t n = r.produced, got = 0;
	struct tok_stream *s = malloc(sizeof(*s));
	uint8_t *bytes = malloc(N);
	bool ok = s != NULL && bytes != NULL && r.status == TOK_OK;

	if (ok && is_lossless(v)) {
		r = tok_decode(v, ids, n, bytes, N);
		ok = r.status == TOK_OK && r.produced == N && memcmp(bytes, sample, N) == 0;
	}
	if (ok)
		tok_stream_init(s, v, NULL, TOK_ADDED_AS_TEXT);
	for (size_t i = 0; ok && i < N; i++) {
		r = tok_stream_feed(s, sample + i, 1, i + 1 == N, again + got, ROOM - got);
		ok = r.status == TOK_OK;
		got += r.produced;
	}
	ok = ok && got == n && memcmp(ids, again, n * sizeof(*ids)) == 0;
	free(bytes);
	free(s);
	return ok;
}

/* The longest text of an id, including special tokens. */
static uint32_t
longest(const struct tok_vocab *v, uint32_t n_ids)
{
	uint32_t len, most = 0;

	for (uint32_t id = 0; id < n_ids; id++) {
		if (tok_vocab_token(v, id, &len) != NULL && len > most)
			most = len;
	}
	return most;
}

struct counts {
	uint32_t itself;    /* ids whose text encodes to themselves */
	uint32_t partial;   /* ids whose bytes are not whole characters: not checked */
	uint32_t otherwise; /* ids whose text encodes to other ids, which decode to it */
	uint32_t unused;
};

/* Encode and decode the text of every id; false if one differs. */
static bool
check_ids(const struct tok_vocab *v, uint32_t n_ids, struct counts *c)
{
	uint32_t most = longest(v, n_ids), len, id;
	size_t room = tok_encode_bound(v, most, 0);
	uint32_t *ids = malloc(room * sizeof(*ids));
	uint8_t *back = malloc(most);
	bool ok = ids != NULL && back != NULL;

	if (!ok)
		cli_error(CLI_FAILED, "out of memory");
	for (id = 0; ok && id < n_ids; id++) {
		const uint8_t *text = tok_vocab_token(v, id, &len);
		struct tok_result r;
		size_t n;

		if (text == NULL) {
			c->unused++;
			continue;
		}
		r = tok_encode(v, NULL, text, len, TOK_STRICT_UTF8 | TOK_ADDED_AS_TEXT, ids, room);
		n = r.produced;
		if (r.error == TOK_ERROR_UTF8) {
			c->partial++;
			continue;
		}
		ok = r.status == TOK_OK;
		if (ok && is_lossless(v)) {
			r = tok_decode(v, ids, n, back, most);
			ok = r.status == TOK_OK && r.produced == len &&
			     memcmp(back, text, len) == 0;
		}
		if (!ok)
			cli_error(CLI_FAILED,
				"id %u: its text changes when it is encoded and decoded", id);
		*(n == 1 && ids[0] == id ? &c->itself : &c->otherwise) += 1;
	}
	free(ids);
	free(back);
	return ok;
}

static int
check(const struct tok_vocab *v)
{
	struct tok_vocab_info info = tok_vocab_info(v);
	struct counts c = {0};

	if (!check_ids(v, info.n_ids, &c))
		return CLI_FAILED;
	printf("%8u ids whose text encodes to them\n", c.itself);
	printf("%8u with part of a character\n", c.partial);
	printf("%8u whose text encodes to other ids (special, ##, or split by the pretokenizer)\n",
		c.otherwise);
	printf("%8u unused\n", c.unused);
	if (!round_trips(v))
		return cli_error(CLI_FAILED,
			"%s: the sample text gives other ids byte by byte, or changes when it is "
			"encoded and decoded",
			info.path);
	printf("OK: a sample text encodes the same whole and byte by byte%s\n",
		is_lossless(v) ? ", and decodes to itself" : "");
	return cli_flush();
}

struct vocab_options {
	struct tok_load_opts load;
	const char *out;
};

static int
load_and(int (*what)(const struct tok_vocab *v), const struct opt_program *command, int argc,
	char **argv)
{
	struct vocab_options o = {0};
	struct opt_given given;
	int code = opt_main(command, argc, argv, &o, &given);
	struct tok_vocab *v;

	if (code >= 0)
		return code;
	v = cli_load(given.operand[0], &o.load);
	if (v == NULL)
		return CLI_FAILED;
	code = what(v);
	tok_vocab_free(v);
	return code;
}

static int
run_info(int argc, char **argv)
{
	return load_and(print_info, &tok_info_command, argc, argv);
}

static int
run_check(int argc, char **argv)
{
	return load_and(check, &tok_check_command, argc, argv);
}

static int
run_compile(int argc, char **argv)
{
	struct vocab_options o = {0};
	struct opt_given given;
	struct tok_error err;
	int code = opt_main(&tok_compile_command, argc, argv, &o, &given);

	if (code >= 0)
		return code;
	if (tok_vocab_compile(given.operand[0], &o.load, o.out, &err))
		return 0;
	return cli_error(CLI_FAILED, "%s", err.text);
}

static const struct opt_def load_defs[] = {
	CLI_PRETOKENIZER(struct vocab_options),
	CLI_ALGO(struct vocab_options),
	CLI_HUGE_PAGES(struct vocab_options),
};

static const struct opt_def compile_defs[] = {
	{"out", "FILE", OPT_TEXT, OPT_FIELD(struct vocab_options, out), 0, 0, NULL,
		"the file to write, with the ending .tokv; it is replaced only when complete",
		.letter = 'o', .flags = OPT_REQUIRED},
	CLI_PRETOKENIZER(struct vocab_options),
	CLI_ALGO(struct vocab_options),
};

#define COMMAND(what, v_usage, v_about, v_defs)                                                    \
	{                                                                                          \
		.name = "tok vocab " #what, .version = TOKD_VERSION, .usage = v_usage,             \
		.about = v_about, .defs = v_defs, .n_defs = sizeof(v_defs) / sizeof((v_defs)[0]),  \
		.operand = "VOCAB", .operands_min = 1, .operands_max = 1,                          \
		.operand_missing = "expected tok vocab " #what " " v_usage, .run = run_##what      \
	}

const struct opt_program tok_info_command =
	COMMAND(info, "VOCAB [options]", "Prints the properties of a vocabulary.", load_defs);
const struct opt_program tok_check_command =
	COMMAND(check, "VOCAB [options]", "Loads a vocabulary and checks its ids.", load_defs);
const struct opt_program tok_compile_command = COMMAND(compile, "VOCAB -o FILE.tokv [options]",
	"Writes a vocabulary's tables to a file that is mapped: it loads fast, and processes share "
	"its\n"
	"memory. The same vocabulary gives the same file; compile again when the source changes.",
	compile_defs);
