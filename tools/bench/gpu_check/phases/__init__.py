# SPDX-License-Identifier: BSD-3-Clause
"""The parts, by phase. See parts.py."""
