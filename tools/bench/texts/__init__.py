# SPDX-License-Identifier: BSD-3-Clause
"""Texts with the ids they must give: corpora, vocabularies, slices, the reference."""
