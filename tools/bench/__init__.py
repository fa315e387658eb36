# SPDX-License-Identifier: BSD-3-Clause
"""How the project is measured. Imports run downwards only:

demo, sweep      tools/demo and tools/sweep
gpu_check        tools/gpu-check, which needs nothing of the rest
tasks            what tools/sweep can measure, a folder each
task, samples    what a task is and how it reports
appliance, load  the one way to start an appliance, and to ask it by tokd-load
baseline         the conventional servers that it is compared with
lab, texts       the machine, the wires, the neighbours; corpora, slices, reference ids
process, programs, say
"""
