# SPDX-License-Identifier: BSD-3-Clause
"""pyverbs for tokd-diag, without a device. FAKE has letters for what goes wrong."""

import errno
import os
import sys
from types import SimpleNamespace
from typing import Self

for part in ("cq", "device", "mr", "pd", "pyverbs_error", "qp"):
    sys.modules[f"pyverbs.{part}"] = sys.modules[__name__]


def fails(letter: str) -> bool:
    return letter in os.environ.get("FAKE", "")


class PyverbsError(Exception):
    def __init__(self, text: str, error_code: int = -1) -> None:
        super().__init__(text)
        self.error_code = error_code


def refuse(letter: str) -> None:
    if fails(letter):
        raise PyverbsError("refused", errno.ENOMEM)


def get_device_list() -> list:
    if fails("L"):
        raise PyverbsError("Failed to get devices list")
    return [SimpleNamespace(name=b"mlx5_1")]


class Closing:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        pass


class Context(Closing):
    def __init__(self, name: str) -> None:
        assert name == "mlx5_1"
        if fails("O"):
            raise PyverbsError("Failed to open device", errno.EACCES)

    def query_device(self) -> SimpleNamespace:
        refuse("q")
        return SimpleNamespace(max_qp_wr=32768)

    def query_port(self, port: int) -> SimpleNamespace:
        refuse("p")
        return SimpleNamespace(active_mtu=99 if fails("m") else 4, max_mtu=5)


class PD:
    def __init__(self, context: Context) -> None:
        refuse("P")


class CQ:
    def __init__(self, context: Context, cqe: int) -> None:
        refuse("C")


class DmaBufMR:
    def __init__(self, pd: PD, length: int, access: int, dmabuf: int) -> None:
        assert dmabuf == -1
        raise PyverbsError("", errno.EOPNOTSUPP if fails("D") else errno.EBADF)


class QPCap:
    def __init__(self, wr: int, rwr: int, sge: int, rsge: int, inline: int) -> None:
        self.inline = inline


class QPInitAttr:
    def __init__(self, qp_type: int, scq: CQ, rcq: CQ, cap: QPCap) -> None:
        assert qp_type == 2
        self.max_inline_data = cap.inline


class QP(Closing):
    def __init__(self, pd: PD, attr: QPInitAttr) -> None:
        if attr.max_inline_data > (32 if fails("I") else 300):
            raise PyverbsError("Failed to create QP", errno.EINVAL)
        attr.max_inline_data = 316  # rounded up, as drivers do
