/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "sandbox.h"

static uint64_t kept;
static int rules; /* of Landlock; -1: none */

/* Runs in a signal handler: system calls only. */
static int
drop(void)
{
	struct __user_cap_header_struct who = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -errno;
	/* Without CAP_SETPCAP the bounding set stays, which no_new_privs makes harmless. */
	for (unsigned long c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++) {
		if ((kept >> c & 1) == 0)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	}
	if (syscall(SYS_capget, &who, data) != 0)
		return -errno;
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (uint32_t)(kept >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (rules >= 0 && syscall(SYS_landlock_restrict_self, rules, 0) != 0)
		return -errno;
	return syscall(SYS_capset, &who, data) == 0 ? 0 : -errno;
}

int
tokd_sandbox_enter(const struct tokd_sandbox *s, const char **step)
{
	int n_silent, rc = 0;

	kept = s->capabilities;
	rules = -1;
	*step = "making rules for files (Landlock)";
	if (s->folders != NULL && tokd_sandbox_has_landlock()) {
		rules = tokd_sandbox_rules(s->folders, s->n_folders);
		if (rules < 0)
			return rules;
	}
	*step = "restricting every thread (capset, landlock_restrict_self)";
	n_silent = tokd_each_thread(drop);
	if (rules >= 0)
		close(rules);
	if (n_silent < 0)
		return n_silent;
	*step = "forbidding core dumps (PR_SET_DUMPABLE)";
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -errno;
	*step = "filtering system calls (seccomp)";
	if (s->filter)
		rc = tokd_sandbox_filter(s);
	return rc != 0 ? rc : n_silent;
}
