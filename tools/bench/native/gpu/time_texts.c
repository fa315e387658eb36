/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_time_texts [--greedy] VOCABULARY BYTES TEXTS RUNS FILE
 *
 * Encodes TEXTS slices of the file, of BYTES each, RUNS times on the device that TOKD_GPU_DEVICE
 * names (cpu or cuda:N; cpu if unset). Prints one JSON object: the bytes and ids of all texts, the
 * time of each run on the device, and the time of the first text in each run by the device's clock,
 * in ns. Ends with 1 if a text was not encoded or its ids are not those of tok_encode, and with 77
 * where the vocabulary is refused. --greedy: by longest match.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <monotonic.h>
#include "texts.h"
#include "texts_made.h"
#include "texts_on_device.h"

#define WARM_NS 300000000ll /* of runs before the first that counts: clocks rise from idle */

struct timed {
	struct tok_vocab *v;
	struct tokg_texts *x;
	uint8_t *text;
	uint64_t *begin, *run_ns, *text_ns;
	uint32_t bytes, n, runs;
	uint64_t ids;
};

static void
fail(const char *what)
{
	fprintf(stderr, "gpu_time_texts: %s\n", what);
	exit(1);
}

static void
slice(struct timed *m, const struct texts_file *f)
{
	if (f->n < m->bytes + 4ull)
		fail("the file is shorter than a text");
	for (uint32_t i = 0; i < m->n; i++) {
		const uint8_t *from;
		const size_t n = texts_slice(f, i, m->bytes, &from);

		memcpy(m->text + m->begin[i], from, n);
		m->begin[i + 1] = m->begin[i] + n;
	}
}

static void
encode(struct timed *m)
{
	const struct tokg_texts_ops *const ops = m->x->ops;
	const uint64_t began = monotonic_ns();
	struct tokg_error err;

	if (!ops->put(m->x, m->text, m->begin, m->n, &err))
		fail(err.text);
	do
		if (!ops->run(m->x, &m->run_ns[0], &err))
			fail(err.text);
	while (monotonic_ns() - began < WARM_NS);
	for (uint32_t i = 0; i < m->runs; i++) {
		if (!ops->run(m->x, &m->run_ns[i], &err) || !ops->fetch(m->x, &err))
			fail(err.text);
		m->text_ns[i] = m->x->result[0].ns;
	}
}

static void
compare(struct timed *m)
{
	const size_t room = tok_encode_bound(m->v, m->bytes, TOK_ADDED_AS_TEXT);
	uint32_t *const ids = malloc(room * sizeof(*ids));

	for (uint32_t i = 0; ids != NULL && i < m->n; i++) {
		const struct tokg_texts_result *const r = &m->x->result[i];
		const struct tok_result expected = tok_encode(m->v, NULL, m->text + m->begin[i],
			m->begin[i + 1] - m->begin[i], TOK_ADDED_AS_TEXT, ids, room);

		if (r->status != TOKG_TEXT_OK)
			fail(tokg_text_status_name((enum tokg_text_status)r->status));
		if (r->n_ids != expected.produced ||
			memcmp(ids, m->x->ids + m->begin[i], r->n_ids * sizeof(*ids)) != 0)
			fail("a text has other ids than tok_encode gives");
		m->ids += r->n_ids;
	}
	if (ids == NULL)
		fail("no memory");
	free(ids);
}

static void
list(const char *name, const uint64_t *ns, uint32_t n)
{
	printf(", \"%s\": [", name);
	for (uint32_t i = 0; i < n; i++)
		printf("%s%" PRIu64, i > 0 ? ", " : "", ns[i]);
	printf("]");
}

static void
open_all(struct timed *m, const char *vocabulary, const char *algo)
{
	const struct tok_load_opts opts = {.algo = algo};
	struct tok_error error;
	struct tokg_error err;

	m->text = malloc((size_t)m->bytes * m->n);
	m->begin = calloc(m->n + 1ull, 8);
	m->run_ns = calloc(m->runs, 8);
	m->text_ns = calloc(m->runs, 8);
	if (m->text == NULL || m->begin == NULL || m->run_ns == NULL || m->text_ns == NULL)
		fail("no memory");
	m->v = tok_vocab_load(vocabulary, &opts, &error);
	if (m->v == NULL)
		fail(error.text);
	m->x = texts_on_device(m->v, &err);
	if (m->x == NULL) {
		fprintf(stderr, "%s\n", err.text);
		exit(77);
	}
}

int
main(int argc, char **argv)
{
	const bool greedy = argc > 1 && strcmp(argv[1], "--greedy") == 0;
	struct texts_file file;
	struct timed m = {0};

	argc -= greedy;
	argv += greedy;
	if (argc != 6) {
		fprintf(stderr,
			"usage: gpu_time_texts [--greedy] VOCABULARY BYTES TEXTS RUNS FILE\n");
		return 2;
	}
	m.bytes = (uint32_t)strtoul(argv[2], NULL, 10);
	m.n = (uint32_t)strtoul(argv[3], NULL, 10);
	m.runs = (uint32_t)strtoul(argv[4], NULL, 10);
	if (m.bytes < 4 || m.bytes > TOKG_TEXT_MAX || m.n == 0 || m.runs == 0)
		fail("BYTES: 4 to 65536; TEXTS and RUNS: at least 1");
	if (!texts_read(&file, argv[5]))
		fail("the file cannot be read");
	open_all(&m, argv[1], greedy ? "greedy" : "exact");
	slice(&m, &file);
	encode(&m);
	compare(&m);
	printf("{\"clock\": \"%s\", \"texts\": %u, \"bytes\": %" PRIu64 ", \"ids\": %" PRIu64,
		m.x->ops->clock, m.n, m.begin[m.n], m.ids);
	list("run_ns", m.run_ns, m.runs);
	list("text_ns", m.text_ns, m.runs);
	printf("}\n");
	m.x->ops->close(m.x);
	tok_vocab_free(m.v);
	return 0;
}
