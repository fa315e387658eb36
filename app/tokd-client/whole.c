/* SPDX-License-Identifier: BSD-3-Clause */
/* The default: all of standard input is one text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define READ_FIRST 65536

/* The caller frees *text, also after an error. */
static int
read_all(char **text, size_t *len)
{
	size_t room = READ_FIRST;
	ssize_t got;

	*len = 0;
	*text = malloc(room);
	while (*text != NULL && (got = read(STDIN_FILENO, *text + *len, room - *len)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			fprintf(stderr, "tokd-client: standard input: %s\n", strerror(errno));
			return EXIT_TEXT;
		}
		*len += (size_t)got;
		if (*len == room) {
			char *more = realloc(*text, room *= 2);

			if (more == NULL)
				break;
			*text = more;
		}
	}
	if (*text == NULL || *len == room) {
		fprintf(stderr, "tokd-client: out of memory after %zu bytes of text\n", *len);
		return EXIT_TEXT;
	}
	return 0;
}

/* Wait for the end of the request. With --stream, print ids as they arrive. */
static int
follow(struct tokd_client *c, struct tokd_request *r, bool stream)
{
	char error[TOKD_ERROR_MAX];
	struct tokd_request *done;
	uint32_t printed = 0;

	while (r->status == TOKD_PENDING) {
		if (tokd_client_wait(c, &done, 1, -1) == 0)
			continue;
		if (stream || r->status == TOKD_OK) {
			print_ids(r->ids + printed, r->n_ids - printed, printed > 0);
			printed = r->n_ids;
			if (stream)
				fflush(stdout);
		}
	}
	if (r->status == TOKD_OK || printed > 0)
		putchar('\n');
	if (r->status == TOKD_OK)
		return end_of_output();
	fflush(stdout);
	tokd_client_describe(c, r, error);
	fprintf(stderr, "tokd-client: %s\n", error);
	return EXIT_TEXT;
}

int
run_whole(struct tokd_client *c, const struct options *o)
{
	struct tokd_request r = {.flags = o->stream ? TOKD_REQUEST_STREAM : 0};
	char *text = NULL;
	int code = read_all(&text, &r.len);

	if (code == 0) {
		r.text = text;
		r.ids = room_for(r.len, &r.max_ids);
		if (r.ids == NULL) {
			fprintf(stderr, "tokd-client: out of memory for the ids of %zu bytes\n",
				r.len);
			code = EXIT_TEXT;
		} else {
			tokd_client_submit(c, &r);
			code = follow(c, &r, o->stream);
		}
	}
	free(r.ids);
	free(text);
	return code;
}
