/* SPDX-License-Identifier: BSD-3-Clause */
/* tok bench: encoding time of many texts, for unseen texts and for texts seen before. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <monotonic.h>
#include "bench.h"
#include "cli.h"

#define WARM_UP_ROUNDS 6
#define BEYOND 10 /* values required above a percentile */

struct bench_options {
	const char *vocab, *slices, *warm_up;
	struct tok_load_opts load;
	struct bench_cut cut;
	uint64_t piece;
	enum cli_added added;
	bool json;
};

struct pass {
	uint64_t *ns; /* time of each text */
	struct perf_counts counts;
};

struct results {
	struct pass pass[BENCH_PASSES];
	uint64_t bytes, n_ids; /* of a pass */
	double load_ms, clock_ns;
	char not_counted[128]; /* why there are no counts; "": there are */
};

static const char *const pass_names[BENCH_PASSES] = {"first", "again"};

/* ---- measuring ---- */

/* Empty the cache, so that no text has been seen. */
static int
forget(struct bench *b)
{
	tok_cache_free(b->cache);
	b->cache = tok_cache_create(b->vocab, 0, NULL);
	return b->cache != NULL ? 0 : cli_error(CLI_FAILED, "out of memory for a cache");
}

static int
warm(struct bench *b, const struct bench_options *o, const struct slices *warm_up)
{
	uint64_t n_ids;
	int code = forget(b);

	for (int i = 0; code == 0 && i < WARM_UP_ROUNDS; i++)
		code = bench_pass(b, warm_up, o->warm_up, true, NULL, &n_ids);
	return code;
}

static int
time_passes(struct bench *b, const struct bench_options *o, const struct slices *warm_up,
	const struct slices *texts, struct results *r)
{
	const char *name = o->slices != NULL ? o->slices : "text";
	int code = warm(b, o, warm_up);

	for (int i = 0; code == 0 && i < BENCH_PASSES; i++)
		code = bench_pass(b, texts, name, o->slices != NULL, r->pass[i].ns, &r->n_ids);
	r->clock_ns = bench_clock_ns();
	return code;
}

/* Counting would disturb the times, so repeat with an empty cache. */
static int
count_passes(struct bench *b, const struct bench_options *o, const struct slices *warm_up,
	const struct slices *texts, struct results *r)
{
	struct perf perf;
	int why = perf_open(&perf), code;

	if (why == EPERM || why == EACCES) {
		strcpy(r->not_counted, "not allowed; as root: sysctl kernel.perf_event_paranoid=2");
		return 0;
	}
	if (why != 0) {
		snprintf(r->not_counted, sizeof(r->not_counted),
			"this machine lends no counters (perf_event_open: %s)", strerror(why));
		return 0;
	}
	code = warm(b, o, warm_up);
	for (int i = 0; code == 0 && i < BENCH_PASSES; i++) {
		if (!bench_count(b, texts, &perf, &r->pass[i].counts))
			strcpy(r->not_counted, "the counters were shared with other programs");
	}
	perf_close(&perf);
	return code;
}

/* ---- results ---- */

static void
print_json(const struct slices *texts, const struct results *r)
{
	printf("{\"load_ms\": %.3f, \"clock_ns\": %.1f, \"bytes\": %" PRIu64 ", \"ids\": %" PRIu64
	       ", \"not_counted\": \"%s\"",
		r->load_ms, r->clock_ns, r->bytes, r->n_ids, r->not_counted);
	for (int i = 0; i < BENCH_PASSES; i++) {
		const struct pass *p = &r->pass[i];

		printf(", \"%s\": {", pass_names[i]);
		if (r->not_counted[0] == '\0')
			printf("\"instructions\": %" PRIu64 ", \"cycles\": %" PRIu64 ", ",
				p->counts.instructions, p->counts.cycles);
		printf("\"ns\": [");
		for (uint32_t j = 0; j < texts->count; j++)
			printf("%s%" PRIu64, j == 0 ? "" : ", ", p->ns[j]);
		printf("]}");
	}
	puts("}");
}

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Nearest-rank percentile of sorted values; "-" if fewer than BEYOND are above it. */
static void
print_percentile(const uint64_t *ns, uint32_t n, unsigned percent)
{
	uint64_t rank = ((uint64_t)n * percent + 99) / 100;

	if (percent != 50 && n - rank < BEYOND)
		printf("%12s", "-");
	else
		printf("%12.2f", (double)ns[rank - 1] / 1e3);
}

