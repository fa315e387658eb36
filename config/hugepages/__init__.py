# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages: how many on which NUMA node, and where they are mounted."""
