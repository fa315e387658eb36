# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx's settings for tools/gen/api."""

from importlib.metadata import version as version_of
from typing import TypeVar

from dpdk_tokd._native import libtok

for name in ("AddedTokens", "Buffer", "Ids", "Offsets", "Side", "TokensInText"):
    setattr(libtok, name, TypeVar(name))  # which the stub alone has

project = "dpdk_tokd"
release = version = version_of("dpdk-tokd")
extensions = ["sphinx.ext.autodoc"]
default_role = "any"  # `Tokenizer` in a docstring is a link
suppress_warnings = ["ref.any"]  # `text` is none
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
html_theme = "alabaster"
