/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include <rte_config.h>
#include <rte_version.h>

#include "build_revision.h"
#include "version.h"

#ifdef __clang__
#define COMPILER "" __VERSION__ /* begins with its name */
#else
#define COMPILER "gcc " __VERSION__
#endif

#define DRIVER_BEGIN "librte_net_"
#define DRIVER_END ".so."

/* .../pmds-23.0 has librte_net_tap.so.23.0; links of fewer numbers may be missing, or beside it. */
static int
is_net_driver(const struct dirent *d)
{
	const char *end = strstr(d->d_name, DRIVER_END);
	const char *abi = strrchr(RTE_EAL_PMD_PATH, '-');

	return strncmp(d->d_name, DRIVER_BEGIN, strlen(DRIVER_BEGIN)) == 0 && end != NULL &&
	       abi != NULL && strcmp(end + strlen(DRIVER_END), abi + 1) == 0;
}

/* EAL loads all of this folder when DPDK is a shared library, and what -d names. */
static void
print_drivers(FILE *to)
{
	const size_t begin = strlen(DRIVER_BEGIN) - strlen("net_");
	struct dirent **found = NULL;
	const int n = scandir(RTE_EAL_PMD_PATH, &found, is_net_driver, alphasort);

	if (n <= 0) {
		fprintf(to, "drivers: none in " RTE_EAL_PMD_PATH "\n");
	} else {
		fprintf(to, "drivers in " RTE_EAL_PMD_PATH ":");
		for (int i = 0; i < n; i++) {
			const char *name = found[i]->d_name + begin;

			fprintf(to, " %.*s", (int)(strstr(name, DRIVER_END) - name), name);
		}
		fprintf(to, "\n");
	}
	for (int i = 0; i < n; i++)
		free(found[i]);
	free(found);
}

void
tokd_version_print(FILE *to)
{
	fprintf(to, "dpdk-tokd " TOKD_VERSION ", revision " TOKD_REVISION "\n");
	fprintf(to, "built with: DPDK %d.%02d.%d, " COMPILER "\n", RTE_VER_YEAR, RTE_VER_MONTH,
		RTE_VER_MINOR);
	fprintf(to, "runs with: %s\n", rte_version());
	print_drivers(to);
}
