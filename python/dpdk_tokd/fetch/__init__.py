# SPDX-License-Identifier: BSD-3-Clause
"""Vocabularies of public packages: `python -m dpdk_tokd.fetch NAME`."""
