# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host: a machine made ready for dpdk-tokd. Python's own library alone: it runs before anything is installed."""
