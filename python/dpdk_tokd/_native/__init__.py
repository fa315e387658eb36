# SPDX-License-Identifier: BSD-3-Clause
"""C libraries of the repository, bound to Python. Each module is for one folder beside this one."""
