/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What texts made to be dear cost, whole and in packets:
 *
 *     bench_cuts [-b BYTES] [-t TEXT] VOCABULARY ...
 *
 * For each text and size of packets: nanoseconds a byte of the fastest of five passes, then the
 * longest call in microseconds. A call's time is its least of the passes, so that what a busy
 * machine adds to one pass does not count. Passes begin with nothing learned; times are the
 * thread's own. Packets of one byte are of an eighth of the text. -t: only the text of this number.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tok.h>

#define PASSES 5

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What a reading takes: the least of many. */
static uint64_t
clock_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < 1000; i++) {
		const uint64_t begin = now_ns(), took = now_ns() - begin;

		least = took < least ? took : least;
	}
	return least;
}

static uint32_t
random_below(uint64_t *state, uint32_t below)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1dull >> 32) % below;
}

/* ---- texts: a word is repeated, or something random is put together ---- */

static const char *const repeated[] = {"a", " ", "_", "-", "=", "*", ".", "\t", "\n", "#", "/", "~",
	"ab", "- ", " -", " \t", " \n", "\n\t", "        \n", "\xe4\xb8\xad", "\xe4\xb8", "the",
	"\xe3\x80\x80", "\xc2\xa0", "\xe2\x94\x80"};
static const char *const names[] = {"blanks 1-300", "blanks and tabs", "blanks and lines",
	"two symbols", "json", "base64", "chinese", "letters", "random bytes", "english"};
#define N_REPEATED (sizeof(repeated) / sizeof(repeated[0]))
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static size_t
put(char *text, size_t at, size_t room, const char *what)
{
	while (*what != '\0' && at < room)
		text[at++] = *what++;
	return at;
}

static size_t
put_random(char *text, size_t at, size_t n, uint64_t *seed, const char *of)
{
	const uint32_t letters = (uint32_t)strlen(of);

	while (at < n)
		text[at++] = of[random_below(seed, letters)];
	return at;
}

static void
put_json(char *text, size_t n, uint64_t *seed)
{
	size_t at = 0;

	while (at < n) {
		const uint32_t deep = 1 + random_below(seed, 30);
		char line[64];

		for (uint32_t i = 0; i < deep; i++)
			at = put(text, at, n, "    ");
		snprintf(line, sizeof(line), "\"key_%u\": [%u, {},\n", random_below(seed, 100),
			random_below(seed, 100000));
		at = put(text, at, n, line);
	}
}

static void
make_named(uint32_t which, char *text, size_t n)
{
	static const char *const word[] = {"the ", "quick ", "brown ", "foxes ", "are ", "not ",
		"always ", "jumping ", "over ", "lazy ", "dogs, ", "which ", "sleep.\n", "In ",
		"1984 ", "nobody ", "wondered ", "why "};
	uint64_t seed = which + 1;
	size_t at = 0;

	while (at < n) {
		switch (which) {
		case 0:
			for (uint32_t k = 1 + random_below(&seed, 300); k > 0; k--)
				at = put(text, at, n, " ");
			at = put(text, at, n, "x");
			break;
		case 1:
			at = put_random(text, at, n, &seed, "       \t");
			break;
		case 2:
			at = put_random(text, at, n, &seed, "               \n");
			break;
		case 3:
			at = put_random(text, at, n, &seed, "-=");
			break;
		case 4:
			put_json(text, n, &seed);
			at = n;
			break;
		case 5:
			at = put_random(text, at, n, &seed,
				"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
			break;
		case 6: {
			const uint32_t c = 0x4e00 + random_below(&seed, 0x5000);
			const char utf8[4] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)),
				(char)(0x80 | (c & 63)), 0};

			at = put(text, at, n, utf8);
			break;
		}
		case 7:
			at = put_random(text, at, n, &seed, "etaoinshrdlucmfwypvbgkjqxz");
			break;
		case 8:
			text[at++] = (char)random_below(&seed, 256);
			break;
		case 9:
			at = put(text, at, n, word[random_below(&seed, 18)]);
			break;
		}
	}
}

static void
make_text(uint32_t which, char *text, size_t n)
{
	if (which >= N_REPEATED) {
		make_named(which - N_REPEATED, text, n);
		return;
	}
	for (size_t at = 0; at < n;)
		at = put(text, at, n, repeated[which]);
}

