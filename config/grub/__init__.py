# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's command line: what it should say, and how each distribution is told."""
