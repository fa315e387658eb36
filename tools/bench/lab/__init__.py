# SPDX-License-Identifier: BSD-3-Clause
"""The machine that is measured on: namespaces, huge pages, host settings, neighbours."""
