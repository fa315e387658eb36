/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket as a file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "readers/attach_socket.h"
#include "fixture.h"

#define FIXTURE_TEST(name) TEST_ON(name, make_place, leave_place, struct place *p)

#define OURS ((gid_t)-1) /* the group of this process */

struct place {
	char folder[64], path[96];
};

static int
make_place(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	strcpy(p->folder, "/tmp/tokd-test-XXXXXX");
	if (mkdtemp(p->folder) == NULL)
		return -1;
	snprintf(p->path, sizeof(p->path), "%s/socket", p->folder);
	*state = p;
	return 0;
}

static int
leave_place(void **state)
{
	struct place *p = *state;
	int rc;

	unlink(p->path);
	rc = rmdir(p->folder);
	free(p);
	return rc;
}

/* A listening socket that its process leaves without cleaning up. */
static int
listen_at(const char *path, int type)
{
	const int fd = unix_listen(path, type, 1);

	assert_true(fd >= 0);
	return fd;
}

FIXTURE_TEST(has_the_mode_asked_for_whatever_umask_says)
{
	mode_t before = umask(0);
	struct tokd_socket s;
	struct stat st;

	assert_int_equal(tokd_socket_open(&s, p->path, 0600, OURS), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	tokd_socket_close(&s);
	umask(077);
	assert_int_equal(tokd_socket_open(&s, p->path, 0660, OURS), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	tokd_socket_close(&s);
	umask(before);
}

FIXTURE_TEST(has_the_group_asked_for)
{
	struct tokd_socket s;
	struct stat st;

	if (geteuid() != 0)
		test_skip("only root may give any group");
	assert_int_equal(tokd_socket_open(&s, p->path, 0660, 54321), 0);
	assert_int_equal(stat(p->path, &st), 0);
	assert_int_equal(st.st_gid, 54321);
	assert_int_equal(st.st_mode & 07777, 0660);
	tokd_socket_close(&s);
}

FIXTURE_TEST(is_removed_when_closed)
{
	struct tokd_socket s;

	assert_int_equal(tokd_socket_open(&s, p->path, 0600, OURS), 0);
	tokd_socket_close(&s);
	assert_int_equal(access(p->path, F_OK), -1);
	tokd_socket_close(&s); /* harmless */
}

FIXTURE_TEST(of_another_is_not_removed)
{
	struct tokd_socket s;
	int other;

	assert_int_equal(tokd_socket_open(&s, p->path, 0600, OURS), 0);
	unlink(p->path);
	other = listen_at(p->path, SOCK_SEQPACKET);
	tokd_socket_close(&s);
	assert_int_equal(access(p->path, F_OK), 0);
	close(other);
}

FIXTURE_TEST(left_by_the_dead_is_replaced)
{
	struct tokd_socket s;

	close(listen_at(p->path, SOCK_SEQPACKET));
	assert_int_equal(access(p->path, F_OK), 0);
	assert_int_equal(tokd_socket_open(&s, p->path, 0600, OURS), 0);
	tokd_socket_close(&s);
}

FIXTURE_TEST(of_the_living_is_refused)
{
	struct tokd_socket first, second;

	assert_int_equal(tokd_socket_open(&first, p->path, 0600, OURS), 0);
	assert_int_equal(tokd_socket_open(&second, p->path, 0600, OURS), -EADDRINUSE);
	assert_int_equal(access(p->path, F_OK), 0);
	/* Its backlog full, it is alive all the same. */
	for (int i = 0; i < 64; i++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);

		if (connect(fd, (struct sockaddr *)&first.addr, sizeof(first.addr)) != 0) {
			close(fd);
			break;
		}
	}
	assert_int_equal(tokd_socket_open(&second, p->path, 0600, OURS), -EADDRINUSE);
	tokd_socket_close(&first);
}

FIXTURE_TEST(that_is_no_socket_of_ours_is_left_alone)
{
	struct tokd_socket s;
	int fd = open(p->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	close(fd);
	assert_int_equal(tokd_socket_open(&s, p->path, 0600, OURS), -EEXIST);
	assert_int_equal(access(p->path, F_OK), 0);
	unlink(p->path);

	fd = listen_at(p->path, SOCK_STREAM);
	assert_true(tokd_socket_open(&s, p->path, 0600, OURS) < 0);
	assert_int_equal(access(p->path, F_OK), 0);
	close(fd);
}

FIXTURE_TEST(needs_a_path_it_can_have)
{
	struct tokd_socket s;
	char path[200];

	assert_int_equal(tokd_socket_open(&s, "/nonexistent/socket", 0600, OURS), -ENOENT);
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(tokd_socket_open(&s, path, 0600, OURS), -ENAMETOOLONG);
}
