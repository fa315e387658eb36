# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's command line: the wanted words, and how each distribution sets them."""
