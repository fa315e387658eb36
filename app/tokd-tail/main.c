/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-tail: prints the records of a dpdk-tokd's token rings; an example of reader.h. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opt.h>
#include <tokd/block_keys.h>
#include <tokd/reader.h>

#define ATTACH_MS 5000
#define POLL_MS 100 /* between checks of signals while no record comes */

enum exit_code { DONE, FAILED, USAGE, ENDED, DROPPED, SILENT };

struct tail {
	const char *socket;
	bool tap, once, stats, keys;
	int32_t timeout_ms; /* 0: none */
	char *line;	    /* of memory, by open_memstream */
	size_t line_bytes;
	FILE *to_line;
};

#define FIELD(f) OPT_FIELD(struct tail, f)
static const struct opt_def defs[] = {
	{"socket", "PATH", OPT_TEXT, FIELD(socket), 0, 0, "/run/dpdk-tokd.sock",
		"control socket of dpdk-tokd"},
	{"tap", NULL, OPT_FLAG, FIELD(tap), 0, 0, NULL,
		"read without back-pressure: records may be missed, which is reported; otherwise "
		"dpdk-tokd waits for this reader, and drops it if it keeps the ring full"},
	{"once", NULL, OPT_FLAG, FIELD(once), 0, 0, NULL,
		"exit after the first record that ends a text"},
	{"timeout", "MS", OPT_MS, FIELD(timeout_ms), 1, 86400000, NULL,
		"exit after this time without a record"},
	{"keys", NULL, OPT_FLAG, FIELD(keys), 0, 0, NULL,
		"also print the keys of blocks that a record has, with dpdk-tokd --block-keys"},
	{"stats", NULL, OPT_FLAG, FIELD(stats), 0, 0, NULL,
		"at the end print counts of each ring to standard error"},
};

static const struct opt_section sections[] = {
	{"output",
		"  worker=0 stream=77 serial=5 first=0 count=3 end=last ids=15496,11,995\n"
		"stream is the client's number; serial identifies a stream of a worker; first is "
		"the\n"
		"index of the first id in its text; end is -, last or abort:REASON (a number of\n"
		"tokd/wire.h). --keys adds the index of the first block that ends there, and the\n"
		"keys, in hexadecimal:\n"
		"  ... ids=15496,11,995 block=0 keys=1286e4efd7fb8c40\n"
		"A tap also prints\n"
		"  worker=0 lost=4096        bytes of the ring missed before the next record\n"
		"  worker=0 overwritten=640  ids of a record overwritten while it was read",
		true},
	{"exit code",
		"  0  done, also by SIGINT or SIGTERM\n"
		"  1  failed\n"
		"  2  wrong usage\n"
		"  3  dpdk-tokd has ended\n"
		"  4  dropped by dpdk-tokd: it kept a ring full\n"
		"  5  no record within --timeout",
		true},
	{"see also", "dpdk-tokd(1), tokd-client(1)", false},
	{0},
};

static const struct opt_program program = {
	.name = "tokd-tail",
	.version = TOKD_VERSION,
	.summary = "print token ids as dpdk-tokd publishes them",
	.usage = "[options]",
	.about = "Attaches to the token rings of a dpdk-tokd on this host and prints a line for "
		 "each record.",
	.defs = defs,
	.n_defs = sizeof(defs) / sizeof(defs[0]),
	.sections = sections,
};

static volatile sig_atomic_t stopped;

static void
stop(int signal_number)
{
	stopped = signal_number;
}

/* As tok block-keys prints them: digests byte by byte, llm-d's as numbers. */
static void
print_keys(FILE *to, const struct tokr *r, const struct tokr_record *rec)
{
	struct tokr_keys keys;
	const uint8_t *key;

	tokr_keys(r, rec, &keys);
	if (keys.count == 0)
		return;
	key = keys.keys;
	fprintf(to, " block=%" PRIu32 " keys=", keys.first);
	for (uint32_t i = 0; i < keys.count; i++, key += keys.key_bytes) {
		if (i > 0)
			fputc(',', to);
		if (keys.scheme == TOKB_LLM_D)
			fprintf(to, "%016" PRIx64, *(const uint64_t *)(const void *)key);
		for (uint32_t k = 0; keys.scheme != TOKB_LLM_D && k < keys.key_bytes; k++)
			fprintf(to, "%02x", key[k]);
	}
}