static void
print_pass(const char *name, const struct pass *p, const struct results *r, uint32_t n)
{
	static const unsigned percent[] = {50, 90, 99};
	const double bytes = r->bytes > 0 ? (double)r->bytes : 1;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += p->ns[i];
	qsort(p->ns, n, sizeof(*p->ns), by_value);
	printf("%-8s", name);
	for (size_t i = 0; i < sizeof(percent) / sizeof(percent[0]); i++)
		print_percentile(p->ns, n, percent[i]);
	printf("%12.2f", (double)sum / bytes);
	if (r->not_counted[0] == '\0')
		printf("%16.1f%12.1f", (double)p->counts.instructions / bytes,
			(double)p->counts.cycles / bytes);
	putchar('\n');
}

static void
print_table(const struct slices *texts, const struct results *r)
{
	const bool counted = r->not_counted[0] == '\0';

	printf("%u texts, %" PRIu64 " bytes, %" PRIu64 " ids\n", texts->count, r->bytes, r->n_ids);
	printf("%-8s%12s%12s%12s%12s", "", "median us", "p90 us", "p99 us", "ns/byte");
	printf(counted ? "%16s%12s\n" : "\n", "instr./byte", "cycles/byte");
	for (int i = 0; i < BENCH_PASSES; i++)
		print_pass(pass_names[i], &r->pass[i], r, texts->count);
	printf("reading the clock, in each call: %.0f ns\n", r->clock_ns);
	if (!counted)
		printf("instructions and cycles: not counted here: %s\n", r->not_counted);
}

/* ---- the command ---- */

