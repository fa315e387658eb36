/* SPDX-License-Identifier: BSD-3-Clause */
#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <monotonic.h>

#include "inside.h"

#define BACKLOG 64
#define PAUSE_MS 1000 /* without descriptors */

/* A process listens there: it accepts, its backlog is full, or its socket has another type. */
static bool
is_served(const struct sockaddr_un *un)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served = false;

	if (fd >= 0) {
		served = connect(fd, (const struct sockaddr *)un, sizeof(*un)) == 0 ||
			 errno == EAGAIN || errno == EPROTOTYPE;
		close(fd);
	}
	return served;
}

static bool
remove_stale(const struct sockaddr_un *un, struct tokg_error *err)
{
	struct stat st;

	if (lstat(un->sun_path, &st) != 0)
		return errno == ENOENT || tokg_wrong(err, "%s: %s", un->sun_path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return tokg_wrong(
			err, "%s: exists and is not a socket: give another path", un->sun_path);
	if (is_served(un))
		return tokg_wrong(err,
			"%s: another tokd-gpu serves it: stop it, or give another path",
			un->sun_path);
	if (unlink(un->sun_path) != 0 && errno != ENOENT)
		return tokg_wrong(
			err, "%s: stale, and cannot be removed: %s", un->sun_path, strerror(errno));
	return true;
}

bool
tokg_listen_unix(
	struct tokg_listener *l, const char *path, int type, uint32_t mode, struct tokg_error *err)
{
	struct stat st;

	l->un.sun_family = AF_UNIX;
	if (path[0] == '\0' || strlen(path) >= sizeof(l->un.sun_path))
		return tokg_wrong(err, "socket \"%.60s\": must have 1 to %zu bytes", path,
			sizeof(l->un.sun_path) - 1);
	strcpy(l->un.sun_path, path);
	if (!remove_stale(&l->un, err))
		return false;
	l->fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return tokg_wrong(err, "%s: socket: %s", path, strerror(errno));
	/* listen() comes last: nobody may connect before the mode is set. */
	if (bind(l->fd, (const struct sockaddr *)&l->un, sizeof(l->un)) != 0 ||
		stat(path, &st) != 0 || chmod(path, (mode_t)mode) != 0 ||
		listen(l->fd, BACKLOG) != 0)
		return tokg_wrong(err,
			"%s: %s: its folder must exist and be writable; or give another path", path,
			strerror(errno));
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return true;
}

static bool
listen_at(struct tokg_listener *l, const struct addrinfo *a)
{
	const int on = 1, off = 0;

	l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return false;
	setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->ai_family == AF_INET6) /* "" includes IPv4 */
		setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	return bind(l->fd, a->ai_addr, a->ai_addrlen) == 0 && listen(l->fd, BACKLOG) == 0;
}

bool
tokg_listen_tcp(struct tokg_listener *l, const char *host, uint16_t port, struct tokg_error *err)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *list;
	char text[8];
	int rc;

	snprintf(text, sizeof(text), "%u", port);
	rc = getaddrinfo(host[0] != '\0' ? host : NULL, text, &hints, &list);
	if (rc != 0)
		return tokg_wrong(err, "listening at %s port %u: %s", host, port, gai_strerror(rc));
	/* IPv6 first: such a socket accepts both. */
	for (int v6 = 1; v6 >= 0; v6--)
		for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
			if ((a->ai_family == AF_INET6) != v6)
				continue;
			if (listen_at(l, a)) {
				freeaddrinfo(list);
				return true;
			}
			tokg_wrong(err, "listening at %s port %u: %s", host, port, strerror(errno));
			if (l->fd >= 0)
				close(l->fd);
			l->fd = -1;
		}
	freeaddrinfo(list);
	return false;
}

static void
explain(int error, struct tokg_error *err)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	if (error == EMFILE)
		tokg_wrong(err,
			"cannot accept a connection: the limit of %llu descriptors is reached; new "
			"ones wait: raise it (ulimit -n, or LimitNOFILE= of the unit)",
			(unsigned long long)limit.rlim_cur);
	else
		tokg_wrong(err, "cannot accept a connection: %s; new ones wait%s", strerror(error),
			error == ENFILE ? ": raise the sysctl fs.file-max" : "");
}

int
tokg_listen_accept(struct tokg_listener *l, struct tokg_error *err)
{
	const int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	err->text[0] = '\0';
	if (fd >= 0) {
		l->reported = false;
	} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
		if (!l->reported)
			explain(errno, err);
		l->reported = true;
		l->paused_ms = monotonic_ms() + PAUSE_MS;
	}
	return fd;
}

bool
tokg_listen_is_paused(const struct tokg_listener *l)
{
	return l->paused_ms != 0 && monotonic_ms() < l->paused_ms;
}

void
tokg_listen_close(struct tokg_listener *l)
{
	struct stat st;

	if (l->fd < 0)
		return;
	if (l->un.sun_path[0] != '\0' && l->ino != 0 && stat(l->un.sun_path, &st) == 0 &&
		st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->un.sun_path);
	close(l->fd);
	l->fd = -1;
}
