# SPDX-License-Identifier: BSD-3-Clause
"""Benchmark suites: run interleaved and repeated, with tables and an HTML report."""
