# SPDX-License-Identifier: BSD-3-Clause
"""dpdk-tokd and tokd-load-dpdk over shared memory (net_memif), each on a core of its own."""
