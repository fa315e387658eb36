# SPDX-License-Identifier: BSD-3-Clause
"""The tasks of tools/sweep: a folder with a task.py each (doc/reference/sweeps.md)."""
