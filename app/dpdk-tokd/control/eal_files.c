/* SPDX-License-Identifier: BSD-3-Clause */
#include "eal_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <rte_common.h>
#include <rte_eal.h>

#define CONFIG "config"	   /* a primary process has a lock on it */
#define SHARED "fbarray_*" /* each process that uses one has a lock on it */

/* EAL keeps files open and mapped, and so its locks on them: this ends those on `file`. */
static void
unlock_own(int file)
{
	DIR *open_ones = opendir("/proc/self/fd");
	struct stat wanted, st;

	if (open_ones == NULL)
		return;
	fstat(file, &wanted); /* it is open */
	for (struct dirent *d = readdir(open_ones); d != NULL; d = readdir(open_ones)) {
		const int fd = (int)strtol(d->d_name, NULL, 10);

		if (d->d_name[0] != '.' && fstat(fd, &st) == 0 && st.st_dev == wanted.st_dev &&
			st.st_ino == wanted.st_ino)
			flock(fd, LOCK_UN);
	}
	closedir(open_ones);
}

/* A secondary process may outlive the primary. */
static bool
is_shared(DIR *folder)
{
	bool locked = false;

	for (struct dirent *d = readdir(folder); d != NULL && !locked; d = readdir(folder)) {
		int fd;

		if (fnmatch(SHARED, d->d_name, 0) != 0)
			continue;
		fd = openat(dirfd(folder), d->d_name, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return true; /* it cannot be asked: all is left */
		unlock_own(fd);
		locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
		close(fd);
	}
	rewinddir(folder);
	return locked;
}

static void
remove_all(DIR *folder)
{
	static const char *const left[] = {SHARED, "hugepage_*", "mp_socket*"};

	for (struct dirent *d = readdir(folder); d != NULL; d = readdir(folder)) {
		for (size_t i = 0; i < RTE_DIM(left); i++) {
			if (fnmatch(left[i], d->d_name, 0) == 0)
				unlinkat(dirfd(folder), d->d_name, 0);
		}
	}
	unlinkat(dirfd(folder), CONFIG, 0); /* last: without it another process may start */
}

static void
at_exit(void)
{
	const char *path = rte_eal_get_runtime_dir();
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	DIR *folder = path[0] != '\0' ? opendir(path) : NULL;
	int config;

	if (folder == NULL)
		return;
	/* Not closed: that would end the lock. */
	config = openat(dirfd(folder), CONFIG, O_RDWR | O_CLOEXEC);
	if (config >= 0 && fcntl(config, F_SETLK, &whole) == 0 && !is_shared(folder)) {
		remove_all(folder);
		rmdir(path);
	}
	closedir(folder);
}

void
tokd_eal_files_remove_at_exit(void)
{
	/* Called in reverse order: after EAL has removed its telemetry socket. */
	atexit(at_exit);
}
