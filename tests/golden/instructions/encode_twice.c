/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes each text twice, for valgrind to count: encode_twice VOCAB BYTES:TEXTFILE... Each text is
 * fed in packets of so many bytes; 0: whole. Prints the compiler and its options, then a line a
 * text: bytes and ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tok.h>

#define TEXT_MAX 65536

struct encoder {
	struct tok_vocab *vocab;
	struct tok_cache *cache;
	char text[TEXT_MAX];
	size_t n, packet, room;
	uint32_t *ids;
	struct tok_stream stream;
};

/* What valgrind counts. */
__attribute__((noinline)) struct tok_result encode_counted(struct encoder *e);

struct tok_result
encode_counted(struct encoder *e)
{
	struct tok_result r = {.status = TOK_OK};
	size_t produced = 0, at = 0;

	if (e->packet == 0)
		return tok_encode(e->vocab, e->cache, e->text, e->n, 0, e->ids, e->room);
	tok_stream_init(&e->stream, e->vocab, e->cache, 0);
	while (r.status == TOK_OK && at < e->n) {
		const size_t some = e->packet < e->n - at ? e->packet : e->n - at;

		r = tok_stream_feed(&e->stream, e->text + at, some, at + some == e->n,
			e->ids + produced, e->room - produced);
		produced += r.produced;
		at += some;
	}
	r.produced = produced;
	return r;
}

static bool
encode_file(struct encoder *e, const char *what)
{
	const char *name = strchr(what, ':');
	FILE *f = name != NULL ? fopen(name + 1, "rb") : NULL;
	struct tok_result first, again;

	if (f == NULL) {
		perror(what);
		return false;
	}
	e->packet = strtoul(what, NULL, 10);
	e->n = fread(e->text, 1, TEXT_MAX, f);
	fclose(f);
	e->cache = tok_cache_create(e->vocab, 0, NULL); /* nothing is learned */
	if (e->cache == NULL)
		return false;
	first = encode_counted(e);
	again = encode_counted(e);
	tok_cache_free(e->cache);
	if (first.status != TOK_OK || again.produced != first.produced)
		return false;
	printf("%zu %zu\n", e->n, first.produced);
	return true;
}

int
main(int argc, char **argv)
{
	static struct encoder e;
	struct tok_error err;
	int i = 2;

	puts(BUILD);
	if (argc < 3)
		return 2;
	e.vocab = tok_vocab_load(argv[1], NULL, &err);
	if (e.vocab == NULL) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	e.room = tok_encode_bound(e.vocab, TEXT_MAX, 0) + TOK_STREAM_HELD_MAX;
	e.ids = calloc(e.room, sizeof(*e.ids));
	while (e.ids != NULL && i < argc && encode_file(&e, argv[i]))
		i++;
	free(e.ids);
	tok_vocab_free(e.vocab);
	return i == argc ? 0 : 1;
}
