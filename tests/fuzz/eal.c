/* SPDX-License-Identifier: BSD-3-Clause */
#include <rte_common.h>
#include <rte_eal.h>

#include "eal.h"
#include "fuzz.h"

void
eal_start(void)
{
	char *args[] = {"fuzz", "--no-huge", "--no-pci", "--no-shconf", "-m", "256", "-l", "0",
		"--no-telemetry", "--log-level=lib.eal:error", "--log-level=user1:error",
		"--log-level=tokd.*:emerg", NULL};

	MUST(rte_eal_init(RTE_DIM(args) - 1, args) >= 0);
}
