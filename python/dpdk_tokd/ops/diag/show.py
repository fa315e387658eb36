# SPDX-License-Identifier: BSD-3-Clause
"""The report, as text and as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from .gids import Chosen
from .judge import Verdict
from .machine import NOT_SHOWN, Gpu, Machine, Pci, Port, Rdma, System, bytes_text
from .paths import GpuPaths, Reason
from .pci import between

GIDS_SHOWN = 16

# ---- JSON


def _plain(thing: Any) -> dict[str, Any]:
    return {key: value for key, value in asdict(thing).items() if key not in NOT_SHOWN}


def _paths_json(p: GpuPaths) -> list[dict[str, Any]]:
    return [{"path": w.path, "kind": w.kind, "works": w.works} | _plain(w) for w in p.paths]


def _gpu(m: Machine, gpu: Gpu, p: GpuPaths) -> dict[str, Any]:
    to = {d.name: between(d.pci, gpu.pci).text for d in m.rdma}
    return _plain(gpu) | {"to": to, "paths": _paths_json(p), "taken": p.paths[p.taken].path}


def _chosen(v: Verdict) -> dict[str, Any]:
    c = v.chosen
    if not isinstance(c, Chosen):
        return {"device": None, "why": c.why}
    return {"device": c.rdma.name, "port": c.port.port, "gid": c.gid.index, "why": c.why}


def as_json(m: Machine, v: Verdict, want: str | None, version: str) -> str:
    report = {
        "version": version,
        "good": v.is_good(want),
        "rdma": [_plain(d) for d in m.rdma],
        "verbs_note": m.verbs_note.value if m.verbs_note else None,
        "chosen": _chosen(v),
        "gpus": [_gpu(m, gpu, p) for gpu, p in zip(m.gpus, v.paths, strict=False)],
        "cuda_note": m.cuda_note.value if m.cuda_note else None,
        "cuda_version": m.cuda_version,
        "role": v.role,
        "role_why": v.role_why,
        "system": _plain(m.system),
        "paths": _paths_json(v.best),
        "taken": v.best.paths[v.best.taken].path,
        "findings": [_plain(finding) for finding in v.findings],
    }
    return json.dumps(report, indent=2) + "\n"


# ---- text


def _known(value: bool | None) -> str:
    return "not known" if value is None else "yes" if value else "no"


def _where(pci: Pci | None) -> str:
    if pci is None:
        return ", not on PCI"
    text = f", PCI {pci.address}"
    if pci.driver:
        text += f", driver {pci.driver}"
    if pci.numa_node >= 0:
        text += f", NUMA node {pci.numa_node}"
    if pci.iommu_group:
        text += f", IOMMU group {pci.iommu_group} ({pci.iommu_type or 'type not known'})"
    return text


def _port(p: Port, v: Verdict) -> Iterator[str]:
    words = [p.state or "state not known", p.link_layer or "link not known"]
    words.append(p.rate or "rate not known")
    if p.mtu:
        words.append(f"MTU {p.mtu}" + (f" of {p.mtu_max}" if p.mtu_max else ""))
    if p.lid:
        words.append(f"LID {p.lid}")
    yield f"    port {p.port}: {', '.join(words)}"
    for i, g in enumerate(p.gids):
        taken = isinstance(v.chosen, Chosen) and g is v.chosen.gid
        if i < GIDS_SHOWN or taken:
            netdev = f", {g.netdev}" if g.netdev else ""
            lead = "->" if taken else "  "
            yield f"    {lead} GID {g.index}: {g.gid} {g.type}, {g.scope}{netdev}"
    if len(p.gids) > GIDS_SHOWN:
        yield f"       {len(p.gids)} GIDs in all: see --json"


def _rdma(d: Rdma, v: Verdict) -> Iterator[str]:
    firmware, model = d.firmware or "not known", d.model or "model not known"
    yield f"  {d.name}: firmware {firmware}, {model}{_where(d.pci)}"
    if d.opened:
        why = f" ({d.dmabuf_why})" if d.dmabuf_why else ""
        yield (
            f"    max_qp_wr {d.max_qp_wr or 0}, inline {d.max_inline or 0} bytes, "
            f"dma-buf {_known(d.dmabuf)}{why}"
        )
    for port in d.ports:
        yield from _port(port, v)


def _gpu_lines(m: Machine, g: Gpu) -> Iterator[str]:
    yield f"  {g.name}{_where(g.pci)}"
    words = [f"BAR1 {bytes_text(g.bar1) if g.bar1 else 'not known'}"]
    if g.bar1_free is not None:
        words[0] += f" ({bytes_text(g.bar1_free)} free)"
    if g.major:
        words.append(f"compute capability {g.major}.{g.minor}")
    words += [f"dma-buf {_known(g.dmabuf)}", f"order of RDMA's writes: {g.write_order}"]
    yield f"    {', '.join(words)}"
    for d in m.rdma:
        yield f"    to {d.name}: {between(d.pci, g.pci).text}"


def _system(s: System) -> Iterator[str]:
    modules = {"mlx5_ib": s.mlx5_ib, "nvidia": s.nvidia, "peer memory": s.peer_memory}
    modules["gdrdrv"] = s.gdrdrv
    loaded = [name for name, here in modules.items() if here] or [f"none of {', '.join(modules)}"]
    yield f"  kernel {s.kernel or 'not known'}; modules: {' '.join(loaded)}"
    if s.nvidia_version:
        yield f"  NVIDIA driver: {s.nvidia_version}"
    limit = bytes_text(s.memlock) if isinstance(s.memlock, int) else s.memlock or "not known"
    free = "; CAP_IPC_LOCK: the limit does not apply" if s.memlock_free else ""
    yield f"  locked memory: {limit}{free}"
    options = f", {s.iommu_options}" if s.iommu_options else ""
    yield f"  IOMMU: {'in use' if s.iommu else 'none'}{options}"
    for h in s.huge_pages:
        yield f"  node {h.node}: {h.total} huge pages of {bytes_text(h.kb << 10)}, {h.free} free"
    for mount in s.hugetlbfs:
        yield f"  hugetlbfs at {mount}"


def _reason(r: Reason) -> str:
    return f"{r.thing}: {r.value}" + (f"; {r.remedy}" if r.remedy else "")


def _paths(v: Verdict, p: GpuPaths) -> Iterator[str]:
    gpu = f", {p.gpu.name} at {p.gpu.pci.address}" if p.gpu and len(v.paths) > 1 else ""
    program = "tokd-gpu" if v.role == "agent" else "dpdk-tokd"
    yield f"Paths for {program} ({v.role_why}){gpu}, best first"
    verdicts = {"no": "not possible", "yes": "possible", "not known": "possible as far as is known"}
    for i, w in enumerate(p.paths):
        yield f"{'->' if i == p.taken else '  '} {w.path}: {verdicts[w.works]}"
        yield from (f"     no: {_reason(r)}" for r in w.against)
        yield from (f"     not known: {_reason(r)}" for r in w.not_known)


def _lines(m: Machine, v: Verdict) -> Iterator[str]:
    c = v.chosen
    yield "RDMA devices"
    if not m.rdma:
        yield (
            "  none. A NIC with RDMA (ConnectX, BlueField) with its driver (mlx5_ib) gives one; "
            "to try it in\n  software: rdma link add rxe0 type rxe netdev NETDEV"
        )
    for d in m.rdma:
        yield from _rdma(d, v)
    if isinstance(c, Chosen):
        yield f"  -> {c.rdma.name} port {c.port.port} GID {c.gid.index}: {c.why}"
    elif m.rdma:
        yield f"  -> none: {c.why}"
    yield "GPUs"
    if not m.gpus:
        yield "  no NVIDIA GPU on the PCI bus"
    for gpu in m.gpus:
        yield from _gpu_lines(m, gpu)
    if m.cuda_note:
        yield f"  CUDA: {m.cuda_note.value}; {m.cuda_note.remedy}"
    yield "System"
    yield from _system(m.system)
    for paths in v.paths:
        yield from _paths(v, paths)
    yield "Findings"
    if not v.findings:
        yield "  none"
    for finding in v.findings:
        yield ("  PROBLEM " if finding.problem else "  note ") + _reason(finding)


def as_text(m: Machine, v: Verdict) -> str:
    return "\n".join(_lines(m, v)) + "\n"
