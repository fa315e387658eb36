# SPDX-License-Identifier: BSD-3-Clause
"""An error about an argument has its name and what is expected."""

from typing import Any

import dpdk_tokd
import pytest
from dpdk_tokd import bulk, hf

Call = tuple[str, type[Exception], str]
CALLS: list[Call] = [
    ("Tokenizer.load(5)", TypeError, "name_or_path: expected a path as str or os.PathLike, got int"),
    ("Tokenizer.load('gpt2', algo=5)", TypeError, "algo: expected a str or None, got int"),
    ("Tokenizer.load('gpt2', search_path=5)", TypeError, "search_path: expected a path"),
    ("Tokenizer.from_pretrained(None)", TypeError, "name: expected a path"),
    ("Tokenizer.block_keys([1], 'llm-d', True)", ValueError, "block_size: True: expected a number"),
    ("tok.encode_batch(5)", TypeError, "texts: expected a list of texts, got int"),
    ("tok.encode_batch('a')", TypeError, "texts: expected a list of texts, got one text"),
    ("tok.encode_batch({'a'})", TypeError, "texts: expected a list of texts, got set"),
    ("tok.encode_batch(['a'], threads='a')", ValueError, "threads: 'a': expected a number from 1 to 64"),
    ("tok.encode_batch(['a'], threads=65)", ValueError, "threads: 65: expected a number from 1 to 64"),
    ("tok.encode_batch(['a'], padding=True, pad_id=True)", ValueError, "pad_id: True: expected"),
    ("tok.encode_batch(['a']).to_torch(padding=True, pad_id=0)", ValueError, 'padding: True: expected False, "longest" or'),
    ("tok.id_to_token('a')", TypeError, "id: expected a number, got str"),
    ("tok.token(None)", TypeError, "id: expected a number, got NoneType"),
    ("as_hf('gpt2')", TypeError, "tokenizer: expected what Tokenizer.load makes, got str"),
    ("as_tiktoken('gpt2')", TypeError, "tokenizer: expected what Tokenizer.load makes, got str"),
    ("as_tiktoken(tok, 5)", TypeError, "name: expected a str or None, got int"),
    ("HFTokenizer.from_str(b'{}')", TypeError, "json: expected a str, got bytes"),
    ("HFTokenizer.from_buffer('{}')", TypeError, "buffer: expected bytes, got str"),
    ("HFTokenizer.from_file(None)", TypeError, "path: expected a path"),
    ("tok.as_hf().save(1)", TypeError, "path: expected a path as str or os.PathLike, got int"),
    ("tok.as_hf().encode_batch(5)", TypeError, "input: expected a list of texts, got int"),
    ("tok.as_hf().decode('ab')", TypeError, "ids: expected a list of numbers, got 'ab'"),
    ("tok.as_hf().add_tokens('a')", TypeError, "tokens: expected a list of tokens, got one token"),
    ("tok.as_hf().enable_truncation('a')", TypeError, "max_length: expected a number, got str"),
    ("tok.as_hf().enable_truncation(-1)", OverflowError, "max_length: -1: expected a number from 0"),
    ("tok.as_hf().enable_padding(pad_token=5)", TypeError, "pad_token: expected a str, got int"),
    ("tok.as_hf().encode('a').char_to_token('a')", TypeError, "char_pos: expected a number, got str"),
    ("Client(None)", TypeError, "host: expected a str, got NoneType"),
    ("Client('::1', 'a')", ValueError, "port: 'a': expected a number from 1 to 65535"),
    ("Client('::1', vocab='a')", ValueError, "vocab: 'a': expected a number from 0 to 4294967295"),
    ("Client('::1', timeout='a')", ValueError, "timeout: 'a': expected seconds above 0, at most 86400"),
    ("Client('::1', mtu=2**40)", ValueError, "mtu: 1099511627776: expected a number from 0 to 65535"),
    ("Client('::1').tokenize_many(5)", TypeError, "texts: expected a list of texts, got int"),
    ("Client('::1').tokenize_many([], 'a')", ValueError, "in_flight: 'a': expected a number from 1"),
    ("Client('::1').generate('a', '1')", ValueError, "max_tokens: '1': expected a number from 1"),
    ("Client('::1').generate(5, 1)", TypeError, "text: expected str or bytes, got int"),
    ("AsyncClient(5)", TypeError, "host: expected a str, got int"),
    ("AsyncClient('::1', in_flight=None)", ValueError, "in_flight: None: expected a number from 1"),
    ("RingReader(5)", TypeError, "socket_path: expected a path"),
    ("RingReader('/none', timeout='a')", ValueError, "timeout: 'a': expected seconds from 0"),
    ("EmbeddingReader(5)", TypeError, "path: expected a path"),
    ("EmbeddingReader('/none', timeout=-1)", ValueError, "timeout: -1: expected seconds from 0"),
    ("Pipeline('a', 'b')", ValueError, """task: 'a': expected "feature-extraction" or "text-cl"""),
    ("Pipeline(5)", TypeError, "model: expected a path as str or os.PathLike, got int"),
    ("Pipeline('a', batch_size='b')", ValueError, "batch_size: 'b': expected a number from 1"),
    ("Pipeline('a', server=5)", TypeError, 'server: expected a str, "host" or "host:port", got int'),
    ("encode_files(5, [], 'out')", TypeError, "vocab: expected a path"),
    ("encode_files('gpt2', 'a.txt', 'out')", TypeError, "inputs: expected a list of paths, got one path"),
    ("encode_files('gpt2', [5], 'out')", TypeError, r"inputs\[0\]: expected a path"),
    ("encode_files('gpt2', [], None)", TypeError, "out: expected a path"),
    ("encode_files('gpt2', [], 'out', separator=5)", TypeError, "separator: expected a str or None"),
    ("encode_files('gpt2', [], 'out', append=True)", ValueError, "append: True: expected a number"),
    ("encode_files('gpt2', [], 'out', tokens_in_text=5)", ValueError, "tokens_in_text: 5: expected"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), CALLS, ids=[call for call, _, _ in CALLS])
def test_an_argument_is_named(gpt2: Any, call: str, kind: type[Exception], says: str) -> None:
    call = call.replace("'gpt2', [", f"{gpt2.info.path!r}, [")
    names = vars(hf) | vars(bulk) | {name: getattr(dpdk_tokd, name) for name in dpdk_tokd.__all__}
    with pytest.raises(kind, match=f"^{says}"):
        eval(call, names | {"tok": gpt2})
