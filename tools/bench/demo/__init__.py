# SPDX-License-Identifier: BSD-3-Clause
"""tools/demo: dpdk-tokd and the conventional way, side by side over the same kind of wire."""
