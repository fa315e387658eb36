/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_EAL_H
#define TESTS_FUZZ_EAL_H

/* EAL without huge pages, devices, files or words of the appliance; once per program. */
void eal_start(void);

#endif
