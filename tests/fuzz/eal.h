/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* EAL without huge pages, devices, files or words of the appliance; once per program. */
void eal_start(void);