/* ---- what is timed ---- */

struct timed {
	uint64_t *call; /* ns of each call: the least of all passes */
	size_t n;
	uint64_t all; /* ns of a pass: the least */
	const char *error;
};

static void
pass(const struct tok_vocab *v, const char *text, size_t n, size_t piece, uint32_t *ids,
	size_t room, struct timed *t)
{
	const uint64_t clock = clock_ns();
	struct tok_cache *c = tok_cache_create(v, 0, NULL); /* nothing is learned */
	struct tok_stream s;
	uint64_t all = 0;
	size_t at = 0;

	tok_stream_init(&s, v, c, 0);
	for (t->n = 0; at < n && t->error == NULL; t->n++) {
		const size_t some = piece < n - at ? piece : n - at;
		const uint64_t begin = now_ns();
		const struct tok_result r =
			tok_stream_feed(&s, text + at, some, at + some == n, ids, room);
		const uint64_t with = now_ns() - begin, took = with > clock ? with - clock : 0;

		if (r.status != TOK_OK)
			t->error = tok_error_code_text(r.error);
		all += took;
		if (took < t->call[t->n])
			t->call[t->n] = took;
		at += some;
	}
	if (all < t->all)
		t->all = all;
	tok_cache_free(c);
}

static void
measure(const struct tok_vocab *v, const char *vocabulary, uint32_t which, size_t n)
{
	const size_t pieces[] = {n, 1400, 1376, 100, 1};
	char *text = malloc(n + 8);
	const size_t room = tok_encode_bound(v, n, 0) + TOK_STREAM_HELD_MAX;
	uint32_t *ids = malloc(room * sizeof(*ids));
	uint64_t *call = malloc(n * sizeof(*call));

	make_text(which, text, n);
	printf("%-8.8s ", vocabulary);
	if (which >= N_REPEATED) {
		printf("%-18s", names[which - N_REPEATED]);
	} else {
		char shown[32];
		size_t k = 0;

		for (const char *p = repeated[which]; *p != '\0'; p++)
			k += (size_t)snprintf(shown + k, sizeof(shown) - k,
				*p > ' ' && *p < 127 ? "%c" : "\\x%02x", (uint8_t)*p);
		shown[17] = '\0';
		printf("%-18s", shown);
	}
	for (uint32_t i = 0; i < 5; i++) {
		const size_t some = pieces[i] == 1 ? n / 8 : n;
		const uint64_t begin = now_ns();
		struct timed t = {.call = call, .all = UINT64_MAX};
		uint64_t longest = 0;

		memset(call, 0xff, n * sizeof(*call));
		for (uint32_t k = 0; k < PASSES && (k == 0 || now_ns() - begin < 1000000000); k++)
			pass(v, text, some, pieces[i], ids, room, &t);
		for (size_t k = 0; k < t.n; k++)
			longest = call[k] > longest ? call[k] : longest;
		if (t.error != NULL)
			printf(" %17.17s", t.error);
		else
			printf(" %8.1f %8.1f", (double)t.all / (double)some,
				(double)longest / 1000);
	}
	printf("\n");
	fflush(stdout);
	free(text);
	free(ids);
	free(call);
}

int
main(int argc, char **argv)
{
	size_t n = 65536;
	long only = -1;
	int opt;

	while ((opt = getopt(argc, argv, "b:t:")) != -1) {
		if (opt == 'b')
			n = strtoull(optarg, NULL, 0);
		else if (opt == 't')
			only = strtol(optarg, NULL, 0);
		else
			return 2;
	}
	printf("%-8s %-18s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "", "whole", "us",
		"1400", "us", "1376", "us", "100", "us", "1", "us");
	for (; optind < argc; optind++) {
		const char *slash = strrchr(argv[optind], '/');
		struct tok_error err;
		struct tok_vocab *v = tok_vocab_load(argv[optind], NULL, &err);

		if (v == NULL) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		for (uint32_t i = 0; i < N_REPEATED + N_NAMES; i++)
			if (only < 0 || only == (long)i)
				measure(v, slash != NULL ? slash + 1 : argv[optind], i, n);
		tok_vocab_free(v);
	}
	return 0;
}
