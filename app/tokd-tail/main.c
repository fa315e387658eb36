/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-tail: prints the records of a dpdk-tokd's token rings as they come. A small user of
 * reader.h. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tokd/reader.h>

#define ATTACH_MS 5000
#define LOOK_MS 100 /* between looks at signals while nothing comes */

enum exit_code { DONE, FAILED, USAGE, ENDED, DROPPED, SILENT };

static const char usage[] =
	"tokd-tail: prints token ids as dpdk-tokd publishes them, one record per line\n"
	"\n"
	"  tokd-tail [options]\n"
	"\n"
	"  --socket PATH  control socket of dpdk-tokd (/run/dpdk-tokd.sock)\n"
	"  --tap          read without back-pressure: records may be missed, and this is reported.\n"
	"                 Otherwise dpdk-tokd waits for this reader, and drops it if it stalls\n"
	"  --once         exit after the first record that ends a text\n"
	"  --timeout MS   exit when nothing has come for this time\n"
	"  --stats        print counts of each worker's ring on standard error at the end\n"
	"  --help, --version\n"
	"\n"
	"  worker=0 stream=77 serial=5 first=0 count=3 end=last ids=15496,11,995\n"
	"  stream is the client's number; serial identifies a stream within its worker; first is the\n"
	"  index of the first id within its text; end is -, last or abort:REASON (a number of tokd/wire.h)\n"
	"  worker=0 lost=4096           a tap missed this many bytes of the ring before the next record\n"
	"  worker=0 overwritten=640     a tap lost a record of this many ids while reading it\n"
	"\n"
	"exit codes: 0 done, also by SIGINT or SIGTERM; 1 failed; 2 wrong use; 3 dpdk-tokd has ended;\n"
	"4 dropped by it for stalling; 5 nothing came within --timeout\n";

struct tail {
	const char *socket;
	int mode;
	bool once, stats;
	int timeout_ms; /* -1: none */
	char *line;	/* of memory, by open_memstream */
	size_t line_bytes;
	FILE *to_line;
};

static volatile sig_atomic_t stopped;

static void
stop(int signal_number)
{
	stopped = signal_number;
}

/* 0, or -1 after a line on standard error. */
static int
parse_ms(const char *text, int *ms)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || v < 1 || v > 86400000) {
		fprintf(stderr, "tokd-tail: --timeout %s: give 1 to 86400000 ms\n", text);
		return -1;
	}
	*ms = (int)v;
	return 0;
}

/* An exit code, or -1: go on. */
static int
parse(int argc, char **argv, struct tail *t)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"tap", no_argument, NULL, 't'},
		{"once", no_argument, NULL, '1'},
		{"timeout", required_argument, NULL, 'w'},
		{"stats", no_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 's':
			t->socket = optarg;
			break;
		case 't':
			t->mode = TOKR_TAP;
			break;
		case '1':
			t->once = true;
			break;
		case 'w':
			if (parse_ms(optarg, &t->timeout_ms) != 0)
				return USAGE;
			break;
		case 'c':
			t->stats = true;
			break;
		case 'h':
			return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? FAILED : DONE;
		case 'v':
			return puts("tokd-tail " TOKD_VERSION) < 0 || fflush(stdout) != 0 ? FAILED
											  : DONE;
		default: /* getopt has said what */
			fputs("tokd-tail: see tokd-tail --help\n", stderr);
			return USAGE;
		}
	}
	if (optind == argc)
		return -1;
	fprintf(stderr, "tokd-tail: %s: not an option; see tokd-tail --help\n", argv[optind]);
	return USAGE;
}

/* Use the record, release it, and only then believe what was made of it. */
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
	fputc('\n', t->to_line);
	fflush(t->to_line); /* line and line_bytes are right */

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
			int wait = LOOK_MS;

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
	struct tail t = {.socket = "/run/dpdk-tokd.sock", .mode = TOKR_READER, .timeout_ms = -1};
	struct sigaction on_signal = {.sa_handler = stop};
	struct tokr_error e;
	struct tokr *r;
	int code = parse(argc, argv, &t);

	if (code >= 0)
		return code;
	t.to_line = open_memstream(&t.line, &t.line_bytes);
	if (t.to_line == NULL) {
		perror("tokd-tail");
		return FAILED;
	}
	sigaction(SIGINT, &on_signal, NULL);
	sigaction(SIGTERM, &on_signal, NULL);
	r = tokr_attach(t.socket, t.mode, ATTACH_MS, &e);
	if (r == NULL) {
		fprintf(stderr, "tokd-tail: %s\n", e.text);
		code = FAILED;
	} else {
		fprintf(stderr,
			"tokd-tail: attached to %s as a %s: %" PRIu32
			" workers, instance %016" PRIx64 "\n",
			t.socket, t.mode == TOKR_TAP ? "tap" : "reader", tokr_rings(r),
			tokr_instance(r));
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
