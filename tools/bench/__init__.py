# SPDX-License-Identifier: BSD-3-Clause
"""How the project is measured. Imports run downwards only, by this list:

demo, sweep      tools/demo and tools/sweep
tasks            what tools/sweep can measure, a folder each
load, captures   the one way to ask a server, by tokd-load; and to replay texts without clients
baseline         the conventional servers that dpdk-tokd is compared with
appliance        the one way to start dpdk-tokd and tokd-gpu
lab, texts       the machine, the wires, the neighbours; corpora, slices, reference ids
task, samples    what a task is and how it reports
log, process, programs

Beside them gpu_check is tools/gpu-check, which needs nothing of the rest, and native/ holds the
programs in C that measure.
"""
