/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the filter of system calls and the rules for files in a build without libseccomp, for a
 * check by hand of a service that uses neither.
 */
#include <errno.h>

#include "sandbox.h"

int
tokd_sandbox_filter(const struct tokd_sandbox *s)
{
	return -ENOSYS;
}

bool
tokd_sandbox_has_landlock(void)
{
	return false;
}

int
tokd_sandbox_rules(const struct tokd_folder *folder, size_t n)
{
	return -ENOSYS;
}