/* Formats the record, and prints it only if it was not overwritten meanwhile. */
static void
show(struct tail *t, struct tokr *r, const struct tokr_record *rec)
{
	rewind(t->to_line);
	fprintf(t->to_line,
		"worker=%" PRIu32 " stream=%" PRIu64 " serial=%" PRIu64 " first=%" PRIu32
		" count=%" PRIu32 " end=",
		rec->worker, rec->stream_id, rec->serial, rec->first, rec->count);
	if ((rec->flags & TOKR_ABORT) != 0)
		fprintf(t->to_line, "abort:%" PRIu32, rec->reason);
	else
		fputs((rec->flags & TOKR_LAST) != 0 ? "last" : "-", t->to_line);
	fputs(" ids=", t->to_line);
	for (uint32_t i = 0; i < rec->count; i++)
		fprintf(t->to_line, i == 0 ? "%" PRIu32 : ",%" PRIu32, rec->ids[i]);
	if (t->keys)
		print_keys(t->to_line, r, rec);
	fputc('\n', t->to_line);
	fflush(t->to_line); /* sets line and line_bytes */

	if (rec->lost_bytes != 0)
		printf("worker=%" PRIu32 " lost=%" PRIu64 "\n", rec->worker, rec->lost_bytes);
	if (tokr_release(r, rec) == 0)
		fwrite(t->line, 1, (size_t)ftell(t->to_line), stdout);
	else
		printf("worker=%" PRIu32 " overwritten=%" PRIu32 "\n", rec->worker, rec->count);
}

static int
follow(struct tail *t, struct tokr *r)
{
	int silent_ms = 0;

	while (!stopped) {
		struct tokr_record rec;
		int rc = tokr_next(r, &rec, 0);

		if (rc == 0) {
			int wait = POLL_MS;

			if (fflush(stdout) != 0 || ferror(stdout)) {
				fprintf(stderr, "tokd-tail: standard output: %s\n",
					strerror(errno));
				return FAILED;
			}
			if (t->timeout_ms > 0 && t->timeout_ms - silent_ms < wait)
				wait = t->timeout_ms - silent_ms;
			rc = tokr_next(r, &rec, wait);
			silent_ms += wait;
		}
		if (rc == 1) {
			silent_ms = 0;
			show(t, r, &rec);
			if (t->once && (rec.flags & (TOKR_LAST | TOKR_ABORT)) != 0)
				return DONE;
		} else if (rc < 0) {
			fprintf(stderr, "tokd-tail: %s\n", tokr_last_error(r)->text);
			return rc == TOKR_GONE ? ENDED : rc == TOKR_DROPPED ? DROPPED : FAILED;
		} else if (t->timeout_ms > 0 && silent_ms >= t->timeout_ms) {
			fprintf(stderr, "tokd-tail: no record within %d ms (--timeout)\n",
				t->timeout_ms);
			return SILENT;
		}
	}
	return DONE;
}

static void
show_stats(const struct tokr *r)
{
	struct tokr_ring ring;

	for (uint32_t i = 0; tokr_ring_info(r, i, &ring) == 0; i++)
		fprintf(stderr,
			"worker %" PRIu32 " lcore %" PRIu32 " ring_bytes %" PRIu64
			" records %" PRIu64 " ids %" PRIu64 " overruns %" PRIu64
			" lost_bytes %" PRIu64 " overwritten_records %" PRIu64
			" unread_bytes %" PRIu64 "\n",
			ring.worker, ring.lcore, ring.data_bytes, ring.records, ring.ids,
			ring.overruns, ring.lost_bytes, ring.broken_records, ring.unread_bytes);
}

int
main(int argc, char **argv)
{
	struct tail t = {0};
	struct opt_given given;
	struct sigaction on_signal = {.sa_handler = stop};
	struct tokr_error e;
	struct tokr *r;
	int code = opt_main(&program, argc, argv, &t, &given);

	if (code >= 0)
		return code;
	t.to_line = open_memstream(&t.line, &t.line_bytes);
	if (t.to_line == NULL) {
		perror("tokd-tail");
		return FAILED;
	}
	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
	r = tokr_attach(t.socket, t.tap ? TOKR_TAP : TOKR_READER, ATTACH_MS, &e);
	if (r == NULL) {
		fprintf(stderr, "tokd-tail: %s\n", e.text);
		code = FAILED;
	} else {
		fprintf(stderr,
			"tokd-tail: attached to %s as a %s: %" PRIu32
			" workers, instance %016" PRIx64 "\n",
			t.socket, t.tap ? "tap" : "reader", tokr_rings(r), tokr_instance(r));
		code = follow(&t, r);
		if (t.stats)
			show_stats(r);
		tokr_detach(r);
	}
	fclose(t.to_line);
	free(t.line);
	if ((fflush(stdout) != 0 || ferror(stdout)) && code == DONE) {
		fprintf(stderr, "tokd-tail: standard output: %s\n", strerror(errno));
		code = FAILED;
	}
	return code;
}
