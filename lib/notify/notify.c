/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CLOSE_MS 15000 /* after the drain: rings, ports and devices are closed, memory is freed */

bool
tokd_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = path != NULL ? strlen(path) : 0;
	ssize_t sent;
	int fd;

	/* A path, or with '@' a name in the abstract namespace. */
	if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
		return false;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@')
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	close(fd);
	return sent == (ssize_t)strlen(state);
}

bool
tokd_notify_draining(uint32_t drain_ms)
{
	char state[96];

	snprintf(state, sizeof(state), "STOPPING=1\nSTATUS=draining\nEXTEND_TIMEOUT_USEC=%" PRIu64,
		((uint64_t)drain_ms + CLOSE_MS) * 1000);
	return tokd_notify(state);
}

uint32_t
tokd_notify_watchdog_ms(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	char *end;
	unsigned long long n;

	if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
		return 0;
	errno = 0;
	n = strtoull(usec, &end, 10);
	if (errno != 0 || *end != '\0' || n < 3000 || n / 3000 > 3600000)
		return 0;
	return (uint32_t)(n / 3000);
}

bool
tokd_notify_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat st;

	return stream != NULL && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}
