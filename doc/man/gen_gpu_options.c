/* SPDX-License-Identifier: BSD-3-Clause */
/* A manual page of tokd-gpu: the options of its table in place of the line that asks for them. */
#include <stdio.h>
#include <string.h>

#include "tokd-gpu/options.h"

int
main(int argc, char **argv)
{
	FILE *page = argc == 2 ? fopen(argv[1], "r") : NULL;
	char line[1024];

	if (page == NULL) {
		fprintf(stderr, "usage: gen_gpu_options PAGE\n");
		return 2;
	}
	while (fgets(line, sizeof(line), page) != NULL) {
		if (strncmp(line, ".\\\" OPTIONS OF THE TABLE", 24) == 0)
			tokg_options_man(stdout);
		else
			fputs(line, stdout);
	}
	fclose(page);
	return 0;
}
