/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Least privilege after set-up: for the whole process, however many threads it has by then. Threads
 * and files that are open keep working; what is asked for later is bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKD_CALL_NAME 32 /* bytes of the name of a system call */

enum tokd_access {
	TOKD_READ,
	TOKD_WRITE,	  /* and read, make and remove files */
	TOKD_REMOVE_DIRS, /* folders in it that are empty, and nothing else */
};

/* A folder and what is below it, or a file. */
struct tokd_folder {
	const char *path;
	enum tokd_access access;
};

struct tokd_sandbox {
	uint64_t capabilities; /* kept if the process has them: bits by the numbers of capability.h
				*/
	bool filter;	       /* the system calls, too: */
	const int *calls;      /* allowed beyond the usual: SCMP_SYS() */
	size_t n_calls;
	int denied_fd;			   /* an eventfd that is written when a call is denied */
	const struct tokd_folder *folders; /* what may still be opened; NULL: everything */
	size_t n_folders;
};

/*
 * No new privileges, no capabilities but those kept, no core dump; with `folders`, if the kernel
 * has Landlock, nothing else is opened, and fails with EACCES; with `filter`, only the system
 * calls of syscalls.c. A call that is not among them fails with EPERM and is counted. Not undone.
 * Returns how many threads were not reached and keep their capabilities, or -errno with the step
 * that failed in *step.
 */
int tokd_sandbox_enter(const struct tokd_sandbox *s, const char **step);

/* Calls denied so far. Any thread. */
uint64_t tokd_sandbox_denied(void);

/* The name of a call that was denied, each once. One thread at a time. False: no other one. */
bool tokd_sandbox_next_denied(char name[TOKD_CALL_NAME]);

/*
 * threads.c: runs `fn`, which must be async-signal-safe, in every thread. Returns how many did not
 * answer, as those that block all signals, or -errno.
 */
int tokd_each_thread(int (*fn)(void));

/* Whether the kernel has Landlock. */
bool tokd_sandbox_has_landlock(void);

/* folders.c: the rules, as a descriptor, or -errno. */
int tokd_sandbox_rules(const struct tokd_folder *folder, size_t n);

/* syscalls.c */
int tokd_sandbox_filter(const struct tokd_sandbox *s);
