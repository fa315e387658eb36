# SPDX-License-Identifier: BSD-3-Clause
"""The packages of the corpora, and how much is taken of each."""

from dataclasses import dataclass
from typing import Literal

MB = 1_000_000
GUIDE = "usr/share/doc/installation-guide-amd64"
GUIDE_LICENCE = "GPL-2+"
REFERENCE_LICENCE = "GPL-2+"


@dataclass(frozen=True)
class Source:
    """Files of one package that go into one corpus, at most `most` bytes of them."""

    corpus: Literal["english", "code", "multi"]
    package: str
    glob: str  # below the root of the unpacked package
    kind: Literal["html", "text", "po", "tar"]
    licence: str
    most: int
    member: str = ""  # for "tar": suffix of the files inside
    skip: str = ""  # names that contain this are left out


@dataclass(frozen=True)
class Wheel:
    """A PyPI package that sources are taken from."""

    version: str
    sha256: str


WHEELS = {
    "Django": Wheel("4.2.16", "1ddc333a16fc139fd253035a1606bb24261951bbc3a6ca256717fa06cc41a898"),
}


def guide(language: str) -> Source:
    glob = f"{GUIDE}/{language}/*.html"
    return Source("multi", "installation-guide-amd64", glob, "html", GUIDE_LICENCE, MB)


def reference(language: str) -> Source:
    package = f"debian-reference-{language}"
    return Source("multi", package, "**/*.html", "html", REFERENCE_LICENCE, 2 * MB)


def catalogue(language: str) -> Source:
    glob = f"django/**/locale/{language}/LC_MESSAGES/*.po"
    return Source("multi", "Django", glob, "po", "BSD-3-Clause", MB)


SOURCES = (
    Source("english", "anarchism", "**/*.html", "html", "GPL-2+", 12 * MB, skip="changelog"),
    Source(
        "english", "fortunes", "usr/share/games/fortunes/*", "text", "BSD, in its own words below", 3 * MB,
        skip=".",
    ),
    Source("english", "debian-reference-en", "**/*.en.html", "html", REFERENCE_LICENCE, 2 * MB),
    Source("english", "developers-reference", "**/*.html", "html", "GPL-2+", 2 * MB),
    Source(
        "english", "installation-guide-amd64", f"{GUIDE}/en/*.html", "html", GUIDE_LICENCE, MB
    ),
    Source("code", "libpython3.11-stdlib", "**/*.py", "text", "PSF-2", 4 * MB),
    Source("code", "Django", "django/**/*.js", "text", "BSD-3-Clause", 2 * MB, skip=".min."),
    # Without Go's tables: they are lists of numbers, not typical source code.
    Source(
        "code", "golang-golang-x-net-dev", "**/*.go", "text", "BSD-3-Clause", 3 * MB,
        skip="tables",
    ),
    Source("code", "librust-tokio-dev", "**/*.rs", "text", "MIT", 3 * MB),
    Source("code", "libeigen3-dev", "**/*.h", "text", "MPL-2.0", 3 * MB),
    Source(
        "code", "newlib-source", "usr/src/newlib/*.tar.xz", "tar", "BSD and others", 5 * MB, ".c"
    ),
    *(reference(language) for language in ("de", "es", "fr", "ja", "zh-cn")),
    *(guide(language) for language in ("de", "es", "fr", "it", "pt", "sv", "cs", "vi")),
    *(guide(language) for language in ("el", "ru", "ja", "ko", "zh_CN")),
    *(catalogue(language) for language in ("ar", "bn", "fa", "he", "hi", "th", "uk")),
    Source(
        "multi", "fortunes-ru", "usr/share/games/fortunes/ru/*", "text", "GPL-2", 4 * MB,
        skip=".",
    ),
)  # fmt: skip
