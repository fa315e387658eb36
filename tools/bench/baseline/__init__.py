# SPDX-License-Identifier: BSD-3-Clause
"""The conventional way: tokenizer libraries behind kernel sockets."""
