# SPDX-License-Identifier: BSD-3-Clause
"""The ARM side of a BlueField: what is different there."""