/* Room for the ids of any text. Touched now, so that no page fault is timed. */
static int
make_room(struct bench *b, const struct slices *warm_up, const struct slices *texts)
{
	const size_t most =
		warm_up->max_text > texts->max_text ? warm_up->max_text : texts->max_text;

	b->room = tok_encode_bound(b->vocab, most, b->flags) + TOK_STREAM_HELD_MAX;
	b->ids = malloc(sizeof(*b->ids) * b->room);
	if (b->ids == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	memset(b->ids, 0xff, sizeof(*b->ids) * (most < b->room ? most : b->room));
	return 0;
}

static int
measure(struct bench *b, const struct bench_options *o, const struct slices *warm_up,
	const struct slices *texts, struct results *r)
{
	int code = make_room(b, warm_up, texts);

	for (int i = 0; code == 0 && i < BENCH_PASSES; i++) {
		r->pass[i].ns = calloc(texts->count, sizeof(*r->pass[i].ns));
		if (r->pass[i].ns == NULL)
			code = cli_error(CLI_FAILED, "out of memory");
	}
	for (uint32_t i = 0; i < texts->count; i++)
		r->bytes += texts->slice[i].text_len;
	if (code == 0)
		code = time_passes(b, o, warm_up, texts, r);
	if (code == 0)
		code = count_passes(b, o, warm_up, texts, r);
	if (code == 0)
		(o->json ? print_json : print_table)(texts, r);
	for (int i = 0; i < BENCH_PASSES; i++)
		free(r->pass[i].ns);
	return code != 0 ? code : cli_flush();
}

static int
get_texts(const struct bench_options *o, const struct tok_vocab *v, const struct opt_given *given,
	struct slices *warm_up, struct slices *texts)
{
	if (o->warm_up != NULL && slices_load(warm_up, o->warm_up) != 0)
		return CLI_FAILED;
	if (o->slices != NULL)
		return slices_load(texts, o->slices) == 0 ? 0 : CLI_FAILED;
	return bench_texts(
		texts, v, cli_added_flags(o->added), &o->cut, given->operand, given->n_operands);
}

#define FIELD(f) OPT_FIELD(struct bench_options, f)
static const struct opt_def defs[] = {
	{"vocab", "VOCAB", OPT_TEXT, FIELD(vocab), 0, 0, NULL, "the vocabulary",
		.flags = OPT_REQUIRED},
	CLI_PRETOKENIZER(struct bench_options),
	CLI_HUGE_PAGES(struct bench_options),
	CLI_ALGO(struct bench_options),
	{"tokens", "N", OPT_COUNT, FIELD(cut.tokens), 1, BENCH_TOKENS_MAX, NULL,
		"cut the files into texts of about N tokens; without it each file is one text"},
	{"bytes", "N", OPT_SIZE, FIELD(cut.bytes), 1, BENCH_BYTES_MAX, NULL,
		"cut them into texts of about N bytes"},
	{"slices", "FILE", OPT_TEXT, FIELD(slices), 0, 0, NULL,
		"texts and the ids they must have, as tools/bench writes them, instead of TEXTFILE"},
	{"warm-up", "FILE", OPT_TEXT, FIELD(warm_up), 0, 0, NULL,
		"texts in the format of --slices that are encoded six times before, untimed"},
	{"split", "N", OPT_COUNT, FIELD(piece), 1, BENCH_BYTES_MAX, NULL,
		"feed each text in pieces of N bytes"},
	CLI_ADDED(struct bench_options),
	{"json", NULL, OPT_FLAG, FIELD(json), 0, 0, NULL,
		"print JSON instead of a table, with the ns of each call"},
};

static const char *
complaint(const struct bench_options *o, const struct opt_given *given)
{
	if (o->cut.tokens > 0 && o->cut.bytes > 0)
		return "--tokens --bytes: give one of them";
	if (o->slices != NULL && (o->cut.tokens > 0 || o->cut.bytes > 0 || given->n_operands > 0))
		return "--slices: its texts are cut already; leave --tokens, --bytes and TEXTFILE "
		       "out";
	return NULL;
}

static int
bench(const struct bench_options *o, const struct opt_given *given, struct bench *b)
{
	struct slices warm_up = {0}, texts = {0};
	const uint64_t begin = monotonic_ns();
	struct tok_vocab *v = cli_load(o->vocab, &o->load);
	struct results r = {.load_ms = (double)(monotonic_ns() - begin) / 1e6};
	int code = CLI_FAILED;

	if (v == NULL)
		return code;
	b->vocab = v;
	b->piece = o->piece;
	b->flags = cli_added_flags(o->added);
	code = get_texts(o, v, given, &warm_up, &texts);
	if (code == 0)
		code = measure(b, o, &warm_up, &texts, &r);
	slices_free(&texts);
	slices_free(&warm_up);
	tok_cache_free(b->cache);
	free(b->ids);
	tok_vocab_free(v);
	return code;
}

static int
run(int argc, char **argv)
{
	struct bench_options o = {0};
	struct opt_given given;
	struct bench *b;
	const char *wrong;
	int code = opt_main(&tok_bench_command, argc, argv, &o, &given);

	if (code >= 0)
		return code;
	wrong = complaint(&o, &given);
	if (wrong != NULL)
		return opt_usage(&tok_bench_command, "%s", wrong);
	b = calloc(1, sizeof(*b));
	if (b == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	code = bench(&o, &given, b);
	free(b);
	return code;
}

const struct opt_program tok_bench_command = {
	.name = "tok bench",
	.version = TOKD_VERSION,
	.usage = "--vocab VOCAB [options] [TEXTFILE...]",
	.about =
		"Encodes each text once, never seen before, then all of them again, on this thread, and\n"
		"prints how long a call takes; instructions and cycles too where the machine counts them.\n"
		"Without TEXTFILE, or for -, the text comes on standard input. A percentile needs ten\n"
		"calls above it. With --slices exit code 3 means that ids were wrong.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.operand = "TEXTFILE",
	.operands_max = INT_MAX,
	.run = run,
};
