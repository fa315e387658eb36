# SPDX-License-Identifier: BSD-3-Clause
"""What tokd-load says of a trial: wrong ids, or a client that could not do its work."""

import socket

import numpy as np
import pytest

round_trips = pytest.importorskip("bench.load", reason="run tools/setup")
from bench.lab.net import Veth
from bench.texts import slices

MODES = {"tokd": "the socket failed", "tcp": "Connection refused"}


@pytest.mark.parametrize("mode", MODES)
def test_a_client_whose_socket_fails_says_nothing_of_ids(mode, tmp_path):
    if not round_trips.TOKD_LOAD.is_file():
        pytest.skip(f"{round_trips.TOKD_LOAD} is not built: run tools/setup")
    kind = socket.SOCK_STREAM if mode == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as nobodys:
        nobodys.bind(("127.0.0.1", 0))  # and nobody listens there when it is closed
        port = nobodys.getsockname()[1]
    ids = np.array([31373], dtype=np.uint32)
    sent = tmp_path / "texts.bin"
    slices.write(sent, [slices.Slice("english", "1", "hello", ids)] * (round_trips.WARM_UP + 5))
    # OSError: such a trial is failed, and tried again; WrongIds would refuse the whole row.
    with pytest.raises(OSError, match=MODES[mode]):
        round_trips.load(Veth("", "", "127.0.0.1", "", port), None, sent, None, mode)
