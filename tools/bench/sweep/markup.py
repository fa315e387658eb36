# SPDX-License-Identifier: BSD-3-Clause
"""HTML with automatic escaping of everything that is not HTML already."""

from html import escape


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def join(*parts: str) -> Html:
    return Html("".join(p if isinstance(p, Html) else escape(p) for p in parts))


def el(name: str, *inside: str, **attributes: str) -> Html:
    """An element. `class_` is the attribute class, `aria_label` is aria-label."""
    given = "".join(
        f' {n.rstrip("_").replace("_", "-")}="{escape(v)}"' for n, v in attributes.items() if v
    )
    return Html(f"<{name}{given}>{join(*inside)}</{name}>")
