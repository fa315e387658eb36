# SPDX-License-Identifier: BSD-3-Clause
"""Properties of RDMA devices that only an open device has, by pyverbs."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Any

from .machine import Machine, Note, Rdma

INLINE_MOST = 1024  # bytes; a slot's header needs 64
# Of <infiniband/verbs.h>. pyverbs has them too, in modules that its versions name differently.
QPT_RC = 2
ACCESS_LOCAL_WRITE = 1


def _mtu_bytes(mtu: int) -> int | None:
    return 128 << mtu if 1 <= mtu <= 5 else None


def _why(error: Any) -> str:
    code = getattr(error, "error_code", -1)
    return os.strerror(code) if code > 0 else str(error)


class _Pyverbs:
    """The parts of pyverbs that are used. Raises ImportError."""

    def __init__(self) -> None:
        from pyverbs.cq import CQ
        from pyverbs.device import Context, get_device_list
        from pyverbs.mr import DmaBufMR
        from pyverbs.pd import PD
        from pyverbs.pyverbs_error import PyverbsError
        from pyverbs.qp import QP, QPCap, QPInitAttr

        self.cq, self.pd, self.qp, self.dmabuf_mr = CQ, PD, QP, DmaBufMR
        self.cap, self.init_attr = QPCap, QPInitAttr
        self.context, self.device_list = Context, get_device_list
        self.error = PyverbsError


def _ask_ports(v: _Pyverbs, context: Any, rdma: Rdma) -> None:
    for port in rdma.ports:
        try:
            attr = context.query_port(port.port)
        except (v.error, OverflowError):
            continue
        port.mtu, port.mtu_max = _mtu_bytes(attr.active_mtu), _mtu_bytes(attr.max_mtu)
        port.mtu_from = "verbs"


def _ask_dmabuf(v: _Pyverbs, pd: Any, rdma: Rdma) -> None:
    """Without dma-buf the kernel or driver refuses the call; with it, the invalid descriptor."""
    try:
        v.dmabuf_mr(pd, os.sysconf("SC_PAGESIZE"), ACCESS_LOCAL_WRITE, dmabuf=-1)
    except v.error as error:
        code = getattr(error, "error_code", -1)
        if code == errno.EBADF:
            rdma.dmabuf = True
        elif code in (errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.ENOSYS):
            rdma.dmabuf = False
        rdma.dmabuf_why = f"ibv_reg_dmabuf_mr without a file descriptor: {_why(error)}"


def _ask_inline(v: _Pyverbs, context: Any, pd: Any, rdma: Rdma) -> None:
    """Found by trying sizes: there is no attribute for it."""
    cq = v.cq(context, 16)
    size = INLINE_MOST
    while size >= 64:
        cap = v.cap(16, 1, 1, 1, size)
        attr = v.init_attr(qp_type=QPT_RC, scq=cq, rcq=cq, cap=cap)
        try:
            v.qp(pd, attr).close()
        except v.error:
            size //= 2
            continue
        rdma.max_inline = attr.max_inline_data or None
        return


def _ask_device(v: _Pyverbs, rdma: Rdma) -> None:
    try:
        context = v.context(name=rdma.name)
    except v.error as error:
        rdma.open_error = _why(error)
        return
    rdma.opened = True
    with context:
        with contextlib.suppress(v.error):
            rdma.max_qp_wr = max(0, context.query_device().max_qp_wr) or None
        _ask_ports(v, context, rdma)
        try:
            pd = v.pd(context)
            _ask_dmabuf(v, pd, rdma)
            _ask_inline(v, context, pd, rdma)
        except v.error:
            pass  # dma-buf and inline size stay unknown


def ask(machine: Machine) -> None:
    """This machine only."""
    try:
        v = _Pyverbs()
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "pyverbs"
        machine.verbs_note = Note(
            "RDMA devices were not asked: "
            + (f"python3-pyverbs is not installed for {sys.executable}" if missing else str(error)),
            "apt-get install python3-pyverbs, and run tokd-diag with /usr/bin/python3 or in an "
            "environment with --system-site-packages",
        )
        return
    machine.verbs_asked = True
    try:
        known = [device.name.decode() for device in v.device_list()]
    except v.error as error:
        remedy = "modprobe ib_uverbs; is rdma-core installed?"
        machine.verbs_note = Note(f"libibverbs: {_why(error)}", remedy)
        return
    for rdma in machine.rdma:
        if rdma.name in known:
            _ask_device(v, rdma)
        else:
            rdma.open_error = "libibverbs does not know it"
