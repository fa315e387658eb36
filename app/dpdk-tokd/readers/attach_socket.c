/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach_socket.h"
#include "log.h"

#define BACKLOG 64 /* above TOKD_CONNS_MAX */

#define LOCK_TRIES 20
#define LOCK_WAIT_NS (100 * 1000 * 1000)

/*
 * Serializes dpdk-tokd processes from the check of the path until listen(): another one would take
 * the new socket for a stale one. Returns a descriptor that holds the lock of the folder, or
 * -errno; -EWOULDBLOCK: another process has held it for LOCK_TRIES * LOCK_WAIT_NS.
 */
static int
lock_folder(const char *path)
{
	const struct timespec wait = {.tv_nsec = LOCK_WAIT_NS};
	const char *slash = strrchr(path, '/');
	char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)] = ".";
	int fd, rc = 0;

	if (slash != NULL)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path),
			path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		rc = flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : -errno;
		if (rc != -EWOULDBLOCK)
			break;
		nanosleep(&wait, NULL);
	}
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* 1: a process accepts connections; 0: none; -errno: unknown. */
static int
answers(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = 1;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0) {
		if (errno == ECONNREFUSED)
			rc = 0;
		else if (errno != EAGAIN) /* EAGAIN: its backlog is full */
			rc = -errno;
	}
	close(fd);
	return rc;
}

/* Removes a stale socket. 0: the path is free. */
static int
clear_stale(const struct sockaddr_un *addr)
{
	const char *path = addr->sun_path;
	struct stat st;
	int rc;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode)) {
		TOKD_LOG(control, ERR,
			"--socket %s: exists and is not a socket; remove it or give another path\n",
			path);
		return -EEXIST;
	}
	rc = answers(addr);
	if (rc == 1) {
		TOKD_LOG(control, ERR,
			"--socket %s: another dpdk-tokd answers on it; give each its own "
			"--socket\n",
			path);
		return -EADDRINUSE;
	}
	if (rc < 0) {
		TOKD_LOG(control, ERR,
			"--socket %s: exists, and connecting fails: %s; remove it or give another "
			"path\n",
			path, strerror(-rc));
		return rc;
	}
	TOKD_LOG(control, NOTICE, "--socket %s: stale, from a process that has ended: replaced\n",
		path);
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Before listen(): nobody can connect until owner and mode are set. */
static int
bind_mode(int fd, const struct sockaddr_un *addr, uint32_t mode, gid_t group)
{
	/* Linux creates the file with the socket's mode minus umask, never with more. */
	if (fchmod(fd, mode) != 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0)
		return -errno;
	if (group != (gid_t)-1 && chown(addr->sun_path, (uid_t)-1, group) != 0)
		return -errno;
	return chmod(addr->sun_path, mode) == 0 ? 0 : -errno;
}

/* Listens at s->addr. 0 or -errno; *logged: a message was logged. */
static int
listen_at(struct tokd_socket *s, uint32_t mode, gid_t gid, bool *logged)
{
	struct stat st;
	int rc = clear_stale(&s->addr);

	if (rc != 0) {
		*logged = true;
		return rc;
	}
	s->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = s->fd >= 0 ? bind_mode(s->fd, &s->addr, mode, gid) : -errno;
	if (rc == 0 && (stat(s->addr.sun_path, &st) != 0 || listen(s->fd, BACKLOG) != 0))
		rc = -errno;
	if (rc == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	return rc;
}

int
tokd_socket_open(struct tokd_socket *s, const char *path, uint32_t mode, gid_t group)
{
	bool logged = false;
	int lock, rc;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	s->addr.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(s->addr.sun_path)) {
		TOKD_LOG(control, ERR, "--socket %s: longer than %zu bytes; give a shorter path\n",
			path, sizeof(s->addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	strcpy(s->addr.sun_path, path);
	lock = lock_folder(path);
	rc = lock >= 0 ? listen_at(s, mode, group, &logged) : lock;
	if (lock >= 0)
		close(lock);
	if (rc == 0)
		return 0;
	if (lock == -EWOULDBLOCK)
		TOKD_LOG(control, ERR,
			"--socket %s: another process has locked its folder for %u ms; end it, or "
			"give another path\n",
			path, (unsigned int)(LOCK_TRIES * (LOCK_WAIT_NS / 1000000)));
	else if (rc == -EPERM && group != (gid_t)-1)
		TOKD_LOG(control, ERR,
			"--socket-group: group %u: %s; only its members and root can set it\n",
			group, strerror(-rc));
	else if (!logged)
		TOKD_LOG(control, ERR,
			"--socket %s: %s; its folder must exist and be writable; or give another "
			"path\n",
			path, strerror(-rc));
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	return rc;
}

void
tokd_socket_close(struct tokd_socket *s)
{
	struct stat st;

	if (s->fd < 0)
		return;
	/* Another process may have replaced it meanwhile. */
	if (stat(s->addr.sun_path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->addr.sun_path);
	close(s->fd);
	s->fd = -1;
}
