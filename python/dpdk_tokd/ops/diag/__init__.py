# SPDX-License-Identifier: BSD-3-Clause
"""tokd-diag: by which path ids can get into a GPU's memory, and what stands in the way.

gather, verbs and nvidia fill a Machine; ways, findings and judge work on that data alone; show
prints it. Imports only the standard library at start: what else is missing becomes a finding.
"""
