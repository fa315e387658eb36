# SPDX-License-Identifier: BSD-3-Clause
"""Telemetry of a running appliance: tokd-top, tokd-exporter, and the class that both use. diag:
tokd-diag."""
