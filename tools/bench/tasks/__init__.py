# SPDX-License-Identifier: BSD-3-Clause
"""What tools/sweep can measure: a folder with a task.py each (doc/reference/sweeps.md)."""
