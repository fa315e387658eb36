# SPDX-License-Identifier: BSD-3-Clause
"""Vocabulary files of a repository of huggingface.co, through huggingface_hub and its cache."""

from __future__ import annotations

from .config import FILES

# What libtok reads, in the order of what says most; of a pair the first is what is loaded.
CHOICES = (
    ("tokenizer.json",),
    ("vocab.json", "merges.txt"),
    ("vocab.txt",),
    ("tekken.json",),
    ("tokenizer.model",),
)


def vocabulary_of(
    name: str,
    *,
    revision: str | None,
    token: str | bool | None,
    cache_dir: str | None,
    local_files_only: bool,
) -> str:
    """Path of a vocabulary of the repository `name`, downloaded if it is not in the cache, with
    what is beside it."""
    try:
        from huggingface_hub import hf_hub_download, snapshot_download
        from huggingface_hub.constants import HF_HUB_OFFLINE
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise ImportError(
            "Tokenizer.from_pretrained needs the package huggingface_hub: "
            "pip install 'dpdk-tokd[hub]' or pip install huggingface_hub"
        ) from error
    offline = local_files_only or HF_HUB_OFFLINE

    def path_of(file: str) -> str:
        return hf_hub_download(
            name,
            file,
            revision=revision,
            token=token,
            cache_dir=cache_dir,
            local_files_only=local_files_only,
        )

    for files in CHOICES:
        try:
            first, *_ = [path_of(file) for file in files]
            break
        except LocalEntryNotFoundError:
            if not offline:  # the network failed: what else is in the cache may not be the same
                raise
        except EntryNotFoundError:
            pass
    else:
        where = "the local cache of " if offline else ""
        files_looked_for = ", ".join(" with ".join(files) for files in CHOICES)
        raise FileNotFoundError(
            f"{where}{name} (revision {revision or 'main'}) has none of {files_looked_for}"
        )
    snapshot_download(
        name,
        revision=revision,
        token=token,
        cache_dir=cache_dir,
        local_files_only=local_files_only,
        allow_patterns=[*FILES],
    )
    return first
