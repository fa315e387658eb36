/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "pin.h"

int
pin_to(int cpu)
{
	cpu_set_t one;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) == 0)
		return 0;
	fprintf(stderr, "%s: --cpu %d: %s; give one that this process may use\n",
		program_invocation_short_name, cpu, strerror(errno));
	return -1;
}
