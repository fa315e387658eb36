/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_none.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include <rte_bus.h>
#include <rte_devargs.h>
#include <rte_lcore.h>

#include "log.h"

#define BIT(capability) (UINT64_C(1) << (capability))

static const struct {
	int number;
	const char *name;
} capabilities[] = {
	{CAP_NET_ADMIN, "NET_ADMIN"},
	{CAP_NET_RAW, "NET_RAW"},
	{CAP_IPC_LOCK, "IPC_LOCK"},
	{CAP_SYS_ADMIN, "SYS_ADMIN"},
	{CAP_BPF, "BPF"},
};

/* As in doc/user/security.md. */
static const struct {
	const char *driver;
	uint64_t needs;
} drivers[] = {
	{"net_af_packet", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN)},
	{"net_af_xdp", BIT(CAP_NET_RAW) | BIT(CAP_NET_ADMIN) | BIT(CAP_BPF) | BIT(CAP_SYS_ADMIN) |
			       BIT(CAP_IPC_LOCK)},
	{"net_tap", BIT(CAP_NET_ADMIN)},
};

/* Of this thread; all if the kernel does not say. */
static uint64_t
effective(void)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &who, data) != 0)
		return UINT64_MAX;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

bool
tokd_port_lacks(const char *driver, char text[TOKD_PORT_LACKS])
{
	uint64_t missing = 0;
	size_t used;

	for (size_t i = 0; i < RTE_DIM(drivers); i++) {
		if (strncmp(driver, drivers[i].driver, strlen(drivers[i].driver)) == 0)
			missing = drivers[i].needs & ~effective();
	}
	if (missing == 0)
		return false;
	used = (size_t)snprintf(text, TOKD_PORT_LACKS, "this process lacks");
	for (size_t i = 0; i < RTE_DIM(capabilities); i++) {
		if ((missing & BIT(capabilities[i].number)) != 0)
			used += (size_t)snprintf(text + used, TOKD_PORT_LACKS - used, " CAP_%s",
				capabilities[i].name);
	}
	snprintf(text + used, TOKD_PORT_LACKS - used,
		": run it as root, or by setpriv with these as --inh-caps and --ambient-caps");
	return true;
}

/* A --vdev that EAL goes on without. */
static void
explain_vdev(const struct rte_devargs *d)
{
	const char *iface = strstr(d->args, "iface=");
	char text[TOKD_PORT_LACKS], name[IF_NAMESIZE] = "";

	iface = iface != NULL ? iface + strlen("iface=") : "";
	/* net_tap makes its interface. */
	if (strncmp(d->name, "net_tap", strlen("net_tap")) != 0)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(iface, ","), iface);
	if (strcspn(iface, ",") >= IF_NAMESIZE)
		TOKD_LOG(port, ERR,
			"--vdev %s: iface=%.*s: an interface's name has at most %d characters; "
			"give a shorter one\n",
			d->name, (int)strcspn(iface, ","), iface, IF_NAMESIZE - 1);
	else if (name[0] != '\0' && if_nametoindex(name) == 0)
		TOKD_LOG(port, ERR,
			"--vdev %s: no interface %s in this network namespace; ip link lists "
			"those that exist\n",
			d->name, name);
	else if (tokd_port_lacks(d->name, text))
		TOKD_LOG(port, ERR, "--vdev %s: %s\n", d->name, text);
	else
		TOKD_LOG(port, ERR,
			"--vdev %s: its driver refuses it, with the arguments \"%s\": EAL's "
			"messages above say why\n",
			d->name, d->args);
}

/* False: none is named. */
static bool
explain_named(void)
{
	struct rte_devargs *d;
	bool any = false;

	RTE_EAL_DEVARGS_FOREACH(NULL, d)
	{
		if (strcmp(rte_bus_name(d->bus), "vdev") == 0)
			explain_vdev(d);
		else if (d->policy == RTE_DEV_ALLOWED)
			TOKD_LOG(port, ERR,
				"-a %s: no driver took it: is it there, and bound to vfio-pci "
				"(dpdk-devbind.py --status-dev net)? mlx5 keeps its kernel "
				"driver\n",
				d->name);
		else
			continue;
		any = true;
	}
	return any;
}

/* As in 1-4,8. */
static void
list_lcores(char *list, size_t room)
{
	unsigned int lcore, first = 0;
	size_t used = 0;

	list[0] = '\0';
	RTE_LCORE_FOREACH (lcore) {
		if (!rte_lcore_is_enabled(lcore - 1))
			first = lcore;
		if (used < room && !rte_lcore_is_enabled(lcore + 1))
			used += (size_t)snprintf(list + used, room - used,
				first == lcore ? "%s%u" : "%s%u-%u", used != 0 ? "," : "", first,
				lcore);
	}
}

void
tokd_port_explain_none(uint16_t n_queues, const char *vocab)
{
	char lcores[128];

	if (explain_named())
		return;
	list_lcores(lcores, sizeof(lcores));
	TOKD_LOG(port, ERR, "no DPDK port: name a device before --, in one of these four ways\n");
	TOKD_LOG(port, ERR,
		"a NIC (dpdk-devbind.py --status-dev net lists them; omit the first command for "
		"mlx5, which keeps its kernel driver): dpdk-devbind.py --bind=vfio-pci "
		"0000:03:00.0 && dpdk-tokd -l %s -a 0000:03:00.0 -- --vocab %s\n",
		lcores, vocab);
	TOKD_LOG(port, ERR,
		"an interface that the kernel goes on using, as a machine's only one: dpdk-tokd -l "
		"%s --no-pci --vdev=net_af_packet0,iface=eth0,qpairs=%u -- --vocab %s\n",
		lcores, n_queues, vocab);
	TOKD_LOG(port, ERR,
		"a kernel interface for DPDK alone (ssh over it stops), by AF_XDP: ethtool -L eth1 "
		"combined %u; dpdk-tokd -l %s --no-pci --vdev=net_af_xdp0,iface=eth1,queue_count=%u "
		"-- --vocab %s\n",
		n_queues, lcores, n_queues, vocab);
	TOKD_LOG(port, ERR,
		"a TAP interface, to try it on this machine: add --no-pci "
		"--vdev=net_tap0,iface=tokd0 to the EAL options given, before --\n");
}
