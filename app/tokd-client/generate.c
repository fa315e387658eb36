/* SPDX-License-Identifier: BSD-3-Clause */
/* --generate: standard input is a prompt, and a model's answer is printed as it is made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "tool.h"

#define SLICE_MS 50 /* of a wait, between looks for signals */

static volatile sig_atomic_t signalled;

static void
on_signal(int number)
{
	signalled = number;
}

/* What ends the program must end the answer, too: on Ctrl-C, or when nobody reads the output. */
static void
catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction action = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
}

static void
print_items(struct tokd_client *c, struct tokd_request *r, bool *in_line)
{
	struct tokd_made made;
	const char *text;

	while (tokd_client_made(c, r, &made, &text)) {
		if (made.text == 0)
			continue;
		fwrite(text, 1, made.text, stdout);
		*in_line = text[made.text - 1] != '\n';
	}
	fflush(stdout);
}

/* Tells the appliance, until it has heard of it. */
static void
stop(struct tokd_client *c, struct tokd_request *r)
{
	struct tokd_request *done;

	tokd_client_cancel(c, r);
	(void)tokd_client_wait(c, &done, 1, -1);
}

static int
follow(struct tokd_client *c, struct tokd_request *r)
{
	char error[TOKD_ERROR_MAX];
	struct tokd_request *done;
	bool in_line = false; /* the last character of the answer ended none */

	catch_signals();
	while (r->status == TOKD_PENDING) {
		(void)tokd_client_wait(c, &done, 1, SLICE_MS);
		print_items(c, r, &in_line);
		if (signalled) {
			stop(c, r);
			signal(signalled, SIG_DFL);
			raise(signalled); /* it ends as it would have ended without us */
		}
		if (ferror(stdout)) {
			const int code = end_of_output();

			stop(c, r);
			return code;
		}
	}
	if (r->status == TOKD_OK)
		return end_of_output();
	tokd_client_describe(c, r, error);
	fprintf(stderr, "%stokd-client: %s\n", in_line ? "\n" : "", error);
	return EXIT_TEXT;
}

int
run_generate(struct tokd_client *c, const struct options *o)
{
	struct tokd_request r = {.flags = TOKD_REQUEST_GENERATE | TOKD_REQUEST_SKIP_SPECIAL,
		.limit = o->generate,
		.max_ids = TOKD_GENERATE_ROOM};
	char *text = NULL;
	int code = read_all(&text, &r.len);

	r.text = text;
	r.out = malloc(TOKD_GENERATE_ROOM);
	if (code == 0 && r.out == NULL) {
		fprintf(stderr, "tokd-client: out of memory for the answer\n");
		code = EXIT_TEXT;
	}
	if (code == 0) {
		tokd_client_submit(c, &r);
		code = follow(c, &r);
	}
	free(r.out);
	free(text);
	return code;
}
