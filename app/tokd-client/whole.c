/* SPDX-License-Identifier: BSD-3-Clause */
/* The default: all of standard input is one text; with --decode, the ids of one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

#define READ_FIRST 65536
#define TOKEN_BYTES 256 /* of a text's tokens, on average at most */
#define TOKEN_MAX 65536 /* the longest */

int
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

/* Print what has come since `printed`. */
static void
print(const struct tokd_request *r, uint32_t printed)
{
	if (r->flags & TOKD_REQUEST_DECODE)
		fwrite(r->out + printed, 1, r->n_ids - printed, stdout);
	else
		print_ids(r->ids + printed, r->n_ids - printed, printed > 0);
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
			print(r, printed);
			printed = r->n_ids;
			if (stream)
				fflush(stdout);
		}
	}
	if (!(r->flags & TOKD_REQUEST_DECODE) && (r->status == TOKD_OK || printed > 0))
		putchar('\n');
	if (r->status == TOKD_OK)
		return end_of_output();
	fflush(stdout);
	tokd_client_describe(c, r, error);
	fprintf(stderr, "tokd-client: %s\n", error);
	return EXIT_TEXT;
}

/* Room for the ids of r's text, or for the text of its ids. */
static bool
make_room(struct tokd_request *r)
{
	if (r->flags & TOKD_REQUEST_DECODE) {
		const size_t room = r->len * (TOKEN_BYTES / sizeof(uint32_t)) + TOKEN_MAX;

		r->max_ids = room < UINT32_MAX ? (uint32_t)room : UINT32_MAX;
		r->out = malloc(r->max_ids); /* untouched pages cost nothing */
	} else {
		r->ids = room_for(r->len, &r->max_ids);
	}
	if (r->ids == NULL)
		fprintf(stderr, "tokd-client: out of memory for the answer to %zu bytes\n", r->len);
	return r->ids != NULL;
}

int
run_whole(struct tokd_client *c, const struct options *o)
{
	struct tokd_request r = {.flags = o->stream ? TOKD_REQUEST_STREAM : 0};
	uint32_t *ids = NULL;
	char *text = NULL;
	int code = read_all(&text, &r.len);

	r.text = text;
	if (code == 0 && o->decode) {
		code = read_ids(text, r.len, &ids, &r.len);
		r.flags |= TOKD_REQUEST_DECODE;
		r.text = ids;
		r.len *= sizeof(*ids);
	}
	if (code == 0 && !make_room(&r))
		code = EXIT_TEXT;
	if (code == 0) {
		tokd_client_submit(c, &r);
		code = follow(c, &r, o->stream);
	}
	free(r.ids);
	free(ids);
	free(text);
	return code;
}
