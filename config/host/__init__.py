# SPDX-License-Identifier: BSD-3-Clause
"""tokd-host: prepares a machine for dpdk-tokd. Standard library only: it runs before anything is
installed."""
