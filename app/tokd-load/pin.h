/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/* Pin this thread to a CPU; negative: do nothing. Returns 0, or -1 after printing the error. */
int pin_to(int cpu);
