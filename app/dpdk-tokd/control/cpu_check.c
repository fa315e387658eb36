/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <numa.h>

#include <rte_lcore.h>

#include "cpu_check.h"
#include "log.h"

#define ISOLATED "/sys/devices/system/cpu/isolated"

/* A CPU list as in "1-3,8"; "" if the kernel has none. */
static void
read_isolated(char *list, size_t room)
{
	FILE *f = fopen(ISOLATED, "re");

	list[0] = '\0';
	if (f == NULL)
		return;
	if (fgets(list, (int)room, f) == NULL)
		list[0] = '\0';
	list[strcspn(list, "\n")] = '\0';
	fclose(f);
}

static bool
has_isolated_cpus_only(const struct bitmask *isolated, unsigned int lcore)
{
	const cpu_set_t cpus = rte_lcore_cpuset(lcore);

	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		if (isolated == NULL || cpu >= isolated->size ||
			!numa_bitmask_isbitset(isolated, cpu))
			return false;
	}
	return true;
}

static void
check_isolation(void)
{
	char list[4096], lcores[256] = ""; /* a file of sysfs has at most a page */
	struct bitmask *isolated;
	unsigned int lcore;

	read_isolated(list, sizeof(list));
	isolated = list[0] != '\0' ? numa_parse_cpustring_all(list) : NULL;
	RTE_LCORE_FOREACH (lcore) {
		const cpu_set_t cpus = rte_lcore_cpuset(lcore);
		size_t used = strlen(lcores);

		if (!has_isolated_cpus_only(isolated, lcore))
			snprintf(lcores + used, sizeof(lcores) - used, " %u", lcore);
		if (CPU_ISSET(0, &cpus))
			TOKD_LOG(main, WARNING,
				"lcore %u runs on CPU 0, which the kernel uses for housekeeping: "
				"choose another CPU in -l\n",
				lcore);
	}
	if (lcores[0] != '\0')
		TOKD_LOG(main, WARNING,
			"lcores on CPUs that are not isolated:%s (isolated: %s); boot with "
			"isolcpus=managed_irq,domain,...\n",
			lcores, list[0] != '\0' ? list : "none");
	if (isolated != NULL)
		numa_bitmask_free(isolated);
}

static void
check_node(const struct tokd_port *port)
{
	unsigned int lcore;

	if (port->node < 0)
		return; /* SOCKET_ID_ANY */
	RTE_LCORE_FOREACH (lcore) {
		int node = (int)rte_lcore_to_socket_id(lcore);

		if (node != port->node)
			TOKD_LOG(main, WARNING,
				"lcore %u is on NUMA node %d, port %u (%s) on node %d: every "
				"packet crosses nodes; choose lcores of node %d\n",
				lcore, node, port->id, port->name, port->node, port->node);
	}
}

void
tokd_cpu_check(const struct tokd_port *port)
{
	check_isolation();
	check_node(port);
}
