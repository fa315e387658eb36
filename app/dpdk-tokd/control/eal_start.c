/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_version.h>

#include "eal_files.h"
#include "eal_start.h"
#include "log.h"

#define RUNTIME_BYTES (8u << 20) /* EAL's files there, with two sizes of huge pages */

/* EAL calls it for -h, and when its own options are wrong. */
static bool usage_shown;

static void
show_usage(const char *program)
{
	usage_shown = true;
	printf("usage: dpdk-tokd [EAL options] -- [application options]\n"
	       "dpdk-tokd --help lists the application options\n\n");
}

/* `besides`: what else it may be. */
static void
log_rejected(const char *besides)
{
	tokd_log_failure(
		"EAL rejects an option before --%s: its first message above names it (CPUs: 0 to "
		"%ld); dpdk-tokd -h lists EAL's options, --help the application's",
		besides, sysconf(_SC_NPROCESSORS_CONF) - 1);
}

/* Before DPDK 25.11 EAL shows its usage for every wrong value. */
static void
log_without_usage(void)
{
	if (RTE_VERSION < RTE_VERSION_NUM(25, 11, 0, 0))
		tokd_log_failure("EAL cannot load a driver (-d): its first message above names it");
	else
		log_rejected(", or cannot load a driver (-d)");
}

/* Before EAL chooses an IOVA mode it has only read its options, and loaded drivers. */
static bool
is_early(void)
{
	return rte_eal_iova_mode() == RTE_IOVA_DC;
}

/* EAL of DPDK 25.11 ends the process when it has a wrong option, or was asked for help. */
static bool in_eal;

static void
at_exit(void)
{
	if (!in_eal || usage_shown || !is_early())
		return;
	log_rejected("");
	_exit(TOKD_EXIT_USAGE);
}

static bool
is_given(const char *option, int argc, char **argv)
{
	while (--argc > 0) {
		if (strcmp(argv[argc], option) == 0)
			return true;
	}
	return false;
}

static const char *
runtime_folder(void)
{
	const char *folder = getenv("RUNTIME_DIRECTORY");

	if (folder == NULL && getuid() != 0)
		folder = getenv("XDG_RUNTIME_DIR");
	if (folder == NULL)
		folder = getuid() == 0 ? "/var/run" : "/tmp";
	return folder;
}

/*
 * EAL returns EINVAL without its usage for a driver that it cannot load, and from DPDK 25.11 on for
 * a wrong value, too: these two cannot be told apart. It also does for a runtime folder that it
 * cannot make, which is no wrong option.
 */
static bool
has_wrong_value(int taken)
{
	const char *folder = runtime_folder();
	char made[PATH_MAX];

	if (taken >= 0 || rte_errno != EINVAL || !is_early())
		return false;
	if (rte_eal_get_runtime_dir()[0] != '\0')
		return true;
	snprintf(made, sizeof(made), "%s/dpdk", folder);
	return access(access(made, F_OK) == 0 ? made : folder, W_OK) == 0;
}

/*
 * EAL maps files of its runtime folder sparse: where the file system is full, their first store is
 * a SIGBUS. False, with a message, if it has no room for them. EAL reports other errors itself.
 */
static bool
runtime_has_room(void)
{
	const char *folder = runtime_folder();
	const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return true;
	rc = posix_fallocate(fd, 0, RUNTIME_BYTES);
	close(fd);
	if (rc != ENOSPC && rc != EDQUOT)
		return true;
	tokd_log_failure(
		"%s: %s for the %u KiB that EAL maps there: free some (df %s), or give --in-memory",
		folder, strerror(rc), RUNTIME_BYTES >> 10, folder);
	return false;
}

/* The first hugetlbfs mount, if this process may write to none. */
static bool
mounts_are_unwritable(char *folder, size_t room)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;
	bool writable = false;

	folder[0] = '\0';
	while (mounts != NULL && !writable && (m = getmntent(mounts)) != NULL) {
		if (strcmp(m->mnt_type, "hugetlbfs") != 0)
			continue;
		writable = access(m->mnt_dir, W_OK) == 0;
		if (folder[0] == '\0')
			snprintf(folder, room, "%s", m->mnt_dir);
	}
	if (mounts != NULL)
		endmntent(mounts);
	return folder[0] != '\0' && !writable;
}

static bool
huge_pages_are_reserved(void)
{
	glob_t files;
	bool any = false;

	if (glob("/sys/kernel/mm/hugepages/*/nr_hugepages", 0, NULL, &files) != 0)
		return false;
	for (size_t i = 0; i < files.gl_pathc && !any; i++) {
		FILE *f = fopen(files.gl_pathv[i], "re");
		unsigned long n;

		any = f != NULL && fscanf(f, "%lu", &n) == 1 && n > 0;
		if (f != NULL)
			fclose(f);
	}
	globfree(&files);
	return any;
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
		return huge_pages_are_reserved()
			       ? "huge pages are reserved, but no hugetlbfs is mounted for them: give "
				 "--in-memory, or mount one (dpdk-hugepages.py --mount, as root)"
			       : "no huge pages are reserved: dpdk-hugepages.py --setup 1G, as root; or "
				 "give --no-huge -m 512 to run without";
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
	const bool in_memory = is_given("--in-memory", argc, argv);
	char mount[PATH_MAX];
	int taken;

	if (!in_memory && !is_given("--no-shconf", argc, argv) && !runtime_has_room())
		return TOKD_EXIT_FAILED;

	/* Buffered, to discard the 100 lines of usage that EAL prints for one wrong option. */
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	rte_set_application_usage_hook(show_usage);
	rte_errno = 0;
	tokd_eal_files_remove_at_exit();
	in_eal = atexit(at_exit) == 0;
	taken = rte_eal_init(argc, argv);
	in_eal = false;
	if (usage_shown || has_wrong_value(taken)) {
		__fpurge(stdout);
		if (usage_shown)
			log_rejected("");
		else
			log_without_usage();
		return TOKD_EXIT_USAGE;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (taken < 0 && rte_eal_has_hugepages() && !in_memory &&
		(rte_errno == EACCES || rte_errno == ENOMEM) &&
		mounts_are_unwritable(mount, sizeof(mount))) {
		tokd_log_failure(
			"EAL did not start: user %u may not write to %s, where huge pages are "
			"mounted: give --in-memory, or mount -o remount,uid=%u %s",
			geteuid(), mount, geteuid(), mount);
		return TOKD_EXIT_FAILED;
	}
	if (taken < 0) {
		/* EACCES: remedy() knows the reason, and it is no permission. */
		const bool is_known = rte_errno == 0 || rte_errno == EACCES;

		tokd_log_failure("EAL did not start%s%s: %s", is_known ? "" : ": ",
			is_known ? "" : rte_strerror(rte_errno), remedy(rte_errno));
		/* Of -a or --vdev; later: memory. */
		return rte_errno == ENODEV && is_early() ? TOKD_EXIT_USAGE : TOKD_EXIT_FAILED;
	}
	/* EAL moves arguments that are not its options to the end, without an error. */
	if (taken + 1 < argc) {
		tokd_log_failure(
			"%.64s: before --, but neither an EAL option nor the value of one; remove it",
			argv[taken + 1]);
		rte_eal_cleanup();
		return TOKD_EXIT_USAGE;
	}
	return TOKD_EXIT_OK;
}
