/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_LOAD_PIN_H
#define TOKD_LOAD_PIN_H

/* Pin this thread to a CPU; negative: do nothing. Returns 0, or -1 after printing the error. */
int pin_to(int cpu);

#endif
