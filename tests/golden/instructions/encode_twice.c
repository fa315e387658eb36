/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Encodes each text twice, for valgrind to count: encode_twice VOCAB TEXTFILE... Prints the
 * compiler and its options, then a line a text: bytes and ids.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <tok.h>

#define TEXT_MAX 65536

/* The key of hashes, in place of libc's: so that each run has the same collisions. */
ssize_t
getrandom(void *out, size_t n, unsigned flags)
{
	(void)flags;
	memset(out, 0x5a, n);
	return (ssize_t)n;
}

struct encoder {
	struct tok_vocab *vocab;
	struct tok_cache *cache;
	char text[TEXT_MAX];
	size_t n, room;
	uint32_t *ids;
};

static struct tok_result
encode(const struct encoder *e)
{
	return tok_encode(e->vocab, e->cache, e->text, e->n, 0, e->ids, e->room);
}

static bool
encode_file(struct encoder *e, const char *name)
{
	FILE *f = fopen(name, "rb");
	struct tok_result first, again;

	if (f == NULL) {
		perror(name);
		return false;
	}
	e->n = fread(e->text, 1, TEXT_MAX, f);
	fclose(f);
	e->cache = tok_cache_create(e->vocab, 0, NULL); /* nothing is learned */
	if (e->cache == NULL)
		return false;
	first = encode(e);
	again = encode(e);
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
	e.room = tok_encode_bound(e.vocab, TEXT_MAX, 0);
	e.ids = calloc(e.room, sizeof(*e.ids));
	while (e.ids != NULL && i < argc && encode_file(&e, argv[i]))
		i++;
	free(e.ids);
	tok_vocab_free(e.vocab);
	return i == argc ? 0 : 1;
}
