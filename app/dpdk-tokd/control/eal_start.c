/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>

#include "eal_start.h"

/* EAL calls it for -h, and when its own options are wrong. */
static bool usage_shown;

static void
show_usage(const char *program)
{
	usage_shown = true;
	printf("usage: dpdk-tokd [EAL options] -- [application options]\n"
	       "dpdk-tokd --help lists the application options\n\n");
}

/* EAL 22.11 prints its reasons; the program only gets rte_errno. */
static const char *
remedy(int error)
{
	switch (error) {
	case 0:
		return "if another process uses this --file-prefix, give another one; if /run/dpdk "
		       "is not writable, run as root or set XDG_RUNTIME_DIR to a folder of yours";
	case EACCES:
		return "no huge pages available: reserve and mount them (dpdk-hugepages.py "
		       "--setup 1G, as root); if they are reserved but not mounted, give "
		       "--in-memory; to run without huge pages, give --no-huge -m 512";
	case ENOMEM:
		return "reserve more huge pages (dpdk-hugepages.py --show), or lower -m or "
		       "--socket-mem";
	case ENODEV:
		return "check the names and arguments of -a and --vdev";
	case EINVAL:
		return "see EAL's messages above; if they name the runtime directory, set "
		       "XDG_RUNTIME_DIR to a folder of yours";
	default:
		return "see EAL's messages above";
	}
}

enum tokd_exit
tokd_eal_start(int argc, char **argv)
{
	static char buffer[64 << 10];
	int taken;

	/* Buffered, to discard the 100 lines of usage that EAL prints for one wrong option. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	rte_set_application_usage_hook(show_usage);
	rte_errno = 0;
	taken = rte_eal_init(argc, argv);
	if (usage_shown) {
		__fpurge(stdout);
		fprintf(stderr,
			"dpdk-tokd: EAL rejects an option before --: its first message above names "
			"it (CPUs: 0 to %ld); dpdk-tokd -h lists EAL's options, --help the "
			"application's\n",
			sysconf(_SC_NPROCESSORS_CONF) - 1);
		return TOKD_EXIT_USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (taken < 0) {
		fprintf(stderr, "dpdk-tokd: EAL did not start%s%s: %s\n",
			rte_errno != 0 ? ": " : "", rte_errno != 0 ? rte_strerror(rte_errno) : "",
			remedy(rte_errno));
		return TOKD_EXIT_FAILED;
	}
	/* EAL moves arguments that are not its options to the end, without an error. */
	if (taken + 1 < argc) {
		fprintf(stderr,
			"dpdk-tokd: %.64s: before --, but neither an EAL option nor the value of "
			"one; remove it\n",
			argv[taken + 1]);
		rte_eal_cleanup();
		return TOKD_EXIT_USAGE;
	}
	return TOKD_EXIT_OK;
}
