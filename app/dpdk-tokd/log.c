/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "notify.h"

/* Registered before main, so that --log-level=tokd.*:debug finds them while EAL parses it. */
RTE_LOG_REGISTER(tokd_log_main, tokd.main, INFO)
RTE_LOG_REGISTER(tokd_log_port, tokd.port, INFO)
RTE_LOG_REGISTER(tokd_log_ring, tokd.ring, INFO)
RTE_LOG_REGISTER(tokd_log_worker, tokd.worker, INFO)
RTE_LOG_REGISTER(tokd_log_control, tokd.control, INFO)

#define LINE_MAX_BYTES 4096 /* the rest of a longer line is cut */
#define PART_MAX 24

/* DPDK calls it with the stream locked: one writer at a time. */
static struct {
	bool json, journal;
	size_t n;
	char line[LINE_MAX_BYTES];
	char out[6 * LINE_MAX_BYTES + 128]; /* JSON may take six bytes for one */
} out_log;

static const char *const names[] = {
	"emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"};

/* As syslog.h has it. What comes by no call for a message has no level of its own. */
static int
severity(void)
{
	const uint32_t level = (uint32_t)rte_log_cur_msg_loglevel() - 1;

	return level <= LOG_DEBUG ? (int)level : LOG_DEBUG;
}

/* Bytes of a line's "EAL: " or "tokd.main: " without ": "; 0: none. */
static size_t
part_bytes(const char *line, size_t n)
{
	size_t i = 0;

	while (i < n && i < PART_MAX &&
		(isalnum((unsigned char)line[i]) || line[i] == '.' || line[i] == '_'))
		i++;
	return i + 1 < n && line[i] == ':' && line[i + 1] == ' ' ? i : 0;
}

static char *
put_json(char *to, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned char c = (unsigned char)text[i];

		if (c < 0x20 || c == '"' || c == '\\')
			to += sprintf(to, "\\u%04x", c);
		else
			*to++ = (char)c;
	}
	return to;
}

static void
write_line(void)
{
	const size_t part = part_bytes(out_log.line, out_log.n);
	const size_t skip = part != 0 ? part + 2 : 0;
	const int level = severity();
	char *to = out_log.out;
	struct timespec now;
	char at[32];
	struct tm utc;

	/* sd-daemon(3): the journal reads the level, and removes it from the line. */
	if (out_log.journal)
		to += sprintf(to, "<%d>", level);
	clock_gettime(CLOCK_REALTIME, &now);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &utc));
	if (out_log.json) {
		to += sprintf(to,
			"{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"part\":\"%.*s\",\"message\":\"",
			at, now.tv_nsec / 1000000, names[level], (int)part, out_log.line);
		to = put_json(to, out_log.line + skip, out_log.n - skip);
		to += sprintf(to, "\"}\n");
	} else {
		to += sprintf(to, "%s.%03ldZ %s %.*s\n", at, now.tv_nsec / 1000000, names[level],
			(int)out_log.n, out_log.line);
	}
	(void)!write(STDERR_FILENO, out_log.out, (size_t)(to - out_log.out));
	if (!out_log.journal)
		syslog(level, "%.*s", (int)out_log.n, out_log.line);
	out_log.n = 0;
}

/* Writes for a FILE. Accepts everything, also if nobody reads standard error. */
static ssize_t
take_log(void *cookie, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\n')
			write_line();
		else if (out_log.n < sizeof(out_log.line))
			out_log.line[out_log.n++] = text[i];
	}
	return (ssize_t)n;
}

void
tokd_log_open(bool json)
{
	static char buffer[LINE_MAX_BYTES];
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = take_log});

	if (f == NULL)
		return; /* EAL's own stream: no times */
	/* By lines: each is taken while its own level is the current one. */
	setvbuf(f, buffer, _IOLBF, sizeof(buffer));
	out_log.json = json;
	/* Not the journal: to syslog too, as EAL's own stream does. */
	out_log.journal = tokd_notify_is_journal();
	rte_openlog_stream(f);
}

void
tokd_log_failure(const char *format, ...)
{
	va_list ap;

	fprintf(stderr, "%sdpdk-tokd: ", tokd_notify_is_journal() ? "<3>" : "");
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}
