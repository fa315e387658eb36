/* SPDX-License-Identifier: BSD-3-Clause */
/* Replaces the others in a build without libseccomp, for a check by hand: nothing is dropped. */
#include "sandbox.h"

int
tokd_sandbox_enter(const struct tokd_sandbox *s, const char **step)
{
	return 0;
}
