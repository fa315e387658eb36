/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/*
 * Called before rte_eal_init. When the process ends, the files of its --file-prefix are removed,
 * also those of a killed process, unless another process uses them. EAL 22.11 only detaches from
 * them, and removes some at the next start with that prefix. With --in-memory there are none.
 */
void tokd_eal_files_remove_at_exit(void);
