/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK drivers in programs and libraries are a matter of ELF files, for which pyelftools does all
 * that a reader of untrusted ones must; devices are a matter of libibverbs and of C. So these are
 * two programs with one name: tokd-drivers, in Python, stands beside this one.
 */
#include "drivers.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
drivers_exec(const struct options *o)
{
	char helper[PATH_MAX + sizeof("/tokd-drivers")], self[PATH_MAX];
	const ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char **argv = calloc((size_t)o->n_files + 6, sizeof(*argv)), *slash;
	int i = 0;

	if (n <= 0 || argv == NULL) {
		fprintf(stderr, "tokd-diag: %s\n", strerror(errno));
		free(argv);
		return EXIT_NOT;
	}
	self[n] = '\0';
	slash = strrchr(self, '/');
	snprintf(helper, sizeof(helper), "%.*s/tokd-drivers", (int)(slash - self), self);
	argv[i++] = helper;
	if (o->json)
		argv[i++] = "--json";
	argv[i++] = "--root";
	argv[i++] = (char *)o->root;
	argv[i++] = "--";
	memcpy(argv + i, o->files, (size_t)o->n_files * sizeof(*argv));
	execv(helper, argv);
	fprintf(stderr, "tokd-diag: %s: %s; it is installed beside tokd-diag and needs python3\n",
		helper, strerror(errno));
	free(argv);
	return EXIT_NOT;
}
