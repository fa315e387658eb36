/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tokd-client: sends text to a dpdk-tokd and prints its ids, or how a model continues it. Also an
 * example of libtokd-client.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opt.h>

#include "tool.h"

uint32_t *
room_for(size_t len, uint32_t *max_ids)
{
	size_t n = 3 * len + 1; /* U+FFFD: up to three ids per invalid byte */

	if (n > UINT32_MAX)
		n = UINT32_MAX;
	*max_ids = (uint32_t)n;
	return malloc(n * sizeof(uint32_t)); /* untouched pages cost nothing */
}

void
print_ids(const uint32_t *ids, uint32_t n, bool begun)
{
	for (uint32_t i = 0; i < n; i++)
		printf(begun || i > 0 ? " %u" : "%u", ids[i]);
}

int
end_of_output(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "tokd-client: standard output: %s\n", strerror(errno));
	return EXIT_TEXT;
}

int
main(int argc, char **argv)
{
	struct tokd_client_options client_options = {0};
	char error[TOKD_ERROR_MAX];
	struct tokd_client *c;
	struct options o;
	int code = options_parse(&o, argc, argv);

	if (code >= 0)
		return code;
	client_options.vocab = o.vocab;
	client_options.timeout_ms = o.timeout_ms;
	client_options.mtu = o.mtu;
	client_options.requests = o.lines ? o.in_flight : 1;
	c = tokd_client_open(o.hosts, TOKD_WIRE_PORT, &client_options, error);
	if (c == NULL) {
		code = errno == EINVAL ? OPT_EXIT_USAGE : EXIT_REACH;
		fprintf(stderr, "tokd-client: %s\n", error);
		return code;
	}
	code = o.lines ? run_lines(c, &o) : o.generate ? run_generate(c, &o) : run_whole(c, &o);
	tokd_client_flush(c);
	tokd_client_close(c);
	return code;
}
