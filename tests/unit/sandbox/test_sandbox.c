/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process with several threads may do in the sandbox; in a child, as there is no way back.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <seccomp.h>

#include "sandbox.h"
#include "test.h"

#define READERS 4

static int go[2];

/* In a child, an exit code is all that a check can say: its line. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition,        \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void
in_child(void (*what)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		what();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void *
read_one(void *arg)
{
	char c;

	return read(go[0], &c, 1) == 1 ? arg : NULL;
}

static void *
nothing(void *arg)
{
	return arg;
}

/* The field of a thread's status, in hexadecimal. */
static uint64_t
status_of(const char *task, const char *field)
{
	char path[300], line[256];
	uint64_t value = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/status", task);
	f = fopen(path, "re");
	CHECK(f != NULL);
	while (value == UINT64_MAX && fgets(line, sizeof(line), f) != NULL) {
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtoull(line + strlen(field), NULL, 16);
	}
	fclose(f);
	return value;
}

static uint32_t
check_threads(uint64_t capabilities)
{
	DIR *tasks = opendir("/proc/self/task");
	uint32_t n = 0;

	CHECK(tasks != NULL);
	for (struct dirent *d = readdir(tasks); d != NULL; d = readdir(tasks)) {
		if (d->d_name[0] == '.')
			continue;
		CHECK((status_of(d->d_name, "CapPrm:") & ~capabilities) == 0);
		CHECK((status_of(d->d_name, "CapEff:") & ~capabilities) == 0);
		CHECK(status_of(d->d_name, "NoNewPrivs:") == 1);
		CHECK(status_of(d->d_name, "Seccomp:") == 2);
		n++;
	}
	closedir(tasks);
	return n;
}

static void
check_denied(void)
{
	static const char *const names[] = {"mmap", "socket", "clone", "execve"};
	char *const argv[] = {"true", NULL};
	char name[TOKD_CALL_NAME];

	for (int again = 0; again < 2; again++) {
		CHECK(execv("/bin/true", argv) == -1 && errno == EPERM);
		CHECK(socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == EPERM);
		CHECK(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP) == -1 &&
			errno == EPERM);
		CHECK(socket(AF_INET6, SOCK_RAW, IPPROTO_UDP) == -1 && errno == EPERM);
		CHECK(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
				MAP_FAILED &&
			errno == EPERM);
		CHECK(fork() == -1 && errno == EPERM);
	}
	CHECK(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0) >= 0);
	CHECK(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0 || errno == EAFNOSUPPORT);
	CHECK(tokd_sandbox_denied() == 12);
	for (int i = 0; i < 4; i++) {
		bool known = false;

		CHECK(tokd_sandbox_next_denied(name));
		for (int k = 0; k < 4; k++)
			known |= strcmp(names[k], name) == 0;
		CHECK(known);
	}
	CHECK(!tokd_sandbox_next_denied(name));
}

static void
everything(void)
{
	const int calls[] = {SCMP_SYS(getppid), SCMP_SYS(prctl)};
	const uint64_t kept = UINT64_C(1) << 12; /* CAP_NET_ADMIN */
	pthread_t reader[READERS], later;
	const char *step;
	uint64_t woken;
	void *got;
	struct tokd_sandbox s = {.capabilities = kept,
		.filter = true,
		.calls = calls,
		.n_calls = 2,
		.denied_fd = eventfd(0, EFD_NONBLOCK)};

	CHECK(pipe(go) == 0);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_create(&reader[i], NULL, read_one, &s) == 0);
	CHECK(tokd_sandbox_enter(&s, &step) == 0);
	CHECK(check_threads(kept) == READERS + 1);
	CHECK(prctl(PR_GET_DUMPABLE) == 0);
	CHECK(getppid() > 0);
	/* Calls that were interrupted go on, and threads can be started. */
	CHECK(write(go[1], "1234", READERS) == READERS);
	for (int i = 0; i < READERS; i++)
		CHECK(pthread_join(reader[i], &got) == 0 && got == &s);
	CHECK(pthread_create(&later, NULL, nothing, &s) == 0);
	CHECK(pthread_join(later, &got) == 0 && got == &s);
	CHECK(read(s.denied_fd, &woken, sizeof(woken)) == -1 && errno == EAGAIN);
	check_denied();
	CHECK(read(s.denied_fd, &woken, sizeof(woken)) == sizeof(woken) && woken == 12);
}

TEST(every_thread_keeps_what_is_needed_and_no_more)
{
	in_child(everything);
}

static void
with_a_deaf_thread(void)
{
	const struct tokd_sandbox s = {.capabilities = 0};
	sigset_t all, before;
	pthread_t deaf;
	const char *step;

	CHECK(pipe(go) == 0);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	CHECK(pthread_create(&deaf, NULL, read_one, NULL) == 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	CHECK(tokd_sandbox_enter(&s, &step) == 1);
}

TEST(threads_that_block_all_signals_are_counted)
{
	in_child(with_a_deaf_thread);
}
