/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that lies: the library says so in time, and neither crashes, hangs nor leaks. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <tokd/reader.h>

#include <monotonic.h>
#include "server.h"
#include "unix_socket.h"

#define FIXTURE_TEST(name) TEST_ON(name, server_setup, server_teardown, struct server *s)

#define LIMIT_MS 2000

static bool shrinks_late;

int __real_fstat64(int fd, struct stat *st);
int __wrap_fstat64(int fd, struct stat *st);

/* The server is at work at the same time: it shrinks its memory, and seals it then. */
int
__wrap_fstat64(int fd, struct stat *st)
{
	const int rc = __real_fstat64(fd, st);

	if (shrinks_late)
		(void)!(ftruncate(fd, 0) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	return rc;
}

static int
lowest_free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Attach to *s as it stands. Not attached: *e says why, and no descriptor is left open. */
static struct tokr *
try(struct server *s, int mode, int limit_ms, struct tokr_error *e)
{
	int before = lowest_free_fd();
	struct tokr *r;

	server_start(s);
	r = tokr_attach(s->path, mode, limit_ms, e);
	server_join(s);
	if (r == NULL) {
		if (s->reader >= 0)
			close(s->reader);
		s->reader = -1;
		assert_int_equal(lowest_free_fd(), before);
	}
	return r;
}

static void
refuses(struct server *s, int code, const char *why)
{
	struct tokr_error e;

	assert_null(try(s, TOKR_READER, LIMIT_MS, &e));
	if (e.code != code || strstr(e.text, why) == NULL)
		fail_msg("%d %s: expected %d %s", e.code, e.text, code, why);
}

static struct tokr *
attached(struct server *s, int mode)
{
	struct tokr_error e;
	struct tokr *r;

	if (mode == TOKR_TAP) {
		s->fds[0] = s->ring_fd;
		s->n_fds = 1;
	}
	r = try(s, mode, LIMIT_MS, &e);
	if (r == NULL)
		fail_msg("%s", e.text);
	return r;
}

FIXTURE_TEST(that_is_honest_is_believed)
{
	struct tokr *r = attached(s, TOKR_READER);
	struct tokr_record rec;

	server_publish(s, 3);
	assert_int_equal(tokr_next(r, &rec, 0), 1);
	assert_int_equal(rec.count, 3);
	assert_int_equal(tokr_release(r, &rec), 0);
	assert_int_equal(s->cursor[0], s->head);
	tokr_detach(r);
}

FIXTURE_TEST(with_a_wrong_answer_is_refused)
{
	const struct tokd_attach_rep good = s->rep;

	s->rep.magic = 1;
	refuses(s, TOKR_INVALID, "magic 0x1");
	s->rep = good;
	s->rep.version = 9;
	refuses(s, TOKR_INVALID, "version 9");
	s->rep = good;
	s->rep.n_rings = 2;
	refuses(s, TOKR_INVALID, "2 descriptors for 2 rings");
	s->rep.n_rings = 64;
	refuses(s, TOKR_INVALID, "for 64 rings");
	s->rep.n_rings = UINT32_MAX;
	refuses(s, TOKR_INVALID, "for 4294967295 rings");
	s->rep = good;
	s->rep.instance = 43;
	refuses(s, TOKR_INVALID, "another run");
	s->rep = good;
	s->rep.n_rings = 0;
	memset(s->rep.message, '\n', sizeof(s->rep.message)); /* no end, and not for a terminal */
	refuses(s, TOKR_REFUSED, "refused: ????");
}

FIXTURE_TEST(with_an_answer_of_wrong_length_is_refused)
{
	s->rep_bytes = sizeof(s->rep) - 1;
	refuses(s, TOKR_INVALID, "attach reply of");
	s->rep_bytes = sizeof(s->rep) + 1;
	refuses(s, TOKR_INVALID, "attach reply of");
	s->rep_bytes = 1;
	refuses(s, TOKR_INVALID, "attach reply of 1 bytes");
}

FIXTURE_TEST(with_wrong_descriptors_is_refused)
{
	char path[128];
	int fd, small;

	s->n_fds = 0;
	refuses(s, TOKR_INVALID, "0 descriptors");
	s->n_fds = 1;
	refuses(s, TOKR_INVALID, "1 descriptors");
	for (int i = 2; i < 65; i++)
		s->fds[i] = s->ring_fd;
	s->n_fds = 65; /* one more than there may be */
	refuses(s, TOKR_INVALID, "64 descriptors");

	s->n_fds = 2;
	snprintf(path, sizeof(path), "%s/file", s->folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	unlink(path);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	s->fds[1] = fd;
	refuses(s, TOKR_INVALID, "token ring 0: not a memfd");
	s->fds[1] = s->listener;
	refuses(s, TOKR_INVALID, "token ring 0: not a memfd");
	s->fds[1] = s->ring_fd;
	s->fds[0] = fd;
	refuses(s, TOKR_INVALID, "cursor memfd 0: not a memfd");
	small = server_memfd(TOKD_CURSOR_BYTES - 1, F_SEAL_SHRINK);
	s->fds[0] = small;
	refuses(s, TOKR_INVALID, "4095 bytes, must have at least 4096");
	s->fds[0] = s->cursor_fd;
	s->fds[1] = small;
	refuses(s, TOKR_INVALID, "4095 bytes, must have at least 4096");
	close(fd);
	close(small);
}

FIXTURE_TEST(that_could_shrink_its_memory_is_refused)
{
	int loose = server_memfd(1 << 20, 0);
	int grows = server_memfd(1 << 20, F_SEAL_GROW | F_SEAL_FUTURE_WRITE);

	s->fds[1] = loose;
	refuses(s, TOKR_INVALID, "token ring 0: not sealed against shrinking");
	s->fds[1] = grows;
	refuses(s, TOKR_INVALID, "token ring 0: not sealed against shrinking");
	s->fds[1] = s->ring_fd;
	s->fds[0] = loose;
	refuses(s, TOKR_INVALID, "cursor memfd 0: not sealed against shrinking");
	/* A cursor that may not be written. */
	s->fds[0] = s->ring_fd;
	close(s->cursor_fd);
	s->cursor_fd =
		server_memfd(TOKD_CURSOR_BYTES, F_SEAL_SHRINK | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
	s->fds[0] = s->cursor_fd;
	refuses(s, TOKR_SYSTEM, "cannot map");
	close(loose);
	close(grows);
}

FIXTURE_TEST(that_shrinks_its_memory_between_two_looks_is_refused)
{
	const int loose = server_memfd(1 << 20, 0);

	shrinks_late = true;
	s->fds[1] = loose;
	refuses(s, TOKR_INVALID, "token ring 0: not sealed against shrinking");
	s->fds[1] = s->ring_fd;
	s->fds[0] = loose;
	refuses(s, TOKR_INVALID, "cursor memfd 0: not sealed against shrinking");
	shrinks_late = false;
	close(loose);
}

FIXTURE_TEST(with_a_wrong_header_is_refused)
{
	static const struct {
		size_t at;
		uint64_t value;
		const char *why;
	} wrong[] = {
		{offsetof(struct tokd_ring_hdr, magic), 0, "magic 0x0"},
		{offsetof(struct tokd_ring_hdr, version), 2, "version 2"},
		{offsetof(struct tokd_ring_hdr, data_off), 0, "exceeds"},
		{offsetof(struct tokd_ring_hdr, data_off), 8192, "exceeds"},
		{offsetof(struct tokd_ring_hdr, data_off), UINT64_MAX, "exceeds"},
		{offsetof(struct tokd_ring_hdr, data_bytes), 0, "must be a power of two"},
		{offsetof(struct tokd_ring_hdr, data_bytes), 32, "must be a power of two"},
		{offsetof(struct tokd_ring_hdr, data_bytes), 4032, "must be a power of two"},
		{offsetof(struct tokd_ring_hdr, data_bytes), 8192, "exceeds"},
		{offsetof(struct tokd_ring_hdr, data_bytes), UINT64_C(1) << 63, "exceeds"},
		{offsetof(struct tokd_ring_hdr, instance), 1, "another run"},
		{offsetof(struct tokd_ring_hdr, tsc_hz), 0, "tsc_hz is 0"},
		{offsetof(struct tokd_ring_hdr, tail), 64, "must be a record in [64, 0]"},
	};
	const struct tokd_ring_hdr good = *s->hdr;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy((char *)s->hdr + wrong[i].at, &wrong[i].value, sizeof(wrong[i].value));
		refuses(s, TOKR_INVALID, wrong[i].why);
		*s->hdr = good;
	}
	s->rep.start[0] = 32;
	refuses(s, TOKR_INVALID, "start 32");
	s->rep.start[0] = UINT64_MAX - 63;
	refuses(s, TOKR_INVALID, "must be a record");
}

FIXTURE_TEST(that_is_silent_is_given_up_in_time)
{
	struct tokr_error e;
	const uint64_t begun = monotonic_ms();
	int fd[16];
	struct tokr *r;

	s->answers = false;
	assert_null(try(s, TOKR_READER, 100, &e));
	assert_int_equal(e.code, TOKR_TIMEOUT);

	/* One whose backlog is full does not even connect. */
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
		struct sockaddr_storage addr;
		socklen_t len = sizeof(addr);

		getsockname(s->listener, (struct sockaddr *)&addr, &len);
		fd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(fd[i], (struct sockaddr *)&addr, len);
	}
	s->accepts = false;
	r = try(s, TOKR_READER, 100, &e);
	assert_null(r);
	assert_int_equal(e.code, TOKR_TIMEOUT);
	assert_non_null(strstr(e.text, "does not accept"));
	assert_in_range(monotonic_ms() - begun, 0, 2999);
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		close(fd[i]);
}

static void
on_signal(int number)
{
}

TEST(that_is_silent_may_be_left_by_a_signal)
{
	const struct sigaction handler = {.sa_handler = on_signal};
	/* Again and again: the first may come before the call has begun. */
	const struct itimerval soon = {{.tv_usec = 20000}, {.tv_usec = 20000}}, never = {0};
	struct sigaction before;
	struct tokr_error e;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/tokr-silent-%d", (int)getpid());
	fd = unix_listen(path, SOCK_SEQPACKET, 2);
	assert_true(fd >= 0);
	sigaction(SIGALRM, &handler, &before);
	setitimer(ITIMER_REAL, &soon, NULL);
	assert_null(tokr_attach(path, TOKR_READER, 100, &e));
	assert_int_equal(e.code, TOKR_TIMEOUT); /* not by default */
	assert_null(tokr_attach(path, TOKR_READER | TOKR_EINTR, LIMIT_MS, &e));
	assert_int_equal(e.code, TOKR_SYSTEM);
	assert_int_equal(e.sys_errno, EINTR);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	unlink(path);
	close(fd);
}

FIXTURE_TEST(that_closes_at_once_is_gone)
{
	struct tokr_error e;

	s->answers = true;
	s->n_fds = 0;
	s->rep_bytes = 0;
	assert_null(try(s, TOKR_READER, LIMIT_MS, &e));
	assert_int_equal(e.code, TOKR_GONE);
}

/* Whether the request finds it gone, is never read, or comes in time: chance decides, many times.
 */
FIXTURE_TEST(that_refuses_and_closes_before_it_was_asked_is_heard)
{
	s->in_a_hurry = true;
	s->n_fds = 0;
	s->rep.n_rings = 0;
	strcpy(s->rep.message, "no room for more readers");
	for (int i = 0; i < 300; i++)
		refuses(s, TOKR_REFUSED, "no room for more readers");
	s->rep_bytes = 0;
	for (int i = 0; i < 300; i++)
		refuses(s, TOKR_GONE, "try again");
}

TEST(whose_records_are_wrong_is_found_out)
{
	static const struct {
		uint32_t bytes, kind, count;
	} wrong[] = {{0, 1, 0}, {32, 1, 0}, {65, 1, 0}, {96, 1, 0}, {192, 1, 0}, {4096, 1, 0},
		{0xffffffc0, 1, 0}, {128, 1, 17}, {128, 1, UINT32_MAX}, {128, 1, 0x40000000},
		{0, 0, 0}, {65, 3, 0}, {0, 2, 0}, {0xffffffc0, 2, 0}, {0xffffffc0, 3, 0}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		for (int mode = TOKR_READER; mode <= TOKR_TAP; mode++) {
			struct tokr_record rec;
			struct tokd_rec *in;
			struct server *s;
			struct tokr *r;

			assert_int_equal(server_setup((void **)&s), 0);
			r = attached(s, mode);
			in = server_publish(s, 16);
			in->bytes = wrong[i].bytes;
			in->kind = (uint16_t)wrong[i].kind;
			in->count = wrong[i].count;
			assert_int_equal(tokr_next(r, &rec, 100), TOKR_INVALID);
			assert_non_null(strstr(tokr_last_error(r)->text, "token ring 0"));
			assert_int_equal(tokr_next(r, &rec, -1), TOKR_INVALID);
			tokr_detach(r);
			assert_int_equal(server_teardown((void **)&s), 0);
		}
	}
}

/* Keys that do not fit their record, or of blocks of no size. */
TEST(whose_keys_are_wrong_is_found_out)
{
	static const struct {
		uint32_t block_size, first;
	} wrong[] = {{0, 0}, {1, 0}, {15, 0}, {16, UINT32_MAX}};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tokr_record rec;
		struct tokd_rec *in;
		struct server *s;
		struct tokr *r;

		assert_int_equal(server_setup((void **)&s), 0);
		s->hdr->key_bytes = 32;
		s->hdr->block_size = wrong[i].block_size;
		r = attached(s, TOKR_READER);
		in = server_publish(s, 16);
		in->flags = TOKD_REC_KEYS;
		in->first = wrong[i].first;
		assert_int_equal(tokr_next(r, &rec, 100), TOKR_INVALID);
		assert_non_null(strstr(tokr_last_error(r)->text, "the keys of their blocks"));
		tokr_detach(r);
		assert_int_equal(server_teardown((void **)&s), 0);
	}
}

