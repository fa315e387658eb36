/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --lines: each line of standard input is a text, and many are in flight. Ids are printed in the
 * order of the lines, each as soon as it and all before it have arrived.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

struct input {
	char *data;
	size_t begin, end, room; /* data[begin..end): read, but not used yet */
	size_t looked;		 /* data[begin..looked) has no line end */
	bool eof, failed;
};

struct line {
	struct tokd_request r;
	char *text;
};

/* The next complete line, without its end. NULL: more must be read, or there are no more lines. */
static char *
next_line(struct input *in, size_t *len)
{
	char *start = in->data + in->begin, *end = NULL, *text;

	if (in->looked < in->end)
		end = memchr(in->data + in->looked, '\n', in->end - in->looked);
	in->looked = in->end;
	if (end == NULL && !(in->eof && in->end > in->begin))
		return NULL;
	*len = (size_t)((end != NULL ? end : in->data + in->end) - start);
	text = malloc(*len + 1);
	if (text == NULL) {
		in->failed = true;
		return NULL;
	}
	memcpy(text, start, *len);
	in->begin += *len + (end != NULL);
	in->looked = in->begin;
	return text;
}

static void
read_more(struct input *in)
{
	ssize_t got;

	if (in->begin > 0) {
		memmove(in->data, in->data + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->looked -= in->begin;
		in->begin = 0;
	}
	if (in->end == in->room) {
		size_t room = in->room == 0 ? 65536 : 2 * in->room;
		char *data = realloc(in->data, room);

		if (data == NULL) {
			in->failed = in->eof = true;
			return;
		}
		in->data = data;
		in->room = room;
	}
	got = read(STDIN_FILENO, in->data + in->end, in->room - in->end);
	if (got > 0)
		in->end += (size_t)got;
	else if (got == 0)
		in->eof = true;
	else if (errno != EAGAIN && errno != EINTR) {
		fprintf(stderr, "tokd-client: standard input: %s\n", strerror(errno));
		in->failed = in->eof = true;
	}
}

/* Wait for input, for a reply, or for the next time limit. True: standard input is readable. */
static bool
rest(struct tokd_client *c, const struct input *in, bool full)
{
	struct pollfd p[2] = {
		{.fd = tokd_client_fd(c),
			.events = POLLIN | (tokd_client_wants_write(c) ? POLLOUT : 0)},
		{.fd = in->eof || full ? -1 : STDIN_FILENO, .events = POLLIN}};
	uint64_t ns = tokd_client_next_ns(c);
	struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	return ppoll(p, 2, ns == UINT64_MAX ? NULL : &t, NULL) > 0 && p[1].revents != 0;
}

/* False: the request failed, and the error was printed. */
static bool
print_line(struct tokd_client *c, struct line *line, uint64_t number)
{
	char error[TOKD_ERROR_MAX];
	bool ok = line->r.status == TOKD_OK;

	if (ok) {
		print_ids(line->r.ids, line->r.n_ids, false);
	} else {
		tokd_client_describe(c, &line->r, error);
		fprintf(stderr, "tokd-client: line %llu: %s\n", (unsigned long long)number, error);
	}
	putchar('\n');
	free(line->text);
	free(line->r.ids);
	*line = (struct line){0};
	return ok;
}

static bool
begin_line(struct tokd_client *c, struct line *line, char *text, size_t len)
{
	*line = (struct line){.text = text, .r = {.text = text, .len = len}};
	line->r.ids = room_for(len, &line->r.max_ids);
	if (line->r.ids == NULL)
		return false;
	tokd_client_submit(c, &line->r);
	return true;
}

int
run_lines(struct tokd_client *c, const struct options *o)
{
	struct line *lines = calloc(o->in_flight, sizeof(*lines));
	struct tokd_request *done[16];
	uint64_t begun = 0, ended = 0; /* numbers of lines; line i is lines[i % in_flight] */
	struct input in = {0};
	int code = 0;

	in.failed = lines == NULL;
	while (!in.failed && !(in.eof && in.begin == in.end && begun == ended)) {
		size_t len;
		char *text;

		while (begun - ended < o->in_flight && (text = next_line(&in, &len)) != NULL) {
			if (!begin_line(c, &lines[begun++ % o->in_flight], text, len))
				in.failed = true;
		}
		while (tokd_client_poll(c, done, 16) > 0)
			; /* the status of each line is checked later */
		if (begun == ended || lines[ended % o->in_flight].r.status == TOKD_PENDING) {
			if (code == 0)
				code = end_of_output();
			if (rest(c, &in, begun - ended == o->in_flight))
				read_more(&in);
			continue;
		}
		while (begun > ended && lines[ended % o->in_flight].r.status != TOKD_PENDING) {
			if (!print_line(c, &lines[ended % o->in_flight], ended + 1))
				code = EXIT_TEXT;
			ended++;
		}
	}
	if (in.failed) {
		fprintf(stderr, "tokd-client: stopped at line %llu\n",
			(unsigned long long)begun + 1);
		code = EXIT_TEXT;
	}
	for (; ended < begun; ended++) {
		tokd_client_cancel(c, &lines[ended % o->in_flight].r);
		free(lines[ended % o->in_flight].text);
		free(lines[ended % o->in_flight].r.ids);
	}
	free(lines);
	free(in.data);
	return code != 0 ? code : end_of_output();
}
