# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps: tests that a box asks for, run by turns, repeated, and told with what they lack."""
