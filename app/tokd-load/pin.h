/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOKD_LOAD_PIN_H
#define TOKD_LOAD_PIN_H

/* This thread to a CPU; below 0: it stays where it may. What is wrong is printed: -1. */
int pin_to(int cpu);

#endif
