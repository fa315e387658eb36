/* SPDX-License-Identifier: BSD-3-Clause */
/* tok vocab info, tok vocab check. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static const char sample[] = "Hello, world! It's 3.14 \t\n\n  na\xc3\xafve \xe4\xb8\xad\xe6\x96\x87 "
			     "\xf0\x9f\x98\x80 ------------ they'll   <|endoftext|> end ";

static void
print_info(const struct tok_vocab *v)
{
	struct tok_vocab_info i = tok_vocab_info(v);

	printf("name          %s\n", i.name);
	printf("file          %s\n", i.path);
	printf("format        %s\n", i.format);
	printf("pretokenizer  %s\n", i.pretokenizer);
	printf("checksum      %08x\n", i.checksum);
	printf("ids           %u\n", i.n_ids);
	printf("merges        %u\n", i.n_merges);
	printf("special       %u\n", i.n_special);
	printf("longest token %u bytes\n", i.max_token_bytes);
	printf("tables        %.1f MiB\n", (double)i.table_bytes / (1 << 20));
}

/* Does text come back from its ids, whole and fed byte by byte? */
static bool
round_trips(const struct tok_vocab *v)
{
	enum { N = sizeof(sample) - 1 };
	uint32_t ids[3 * N], again[3 * N + 8];
	struct tok_result r = tok_encode(v, NULL, sample, N, 0, ids, 3 * N);
	size_t n = r.produced, got = 0;
	struct tok_stream *s = malloc(sizeof(*s));
	uint8_t *bytes = malloc(N);
	bool ok = s != NULL && bytes != NULL && r.status == TOK_OK;

	if (ok) {
		r = tok_decode(v, ids, n, bytes, N);
		ok = r.status == TOK_OK && r.produced == N && memcmp(bytes, sample, N) == 0;
		tok_stream_init(s, v, NULL, 0);
	}
	for (size_t i = 0; ok && i < N; i++) {
		r = tok_stream_feed(s, sample + i, 1, i + 1 == N, again + got, 3 * N + 8 - got);
		ok = r.status == TOK_OK;
		got += r.produced;
	}
	ok = ok && got == n && memcmp(ids, again, n * sizeof(*ids)) == 0;
	free(bytes);
	free(s);
	return ok;
}

static int
check(const struct tok_vocab *v)
{
	struct tok_vocab_info info = tok_vocab_info(v);
	uint32_t produced = 0, holes = 0;
	uint32_t *ids = malloc((info.max_token_bytes * 3 + 8) * sizeof(*ids));

	if (ids == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	for (uint32_t id = 0; id < info.n_ids; id++) {
		uint32_t len;
		const uint8_t *bytes = tok_vocab_token(v, id, &len);
		struct tok_result r;

		if (bytes == NULL || len > info.max_token_bytes) {
			holes += bytes == NULL;
			continue;
		}
		r = tok_encode(v, NULL, bytes, len, 0, ids, info.max_token_bytes * 3 + 8);
		produced += r.status == TOK_OK && r.produced == 1 && ids[0] == id;
	}
	free(ids);
	printf("tokens their own bytes encode to: %u of %u (%u ids unused)\n", produced,
		info.n_ids - holes, holes);
	printf("others (special, part of a character, or split by the pretokenizer): %u\n",
		info.n_ids - holes - produced);
	if (!round_trips(v))
		return cli_error(CLI_FAILED, "%s: the sample text does not come back from its ids",
			info.path);
	printf("OK: sample text encodes the same whole and byte by byte, and comes back\n");
	return cli_flush();
}

int
cmd_vocab(int argc, char **argv)
{
	struct tok_vocab *v;
	int code;

	if (argc != 3 || (strcmp(argv[1], "info") != 0 && strcmp(argv[1], "check") != 0))
		return cli_error(CLI_USAGE, "expected tok vocab info V or tok vocab check V");
	v = cli_load(argv[2], NULL);
	if (v == NULL)
		return CLI_FAILED;
	if (strcmp(argv[1], "info") == 0) {
		print_info(v);
		code = cli_flush();
	} else {
		code = check(v);
	}
	tok_vocab_free(v);
	return code;
}
