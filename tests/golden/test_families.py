# SPDX-License-Identifier: BSD-3-Clause
"""Families of byte-level BPE: ids equal the reference's, whole and however the text is cut.

With GPT-2's merges every pretokenizer is tried on any machine; the models' own files are used where
they are: those that a public package has, by tools/fetch-vocab, and others in a folder
../shared/vocab beside the repository (xz-compressed). $TOK_GOLDEN_TEXTS is how many texts each has;
doc/results/exactness.md says what was run with 100,000.
"""

import base64
import json
import lzma
import random
from pathlib import Path

import pytest
import texts
from texts import FETCHED

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared" / "vocab"

tokenizers = pytest.importorskip("tokenizers", reason="pip install tokenizers")
dpdk_tokd = pytest.importorskip("dpdk_tokd", reason="pip install ./python")

SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
UPPERS, LOWERS = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = CONTRACTION + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + SPACES
O200K = (
    f"{PREFIX}{UPPERS}*{LOWERS}+{CONTRACTION}?|{PREFIX}{UPPERS}+{LOWERS}*{CONTRACTION}?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES
)
REGEXES = {
    "llama3": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "o200k": [O200K],
    "tekken": [O200K.replace(CONTRACTION + "?", "").replace("{1,3}", "")],
    "deepseek": [
        r"\p{N}{1,3}",
        "[一-龥\u3040-ゟ゠-ヿ]+",
        (
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
            "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
            "\\s*[\r\n]+|\\s+(?!\\S)|\\s+"
        ),
    ],
}


def reference_of(path: Path, policy: str = "not-special"):
    """Hugging Face's ids of a tokenizer.json, special tokens taken as text unless "all" are not."""
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    tokenizer.encode_special_tokens = policy == "not-special"
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def pre_tokenizer(regexes: list[str]):
    made = tokenizers.pre_tokenizers
    splits = [made.Split(tokenizers.Regex(r), "isolated") for r in regexes]
    return made.Sequence([*splits, made.ByteLevel(add_prefix_space=False, use_regex=False)])


def test_gpt2(gpt2, gpt2_reference):
    texts.compare(gpt2, lambda text: gpt2_reference.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize("family", REGEXES)
def test_a_pretokenizer_with_gpt2_s_merges(family, gpt2_reference, tmp_path):
    model = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    model.pre_tokenizer = pre_tokenizer(REGEXES[family])
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    assert tokenizer.info.pretokenizer == family
    texts.compare(tokenizer, reference_of(path))


def compare_with_added(path: Path, policy: str) -> None:
    """With texts of the file's added tokens, whole and not, among the others."""
    names = [token["content"] for token in json.loads(path.read_text())["added_tokens"]]
    names = [*names[:40], *names[40:][-60:]]
    cut = [part for name in names for part in (name[1:], name[:-1]) if part]
    added = [*names, *random.Random(1).sample(cut, len(cut) // 4)]
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference_of(path, policy), added, tokens_in_text=policy)


def test_form_c_with_gpt2_s_merges(gpt2_reference, tmp_path):
    model = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    model.normalizer = tokenizers.normalizers.NFC()
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    texts.compare(dpdk_tokd.Tokenizer.load(str(path)), reference_of(path))


@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_added_tokens_as_gpt_neox_and_modernbert_have_them(policy, gpt2_reference, tmp_path):
    """On GPT-2's merges: runs of blanks, some of tabs, and a mask that takes the blank before
    it."""
    made = tokenizers.AddedToken
    model = tokenizers.Tokenizer.from_str(gpt2_reference.to_str())
    model.normalizer = tokenizers.normalizers.NFC()
    runs = [char * n for char in (" ", "\t") for n in range(2, 25)]
    model.add_tokens([made(run, normalized=True, special=False) for run in runs])
    model.add_tokens([made(n, normalized=True, special=False) for n in ("|||EMAIL_ADDRESS|||",)])
    special = ("<|padding|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]")
    model.add_special_tokens([made(n, normalized=False, special=True) for n in special])
    model.add_special_tokens([made("[MASK]", lstrip=True, normalized=False, special=True)])
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    compare_with_added(path, policy)


def unpacked(name: str, to: Path) -> Path:
    packed = SHARED / f"{name}.xz"
    if not packed.is_file():
        pytest.skip(f"{packed} is missing: it holds a vocabulary that no public package has")
    path = to / name
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    return path


@pytest.mark.parametrize("name", ["cl100k", "llama3"])
def test_a_tokenizer_json(name, tmp_path):
    path = unpacked(f"{name}.json", tmp_path)
    texts.compare(dpdk_tokd.Tokenizer.load(str(path)), reference_of(path))


@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_qwen3(policy, tmp_path):
    path = unpacked("qwen3.json", tmp_path)
    assert dpdk_tokd.Tokenizer.load(str(path)).info.n_added > 0
    compare_with_added(path, policy)


@pytest.mark.parametrize("policy", ["not-special", "all"])
def test_deepseek(policy):
    path = FETCHED / "deepseek.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab deepseek")
    assert dpdk_tokd.Tokenizer.load(str(path)).info.n_added > 0
    compare_with_added(path, policy)


def test_llama3_with_its_special_tokens(tmp_path):
    compare_with_added(unpacked("llama3.json", tmp_path), "all")


def test_tekken():
    """As mistral-common has it: tiktoken with the file's ranks, behind the special tokens."""
    tiktoken = pytest.importorskip("tiktoken", reason="pip install tiktoken")
    path = FETCHED / "tekken.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab tekken")
    document = json.loads(path.read_text())
    config = document["config"]
    special = config["default_num_special_tokens"]
    used = document["vocab"][: config["default_vocab_size"] - special]
    reference = tiktoken.Encoding(
        "tekken",
        pat_str=config["pattern"],
        mergeable_ranks={base64.b64decode(t["token_bytes"]): t["rank"] for t in used},
        special_tokens={},
    )
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, lambda text: [i + special for i in reference.encode_ordinary(text)])
    assert tokenizer.decode([1, special + 72]) == "<s>H"


def test_tekken_as_mistral_common_has_it():
    module = pytest.importorskip(
        "mistral_common.tokens.tokenizers.tekken", reason="pip install mistral-common"
    )
    path = FETCHED / "tekken.json"
    if not path.is_file():
        pytest.skip(f"{path} is missing: run tools/fetch-vocab tekken")
    reference = module.Tekkenizer.from_file(str(path))
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, lambda text: reference.encode(text, bos=False, eos=False))


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_a_tiktoken_file(name, tmp_path):
    tiktoken = pytest.importorskip("tiktoken", reason="pip install tiktoken")
    path = FETCHED / f"{name}.tiktoken"
    if not path.is_file():
        path = unpacked(f"{name}.tiktoken", tmp_path)
    ranks = {
        base64.b64decode(token): int(rank)
        for token, rank in (line.split() for line in path.read_bytes().splitlines() if line)
    }
    public = pytest.importorskip("tiktoken_ext.openai_public")
    loader, public.load_tiktoken_bpe = public.load_tiktoken_bpe, lambda *_, **__: ranks
    try:
        reference = tiktoken.Encoding(**getattr(public, name)())
    finally:
        public.load_tiktoken_bpe = loader
    tokenizer = dpdk_tokd.Tokenizer.load(str(path))
    texts.compare(tokenizer, reference.encode_ordinary)
    for text, special in reference._special_tokens.items():
        assert tokenizer.decode([special]) == text
