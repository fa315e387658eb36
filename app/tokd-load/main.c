/* SPDX-License-Identifier: BSD-3-Clause */
/* tokd-load: measures the time from a text to its ids, and checks them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client.h"
#include "loop.h"
#include "options.h"
#include "pin.h"
#include "rows.h"

static int
rows_open(struct rows *rows, uint64_t count)
{
	rows->count = count;
	rows->row = malloc(sizeof(*rows->row) * count);
	if (rows->row == NULL) {
		fprintf(stderr, "tokd-load: no memory for %" PRIu64 " requests; lower --requests\n",
			count);
		return -1;
	}
	memset(rows->row, 0,
		sizeof(*rows->row) * count); /* touch the pages now, not while measuring */
	return 0;
}

/* Report an --out that cannot be written before anything is sent. */
static int
try_out(const char *path)
{
	FILE *out = fopen(path, "w");

	if (out != NULL && fclose(out) == 0)
		return 0;
	perror(path);
	return -1;
}

int
main(int argc, char **argv)
{
	struct slices slices = {0};
	struct client client = {0};
	struct options options;
	struct rows rows = {0};
	int rc;

	rc = options_parse(&options, argc, argv);
	if (rc >= 0)
		return rc;
	rc = 1;
	if (pin_to(options.cpu == CPU_ANY ? -1 : (int)options.cpu) != 0 ||
		slices_load(&slices, options.slices) != 0)
		return 1;
	if (try_out(options.out) == 0 &&
		rows_open(&rows, options.requests > 0 ? options.requests : slices.count) == 0 &&
		client_open(&client, &options, &slices) == 0) {
		/* Without the privilege, a page fault may be measured now and then. */
		(void)mlockall(MCL_CURRENT | MCL_FUTURE);
		loop_run(&client, &options, &slices, &rows);
		rc = rows_complain(&rows, &slices) > 0;
		if (rows_write(&rows, &options) != 0)
			rc = 1;
	}
	client_close(&client);
	slices_free(&slices);
	free(rows.row);
	return rc;
}
