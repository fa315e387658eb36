# SPDX-License-Identifier: BSD-3-Clause
"""The ids of a text that went over the wire are the reference's, whatever the wire did to it."""

import random
import threading

import numpy as np
import pytest
from dpdk_tokd import Client
from faulty_wire import Faults, FaultyWire
from netlab import SERVER_IP
from samples import TEXTS, documents, random_bytes

SIZES = [1, 5, 100, 1375, 1376, 1377, 2752, 20_000, 100_000, 700_000]


def real_text(size: int) -> bytes:
    text = documents()
    return (text * (size // len(text) + 1))[:size]


@pytest.fixture(scope="module")
def expected(gpt2_reference):
    def encode(text: bytes) -> list[int]:
        decoded = text.decode("utf-8", "replace")
        return gpt2_reference.encode(decoded, add_special_tokens=False).ids

    return encode


@pytest.fixture
def client(lab, appliance):
    with lab.call(lambda: Client(SERVER_IP)) as client:
        yield client


@pytest.mark.parametrize("size", SIZES)
def test_ids_of_real_text_equal_the_reference(client, expected, size):
    assert client.tokenize(real_text(size)).tolist() == expected(real_text(size))


@pytest.mark.parametrize("name", TEXTS)
def test_ids_of_awkward_text_equal_the_reference(client, expected, name):
    assert client.tokenize(TEXTS[name]).tolist() == expected(TEXTS[name])


def test_empty_text_has_no_ids(client):
    ids = client.tokenize("")
    assert ids.dtype == np.uint32 and len(ids) == 0


def test_many_texts_one_after_the_other(client, expected):
    rng = random.Random(1)
    texts = [random_bytes(rng, rng.randint(0, 3000)) for _ in range(100)]
    assert [ids.tolist() for ids in client.tokenize_many(texts)] == [*map(expected, texts)]


def test_several_clients_at_once(lab, appliance, expected):
    text = real_text(60_000)
    results = {}

    def work(i: int) -> None:
        with lab.call(lambda: Client(SERVER_IP)) as client:
            results[i] = [client.tokenize(text[i * 1000 :]).tolist() for _ in range(3)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: [expected(text[i * 1000 :])] * 3 for i in range(6)}


def test_streamed_ids_come_in_order_and_before_the_end(client, expected):
    text = 10 * real_text(100_000)  # of many windows: ids come while text is yet to be sent
    pieces = list(client.stream(text))
    assert np.concatenate(pieces).tolist() == expected(text)
    assert len(pieces) > 10


@pytest.mark.parametrize(
    ("faults", "sizes"),
    [
        # Texts long enough for more than ten faults.
        pytest.param(Faults(drop_replies=0.2), (0, 10, 1500, *[100_000] * 3), id="replies lost"),
        pytest.param(Faults(drop=0.5), (0, 10, 1500, 20_000), id="half lost"),
    ],
)
def test_faults_of_the_wire_do_not_change_ids(lab, appliance, expected, faults, sizes):
    with FaultyWire(lab, faults, seed=5) as faulty:
        where = ("127.0.0.1", faulty.port)
        with lab.call(lambda: Client(*where, timeout=30, stream=True)) as client:
            for size in sizes:
                assert client.tokenize(real_text(size)).tolist() == expected(real_text(size))
        assert faulty.dropped > 10
