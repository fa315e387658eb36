# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo: dpdk-tokd and a conventional server, measured over the same kind of network."""
