# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag: which path ids can take into a GPU's memory, and what prevents better ones.

gather, verbs and nvidia fill a Machine; paths, findings and judge work on that data alone; show
prints it. Imports only the standard library at start: what else is missing becomes a finding.
"""
