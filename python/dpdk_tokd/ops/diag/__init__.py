# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag: can ids get into a GPU's memory from this machine, by which path, and what is in the way.

gather, verbs and nvidia fill a Machine; ways, findings and judge work on that data alone; show
prints it. Imports only the standard library at start: what else is missing becomes a finding.
"""
