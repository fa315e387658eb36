# SPDX-License-Identifier: BSD-3-Clause
"""A disk with a small Debian that boots as an installed machine does: by its own GRUB, from its own
files.

Made without a mount or a loop device: GRUB's two stages are where they look for each other anyway,
boot.img in the first sector and core.img right behind it, and mke2fs fills the one partition.
"""

import os
import shutil
import struct
import subprocess
import sysconfig
from pathlib import Path

import debian
import initramfs
import programs

PROGRAMS = ("app/dpdk-tokd", "app/tokd-gpu")
SECTOR = 512
START = 2048  # first sector of the partition: 1 MiB, and room for core.img
DISK_MB = 640
CORE_MODULES = ["biosdisk", "part_msdos", "ext2", "normal", "configfile"]
BOOT_CODE = 440  # bytes of boot.img that are not partition table
LINUX = 0x83
BOOTABLE = 0x80
MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4")
LATER_MODULES = ("vfio_iommu_type1", "vfio_pci")  # on the disk: modprobe loads them

# As a machine has it that Debian's installer left: a main file, and no words of ours.
GRUB_DEFAULT = """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX="console=ttyS0 no_timer_check panic=-1 intel_iommu=on iommu=pt"
GRUB_TERMINAL=serial
GRUB_SERIAL_COMMAND="serial --unit=0 --speed=115200"
GRUB_DISABLE_OS_PROBER=true
"""
# What our programs import, compiled as Debian does at installation: a start takes a quarter of the
# time.
PYTHON = [
    f"/usr/lib/python3.11{folder}"
    for folder in (
        "", "/asyncio", "/collections", "/concurrent", "/concurrent/futures", "/ctypes", "/email",
        "/encodings", "/html", "/http", "/importlib", "/importlib/metadata", "/json", "/logging",
        "/multiprocessing", "/re", "/unittest", "/urllib", "/wsgiref",
    )
]  # fmt: skip
# tokd-gateway with what it needs, as pip installed it here, for the same Python.
GATEWAY = (
    *("click", "dpdk_tokd", "dpdk_tokd-*.dist-info", "h11", "httptools", "msgspec", "numpy"),
    *("numpy.libs", "prometheus_client", "uvicorn", "uvloop"),
)
GATEWAY_PROGRAM = """\
#!/usr/bin/python3
from dpdk_tokd.gateway.cli import main

raise SystemExit(main())
"""
LIBRARIES = "usr/lib/x86_64-linux-gnu"
GRUB_SCRIPTS = ("00_header", "10_linux", "40_custom")
# Until the guest has made its own.
GRUB_CFG = """\
set root=(hd0,msdos1)
linux /boot/{kernel} root=/dev/vda1 console=ttyS0 no_timer_check panic=-1 intel_iommu=on iommu=pt quiet
initrd /boot/{initrd}
boot
"""
STEP_UNIT = """\
[Unit]
Description=What the test does in this boot
After=tokd-host.service

[Service]
Type=oneshot
ExecStart=/bin/sh /vm-step.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0

[Install]
WantedBy=multi-user.target
"""
# What nothing here waits for: each is seconds in a guest. Of generators fstab's is enough. No udev:
# it would look at all devices, which takes longest of all.
MASKED = [
    "systemd-udevd.service", "systemd-udev-trigger.service", "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket", "getty.target", "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service", "systemd-random-seed.service",
    "systemd-journal-flush.service", "systemd-modules-load.service", "systemd-sysusers.service",
    "systemd-tmpfiles-setup-dev.service", "systemd-tmpfiles-clean.timer",
    "systemd-user-sessions.service", "systemd-logind.service", "systemd-initctl.socket",
    "kmod-static-nodes.service", "modprobe@.service", "proc-sys-fs-binfmt_misc.automount",
    "sys-fs-fuse-connections.mount", "sys-kernel-config.mount", "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount", "dev-mqueue.mount", "cryptsetup.target", "veritysetup.target",
    "integritysetup.target"
]  # fmt: skip
GENERATORS = ("systemd-fstab-generator",)


