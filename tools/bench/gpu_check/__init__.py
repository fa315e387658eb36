# SPDX-License-Identifier: BSD-3-Clause
"""tools/gpu-check: what can only be checked and measured on a GPU.

Python's standard library alone, 3.9 or newer: a machine with a GPU may have nothing else of ours.
`phases/` holds the parts, each file registering its own (parts.py); a new file there is a new part.
numpy and PyTorch are imported by the parts that need them, and no other.
"""
