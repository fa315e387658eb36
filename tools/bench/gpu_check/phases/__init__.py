# SPDX-License-Identifier: BSD-3-Clause
"""The parts, by phase; D is for what comes later. See parts.py."""