def image(vocabulary: Path) -> Path:
    """The disk's file: of this checkout's config/ and dpdk-tokd, in Debian's packages. Not to be
    written: to be copied."""
    root, built = debian.root("amd64"), programs.amd64(*PROGRAMS)
    here = Path(__file__).resolve().parent
    scripts = ("init", "root.sh", "said.sh", "grub.sh", "units.sh")
    sources = [
        here / "disk.py",
        here / "initramfs.py",
        *(initramfs.GUEST / name for name in scripts),
    ]
    sources += [
        p for p in (debian.REPOSITORY / "config").rglob("*") if p.is_file() and p.suffix != ".pyc"
    ]
    sources += [*(built.build / name for name in PROGRAMS), vocabulary]
    sources += (debian.REPOSITORY / "python/dpdk_tokd/ops").rglob("*.py")
    sources += _packages().glob("dpdk_tokd-*.dist-info/RECORD")
    inputs = debian.digest(root.name, [(str(p), p.read_bytes()) for p in sorted(sources)])
    return debian.made("disk", inputs, lambda path: _make(path, root, built, vocabulary))


def _make(path: Path, root: Path, built: programs.Programs, vocabulary: Path) -> None:
    tree = path.with_name("disk-tree")
    debian.remove(tree)
    try:
        # Hard links: what is written below is new, never a file of the root.
        shutil.copytree(root, tree, symlinks=True, copy_function=os.link, ignore=_ignored)
        _configure(tree, root)
        _install(tree, built, vocabulary)
        core = _core(tree)
        path.unlink(missing_ok=True)
        with path.open("wb") as f:
            f.write(_first_sector((tree / "usr/lib/grub/i386-pc/boot.img").read_bytes()))
            f.write(core)
            f.truncate(DISK_MB << 20)
        blocks = ((DISK_MB << 20) - START * SECTOR) // 4096
        command = [
            "mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-O", "^has_journal,^metadata_csum"
        ]  # fmt: skip
        command += [
            "-E",
            f"offset={START * SECTOR},lazy_itable_init=1",
            "-d",
            str(tree),
            str(path),
            str(blocks),
        ]
        _run(*command)
    finally:
        debian.remove(tree)


def _ignored(folder: str, names: list[str]) -> list[str]:
    return [n for n in names if (n == "modules" and folder.endswith("/lib")) or n == "__pycache__"]


def _run(*command: str, **options: object) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


def _first_sector(boot: bytes) -> bytes:
    """GRUB's first stage and a table of one partition, which takes the rest of the disk."""
    sectors = (DISK_MB << 20) // SECTOR - START
    entry = struct.pack(
        "<B3sB3sII", BOOTABLE, b"\xfe\xff\xff", LINUX, b"\xfe\xff\xff", START, sectors
    )
    table = entry + bytes(3 * 16)
    return boot[:BOOT_CODE] + bytes(446 - BOOT_CODE) + table + b"\x55\xaa"


def _core(tree: Path) -> bytes:
    """GRUB's second stage: finds /boot/grub on the partition."""
    command = ["grub-mkimage", "-O", "i386-pc", "-p", "(hd0,msdos1)/boot/grub", "-o", "/core.img"]
    _run("chroot", str(tree), *command, *CORE_MODULES)
    core = tree / "core.img"
    data = core.read_bytes()
    core.unlink()
    if len(data) > (START - 1) * SECTOR:
        raise RuntimeError(
            f"core.img has {len(data)} bytes, {(START - 1) * SECTOR} fit before the partition"
        )
    return data


