/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tok encode --jobs: the Python package's `encode` command does it. That one reads and writes
 * Parquet and Arrow by Arrow's own library, and its threads spend their time in libtok; the same
 * again in C would be a second engine with its own files, manifest and options.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

bool
cli_is_bulk(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--jobs") == 0 || strncmp(argv[i], "--jobs=", 7) == 0)
			return true;
	}
	return false;
}

int
cli_bulk(int argc, char **argv)
{
	static char *const program[] = {"python3", "-m", "dpdk_tokd", "encode"};
	char **args = calloc((size_t)argc + 6, sizeof(*args));
	size_t n = sizeof(program) / sizeof(program[0]) + 1; /* the vocabulary comes first */
	char *vocab = NULL;

	if (args == NULL)
		return cli_error(CLI_FAILED, "out of memory");
	memcpy(args, program, sizeof(program));
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--vocab") == 0 && i + 1 < argc)
			vocab = argv[++i];
		else if (strncmp(argv[i], "--vocab=", 8) == 0)
			vocab = argv[i] + 8;
		else
			args[n++] = argv[i];
	}
	args[sizeof(program) / sizeof(program[0])] = vocab;
	if (vocab == NULL) {
		cli_error(CLI_USAGE, "--vocab: missing; see --help");
	} else {
		execvp(args[0], args);
		cli_error(CLI_FAILED, "%s: %s: --jobs needs Python 3.11 with the package dpdk-tokd",
			args[0], strerror(errno));
	}
	free(args);
	return vocab == NULL ? CLI_USAGE : CLI_FAILED;
}
