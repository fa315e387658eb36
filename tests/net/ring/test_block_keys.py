# SPDX-License-Identifier: BSD-3-Clause
"""--block-keys: a router on this host reads the keys of a prompt while it arrives."""

import subprocess

import numpy as np
import pytest
from bench.programs import DPDK_TOKD
from dpdk_tokd import RingReader, Tokenizer
from dpdk_tokd.wire import PAYLOAD
from raw_client import RawStream
from samples import documents

MODEL = "openai-community/gpt2"


@pytest.mark.parametrize("scheme", ["llm-d", "vllm-sha256-cbor", "vllm-xxhash-cbor"])
def test_a_router_knows_the_first_blocks_before_the_prompt_ends(lab, start, gpt2, scheme):
    own = ("--block-keys", scheme, "--block-seed", "7", "--block-model", MODEL)
    appliance = start(*own)
    text = documents()[: 6 * PAYLOAD]
    expected = Tokenizer.block_keys(gpt2.encode(text), scheme, seed="7", model=MODEL)
    tail = subprocess.Popen(
        [DPDK_TOKD.with_name("tokd-tail"), "--socket", appliance.socket, "--keys", "--once"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with RingReader(appliance.socket, timeout=30) as reader, RawStream(lab) as stream, tail:
        assert tail.stderr.readline().startswith("tokd-tail: attached")
        (info,) = reader.rings
        assert (info.block_size, info.key_scheme) == (16, scheme)
        packets = stream.packets(text)
        stream.send(packets[0])
        ranges = []
        for r in reader:
            if not ranges:
                assert (r.first_block, r.last) == (0, False)
                assert np.array_equal(r.keys[0], expected[0])
                stream.finish(packets)  # only now
            assert len(r.keys) == 0 or r.first_block == sum(map(len, ranges))
            ranges.append(r.keys.copy())
            if r.last:
                break
        assert np.array_equal(np.concatenate(ranges), expected)
        printed = [line.partition(" keys=")[2].strip() for line in tail.stdout]
    as_hex = [f"{key:016x}" if scheme == "llm-d" else bytes(key).hex() for key in expected]
    assert ",".join(filter(None, printed)) == ",".join(as_hex)
    assert appliance.counters()["block_keys"] == len(expected)