def _configure(tree: Path, root: Path) -> None:
    """What the packages' scripts would have done, as far as this machine needs it; and tokd-host,
    installed."""
    for name in ("passwd", "group"):
        shutil.copy(tree / f"usr/share/base-passwd/{name}.master", tree / f"etc/{name}")
    _write(tree, "etc/machine-id", "6d1e8b6f4a9c4e0f9b1d2c3a4f5e6071\n")
    _write(tree, "etc/hostname", "tokd-vm\n")
    _write(tree, "etc/default/grub", GRUB_DEFAULT)
    (tree / "usr/bin/awk").symlink_to("mawk")
    (tree / "var/run").rmdir()
    (tree / "var/run").symlink_to("/run")
    _run("chroot", str(tree), "python3", "-m", "compileall", "-q", "-l", *PYTHON)
    units = tree / "etc/systemd/system"
    _write(tree, "etc/systemd/system/vm-step.service", STEP_UNIT)
    # An emulated CPU on a busy machine: a gateway has taken more than the usual 90 s to start.
    _write(tree, "etc/systemd/system.conf.d/slow.conf", "[Manager]\nDefaultTimeoutStartSec=900\n")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "vm-step.service").symlink_to("../vm-step.service")
    for name in MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    for path in (tree / "usr/lib/systemd/system-generators").iterdir():
        if path.name not in GENERATORS:
            path.unlink()
    (units / "default.target").unlink(missing_ok=True)
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    _write(tree, "vm-step.sh", (initramfs.GUEST / "grub.sh").read_text())
    for name in ("said.sh", "units.sh"):
        _write(tree, name, (initramfs.GUEST / name).read_text())

    for path in (tree / "etc/grub.d").iterdir():
        if path.name not in GRUB_SCRIPTS:
            path.unlink()  # no other system is on the disk; each takes seconds here

    release = debian.modules(root).name
    shutil.copytree(tree / "usr/lib/grub/i386-pc", tree / "boot/grub/i386-pc")
    names = {"kernel": f"vmlinuz-{release}", "initrd": f"initrd.img-{release}"}
    _write(tree, "boot/grub/grub.cfg", GRUB_CFG.format(**names))
    start = initramfs.Initramfs(root)
    start.module(*MODULES)
    start.file("run.sh", (initramfs.GUEST / "root.sh").read_bytes())
    start.write(tree / "boot" / names["initrd"])
    _modules(tree, root, release)


def _modules(tree: Path, root: Path, release: str) -> None:
    files = {path.stem.replace("-", "_"): path for path in debian.modules(root).rglob("*.ko")}
    wanted = list(LATER_MODULES)
    folder = tree / "lib/modules" / release
    folder.mkdir(parents=True)
    while wanted:
        path = files[wanted.pop().replace("-", "_")]
        if not (folder / path.name).exists():
            shutil.copy(path, folder)
            wanted += initramfs.depends(path)
    _run("chroot", str(tree), "depmod", release)


def _packages() -> Path:
    """Of the Python that runs this."""
    return Path(sysconfig.get_path("purelib"))


def _install_gateway(tree: Path) -> None:
    """As doc/user/gateway.md says."""
    folder = tree / "usr/local/lib/python3.11/dist-packages"
    for name in GATEWAY:
        for path in _packages().glob(name):
            shutil.copytree(path, folder / path.name)
    _write(tree, "usr/local/bin/tokd-gateway", GATEWAY_PROGRAM)
    (tree / "usr/local/bin/tokd-gateway").chmod(0o755)
    prefix = Path(sysconfig.get_path("data"))
    for name, to in (
        ("lib/systemd/system/tokd-gateway.service", "etc/systemd/system"),
        ("share/dpdk-tokd/default/tokd-gateway.default", "usr/local/share/dpdk-tokd/default"),
    ):
        shutil.copy(prefix / name, tree / to)


def _install(tree: Path, built: programs.Programs, vocabulary: Path) -> None:
    """As doc/user/host.md says; of the programs two, with what of its libraries no
    package here has."""
    command = [
        "meson",
        "install",
        "-C",
        str(debian.BUILD),
        "--no-rebuild",
        "--quiet",
        "--destdir",
        str(tree),
    ]
    _run(*command, cwd=debian.REPOSITORY)
    for path in (tree / "usr/local/bin").iterdir():
        if path.name != "tokd-exporter":
            path.unlink()  # for another CPU
    for name in PROGRAMS:
        shutil.copy2(built.build / name, tree / "usr/local/bin")
    _install_gateway(tree)
    folder = tree / "usr/local/share/dpdk-tokd/vocab"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(vocabulary, folder / f"gpt2{vocabulary.suffix}")
    libraries = tree / LIBRARIES
    drivers = libraries / f"dpdk/pmds-{programs.ABI}.0"  # where EAL looks
    drivers.mkdir(parents=True)
    for name in programs.CARD_DRIVERS:
        (drivers / f"{name}.so").symlink_to(f"../../{name}.so.{programs.ABI}")
    missing = [f"{name}.so.{programs.ABI}" for name in programs.CARD_DRIVERS]
    missing.append("libgcc_s.so.1")
    missing += [n for name in PROGRAMS for n in initramfs.reads(built.build / name)[1]]
    while missing:
        name = missing.pop()
        if not (libraries / name).exists() and not name.startswith("ld-linux"):
            shutil.copy(initramfs.find(name, built.libraries), libraries / name)
            missing += initramfs.reads(libraries / name)[1]


def _write(tree: Path, name: str, text: str) -> None:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