FIXTURE_TEST(whose_keys_have_an_odd_size_is_refused)
{
	s->hdr->block_size = 16;
	s->hdr->key_bytes = 12;
	refuses(s, TOKR_INVALID, "key_bytes 12");
}

TEST(whose_head_is_impossible_is_found_out)
{
	static const uint64_t wrong[] = {
		1, 63, SERVER_DATA + 64, UINT64_C(1) << 63, UINT64_MAX - 63, 0};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		for (int mode = TOKR_READER; mode <= TOKR_TAP; mode++) {
			struct tokr_record rec;
			struct server *s;
			struct tokr *r;

			assert_int_equal(server_setup((void **)&s), 0);
			r = attached(s, mode);
			server_publish(s, 0);
			assert_int_equal(tokr_next(r, &rec, 0), 1);
			s->hdr->head = wrong[i]; /* 0: it went back */
			assert_int_equal(tokr_next(r, &rec, 100), TOKR_INVALID);
			tokr_detach(r);
			assert_int_equal(server_teardown((void **)&s), 0);
		}
	}
}

TEST(whose_tail_is_impossible_is_found_out_by_a_tap)
{
	static const uint64_t wrong[] = {65, SERVER_DATA, UINT64_MAX - 63, UINT64_MAX};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct tokr_record rec;
		struct server *s;
		struct tokr *r;

		assert_int_equal(server_setup((void **)&s), 0);
		r = attached(s, TOKR_TAP);
		server_publish(s, 0);
		server_publish(s, 0);
		s->hdr->tail = wrong[i];
		assert_int_equal(tokr_next(r, &rec, 100), TOKR_INVALID);
		tokr_detach(r);
		assert_int_equal(server_teardown((void **)&s), 0);
	}
}

FIXTURE_TEST(that_went_on_past_unread_ids_has_dropped_the_reader)
{
	struct tokr *r = attached(s, TOKR_READER);
	struct tokr_record rec;

	for (int i = 0; i < 3; i++)
		server_publish(s, 0);
	s->hdr->tail = s->hdr->head;
	assert_int_equal(tokr_next(r, &rec, 100), TOKR_DROPPED);
	tokr_detach(r);
}

FIXTURE_TEST(that_speaks_out_of_turn_is_parted_from)
{
	struct tokr *r = attached(s, TOKR_READER);
	struct tokr_record rec;

	assert_int_equal(send(s->reader, "hello", 5, 0), 5);
	assert_int_equal(tokr_next(r, &rec, -1), TOKR_DROPPED);
	tokr_detach(r);
}

TEST(that_is_not_there_is_said_so)
{
	struct tokr_error e;
	char path[300];

	assert_null(tokr_attach("/nonexistent/socket", TOKR_READER, 10, &e));
	assert_int_equal(e.code, TOKR_SYSTEM);
	assert_int_equal(e.sys_errno, ENOENT);
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_null(tokr_attach(path, TOKR_READER, 10, &e));
	assert_int_equal(e.sys_errno, ENAMETOOLONG);
}
