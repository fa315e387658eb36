/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The system calls of a process that has started. None of these starts a program, makes memory
 * executable, opens a raw socket, traces, mounts, or changes who the process is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <seccomp.h>

#include "sandbox.h"

#define CALLS_MAX 1024
#define INT_MASK UINT64_C(0xffffffff) /* of an argument of type int */
#define TYPE_MASK UINT64_C(0xf)	      /* of a socket, without SOCK_CLOEXEC and SOCK_NONBLOCK */

static const int usual[] = {
	/* descriptors */
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(pwrite64),
	SCMP_SYS(lseek),
	SCMP_SYS(close),
	SCMP_SYS(fcntl),
	SCMP_SYS(flock),
	SCMP_SYS(ioctl),
	SCMP_SYS(dup),
	SCMP_SYS(dup3),
	SCMP_SYS(pipe),
	SCMP_SYS(pipe2),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(memfd_create),
	SCMP_SYS(fstat),
	SCMP_SYS(fstatfs),
	SCMP_SYS(getdents64),
	SCMP_SYS(fchmod),
	/* paths, within what Landlock allows */
	SCMP_SYS(open),
	SCMP_SYS(openat),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(statfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(rmdir),
	SCMP_SYS(getcwd),
	/* waiting */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(epoll_create),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(eventfd2),
	SCMP_SYS(signalfd4),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(nanosleep),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(restart_syscall),
	/* sockets */
	SCMP_SYS(bind),
	SCMP_SYS(connect),
	SCMP_SYS(listen),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(shutdown),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	/* memory */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(mlock),
	SCMP_SYS(munlock),
	SCMP_SYS(mbind),
	SCMP_SYS(get_mempolicy),
	SCMP_SYS(set_mempolicy),
	SCMP_SYS(move_pages),
	SCMP_SYS(mincore),
	/* threads, signals, the machine */
	SCMP_SYS(futex),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(sched_yield),
	SCMP_SYS(sched_getaffinity),
	SCMP_SYS(sched_setaffinity),
	SCMP_SYS(getcpu),
	SCMP_SYS(membarrier),
	SCMP_SYS(gettid),
	SCMP_SYS(getpid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(tgkill),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(getrandom),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(getrlimit),
	SCMP_SYS(getrusage),
	SCMP_SYS(times),
};

/* (argument & mask) == value */
#define IS(arg, mask, value)                                                                       \
	{                                                                                          \
		arg, SCMP_CMP_MASKED_EQ, mask, value                                               \
	}

/* Allowed where the first `n` of these hold. */
static const struct {
	int call;
	unsigned int n;
	struct scmp_arg_cmp where[2];
} bounded[] = {
	{SCMP_SYS(mmap), 1, {IS(2, PROT_EXEC, 0)}}, {SCMP_SYS(mprotect), 1, {IS(2, PROT_EXEC, 0)}},
	{SCMP_SYS(clone), 1, {IS(0, CLONE_THREAD, CLONE_THREAD)}},
	{SCMP_SYS(socket), 1, {IS(0, INT_MASK, AF_UNIX)}},
	{SCMP_SYS(socket), 1, {IS(0, INT_MASK, AF_NETLINK)}},
	{SCMP_SYS(socket), 2, {IS(0, INT_MASK, AF_INET), IS(1, TYPE_MASK, SOCK_STREAM)}},
	{SCMP_SYS(socket), 2, {IS(0, INT_MASK, AF_INET), IS(1, TYPE_MASK, SOCK_DGRAM)}},
	{SCMP_SYS(socket), 2, {IS(0, INT_MASK, AF_INET6), IS(1, TYPE_MASK, SOCK_STREAM)}},
	{SCMP_SYS(socket), 2, {IS(0, INT_MASK, AF_INET6), IS(1, TYPE_MASK, SOCK_DGRAM)}},
	{SCMP_SYS(prctl), 1, {IS(0, INT_MASK, PR_SET_NAME)}},
	{SCMP_SYS(prctl), 1, {IS(0, INT_MASK, PR_GET_NAME)}},
	{SCMP_SYS(prlimit64), 1, {IS(2, UINT64_MAX, 0)}}, /* read only */
};

static _Atomic uint64_t n_denied;
static _Atomic uint64_t seen[CALLS_MAX / 64]; /* by the number of the call */
static int denied_fd;

/* Makes the call fail with EPERM: the kernel has not run it, and returns what is in the register.
 */
static void
on_denied(int number, siginfo_t *info, void *context)
{
	const unsigned int call = (unsigned int)info->si_syscall;
	ucontext_t *at = context;
	const int saved = errno;
	const uint64_t one = 1;

	if (info->si_code == SI_TKILL)
		return; /* threads.c asked, too long ago */
#if defined(__x86_64__)
	at->uc_mcontext.gregs[REG_RAX] = -EPERM;
#elif defined(__aarch64__)
	at->uc_mcontext.regs[0] = (uint64_t)-EPERM;
#else
#error "which register has the result of a system call?"
#endif
	atomic_fetch_add(&n_denied, 1);
	if (call < CALLS_MAX)
		atomic_fetch_or(&seen[call / 64], UINT64_C(1) << call % 64);
	(void)!write(denied_fd, &one, sizeof(one)); /* full: it was woken already */
	errno = saved;
}

static int
add_rules(scmp_filter_ctx f, const struct tokd_sandbox *s)
{
	int rc = 0;

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]) && rc == 0; i++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, usual[i], 0);
	for (size_t i = 0; i < s->n_calls && rc == 0; i++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, s->calls[i], 0);
	for (size_t i = 0; i < sizeof(bounded) / sizeof(bounded[0]) && rc == 0; i++) {
		rc = seccomp_rule_add_array(
			f, SCMP_ACT_ALLOW, bounded[i].call, bounded[i].n, bounded[i].where);
	}
	/* Its flags are in memory, where no filter sees them: the C library then calls clone(). */
	if (rc == 0)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return rc;
}

int
tokd_sandbox_filter(const struct tokd_sandbox *s)
{
	const struct sigaction report = {
		.sa_sigaction = on_denied, .sa_flags = SA_SIGINFO | SA_RESTART};
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_TRAP);
	int rc;

	if (f == NULL)
		return -ENOMEM;
	denied_fd = s->denied_fd;
	/* The C library wants it when a thread is cancelled: then, it could not be mapped. */
	dlopen("libgcc_s.so.1", RTLD_NOW);
	rc = add_rules(f, s);
	if (rc == 0)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	if (rc == 0)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
	if (rc == 0)
		rc = sigaction(SIGSYS, &report, NULL) == 0 ? 0 : -errno;
	if (rc == 0)
		rc = seccomp_load(f);
	seccomp_release(f);
	return rc;
}

uint64_t
tokd_sandbox_denied(void)
{
	return atomic_load(&n_denied);
}

bool
tokd_sandbox_next_denied(char name[TOKD_CALL_NAME])
{
	static uint64_t reported[CALLS_MAX / 64];

	for (unsigned int i = 0; i < CALLS_MAX / 64; i++) {
		const uint64_t calls = atomic_load(&seen[i]) & ~reported[i];
		char *text;

		if (calls == 0)
			continue;
		reported[i] |= calls & -calls;
		text = seccomp_syscall_resolve_num_arch(
			SCMP_ARCH_NATIVE, (int)(i * 64) + __builtin_ctzll(calls));
		snprintf(name, TOKD_CALL_NAME, "%s", text != NULL ? text : "of a later kernel");
		free(text);
		return true;
	}
	return false;
}
