# SPDX-License-Identifier: BSD-3-Clause
"""Which RDMA device, port and address (GID) are chosen by default, and why.

rank() is the rule of lib/gpu_sink/transport/verbs_rank.c; a test holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from ipaddress import IPv6Address

from .machine import Gid, Machine, Port, Rdma

TYPES = ("not known", "InfiniBand", "RoCE v1", "RoCE v2")  # enum tokg_gid_type


class Rank(IntEnum):
    """enum tokg_gid_rank, worst to best. Among equals the first is chosen."""

    NONE = 0
    ROCE_V1 = 1  # no IP header: no router passes it on
    LINK_LOCAL = 2  # from here on RoCE v2
    IPV6 = 3
    IPV4 = 4
    INFINIBAND = 5


RANK_TEXT = {
    Rank.ROCE_V1: "RoCE v1; no better GID",
    Rank.LINK_LOCAL: "RoCE v2 of a link-local address; no better GID",
    Rank.IPV6: "RoCE v2 of an IPv6 address; none of an IPv4 one",
    Rank.IPV4: "RoCE v2 of an IPv4 address",
    Rank.INFINIBAND: "InfiniBand",
}


def scope(address: IPv6Address) -> str:
    if address.ipv4_mapped is not None:
        return "IPv4"
    return "link-local" if address.is_link_local else "global"


def rank(gid: Gid) -> Rank:
    """Rank of a GID of an active port."""
    if gid.type == "InfiniBand":  # the others are aliases, as a rule of virtual functions
        return Rank.INFINIBAND if gid.index == 0 else Rank.NONE
    if gid.type == "RoCE v1":
        return Rank.ROCE_V1
    if gid.type == "RoCE v2":
        return {"IPv4": Rank.IPV4, "link-local": Rank.LINK_LOCAL, "global": Rank.IPV6}[gid.scope]
    return Rank.NONE


def has_address(port: Port) -> bool:
    """Has it a usable GID?"""
    return any(rank(gid) != Rank.NONE for gid in port.gids)


@dataclass
class Chosen:
    """The chosen device, port and GID, and the reason."""

    why: str
    rdma: Rdma
    port: Port
    gid: Gid
    rank: Rank


@dataclass
class NoneChosen:
    why: str


def choose(machine: Machine) -> Chosen | NoneChosen:
    usable = [d for d in machine.rdma if not d.iwarp and (d.opened or not machine.verbs_asked)]
    active = [(d, p) for d in usable for p in d.ports if p.state == "ACTIVE"]
    best: Chosen | None = None
    for device, port in active:
        for gid in port.gids:
            this = rank(gid)
            if this > (best.rank if best else Rank.NONE):
                why = f"the first active port with {RANK_TEXT[this]}"
                best = Chosen(why, device, port, gid, this)
    if best:
        return best
    # The reason that is nearest to working.
    if active:
        return NoneChosen("no active port has a GID of RoCE or InfiniBand")
    if usable:
        return NoneChosen("no port of an RDMA device is active")
    if machine.rdma:
        return NoneChosen("no RDMA device of InfiniBand or RoCE can be opened")
    return NoneChosen("no RDMA device")
