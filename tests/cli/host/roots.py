# SPDX-License-Identifier: BSD-3-Clause
"""Prepared machines, as files below a folder: enough of /etc, /boot, /proc and /sys of each
kind."""

import os
import shutil
import subprocess
from pathlib import Path

GRUB = """\
# If you change this file, run 'update-grub' afterwards to update
GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
"""
# Somebody's own, with words that are ours, spread over both, in quotes of both kinds.
HAND_EDITED = """\
GRUB_DEFAULT=saved
GRUB_CMDLINE_LINUX_DEFAULT='quiet splash isolcpus=2,3 default_hugepagesz=2M'
GRUB_CMDLINE_LINUX="console=ttyS0,115200 hugepages=1024 intel_iommu=on iommu=pt nohz_full=2-3 rootflags=subvol=@*"
# hugepages=9 in a comment
"""
CLOUD = 'GRUB_CMDLINE_LINUX_DEFAULT="console=tty1 console=ttyS0"\n'
BLUEFIELD = """\
GRUB_TIMEOUT=2
GRUB_CMDLINE_LINUX="rw crashkernel=auto console=hvc0 console=ttyAMA0 earlycon=pl011,0x13010000 fixrttc"
"""
BLS = """\
title Red Hat Enterprise Linux (5.14.0-{n}.el9.x86_64) 9.4 (Plow)
version 5.14.0-{n}.el9.x86_64
linux /vmlinuz-5.14.0-{n}.el9.x86_64
initrd /initramfs-5.14.0-{n}.el9.x86_64.img
options root=/dev/mapper/rhel-root ro crashkernel=1G-4G:192M rhgb quiet isolcpus=5
grub_users $grub_users
"""
# What grubby does with --update-kernel=ALL --remove-args --args, no more: to the entries and to
# what kernels to come are started with. A word to remove that has a value is removed with that
# value alone. The real one is a shell script of RHEL's that Debian has no package of.
GRUBBY = r"""#!/bin/busybox sh
for a in "$@"; do case $a in
--remove-args=*) remove=${a#*=} ;; --args=*) add=${a#*=} ;; --update-kernel=ALL) ;; *) exit 1 ;;
esac; done
change() {
	new=
	for w in $1; do
		keep=1
		for r in $remove; do
			[ "$w" = "$r" ] && keep=
			case $r in *=*) ;; *) [ "${w%%=*}" = "$r" ] && keep= ;; esac
		done
		for a in $add; do [ "${w%%=*}" = "${a%%=*}" ] && keep=; done
		[ -n "$keep" ] && new="$new $w"
	done
	new="$new $add"
	new=${new# }
	new=${new% }
}
for f in /boot/loader/entries/*.conf; do
	change "$(/bin/busybox sed -n 's/^options //p' $f)"
	/bin/busybox sed -i "s|^options .*|options $new|" $f
done
change "$(/bin/busybox cat /etc/kernel/cmdline)"
echo "$new" >/etc/kernel/cmdline
change "$(/bin/busybox sed -n 's/^GRUB_CMDLINE_LINUX="\(.*\)"/\1/p' /etc/default/grub)"
/bin/busybox sed -i "s|^GRUB_CMDLINE_LINUX=.*|GRUB_CMDLINE_LINUX=\"$new\"|" /etc/default/grub
"""
# The lines of Debian's by which it is known; upstream's has no such folder.
GRUB_MKCONFIG = """\
#!/bin/sh
if test -f ${sysconfdir}/default/grub ; then
  . ${sysconfdir}/default/grub
fi
for x in ${sysconfdir}/default/grub.d/*.cfg ; do
  if [ -e "${x}" ]; then
    . "${x}"
  fi
done
"""
# As grub-mkconfig writes it on a machine with a memory test and a second system.
GRUB_CFG = """\
### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian GNU/Linux' --class debian {{
\tlinux\t/vmlinuz-6.1.0-test root=/dev/vda1 ro quiet {words}
\tinitrd\t/initrd.img-6.1.0-test
}}
### END /etc/grub.d/10_linux ###

### BEGIN /etc/grub.d/20_memtest86+ ###
menuentry "Memory test (memtest86+x64.bin)" {{
\tlinux\t/memtest86+x64.bin
}}
### END /etc/grub.d/20_memtest86+ ###

### BEGIN /etc/grub.d/30_os-prober ###
menuentry 'Fedora Linux (on /dev/sdb1)' {{
\tlinux /boot/vmlinuz-5.10 root=/dev/sdb1 ro
}}
### END /etc/grub.d/30_os-prober ###
"""
# Of tuned 2.20, what matters here; 2.25 gives no rcu_nocbs.
TUNED_PROFILE = """\
[main]
summary=Optimize for CPU partitioning
include=network-latency

[variables]
include=/etc/tuned/cpu-partitioning-variables.conf
cmd_isolcpus=${f:regex_search_ternary:${no_balance_cores}:\\s*[0-9]: isolcpus=${no_balance_cores}:}

[bootloader]
cmdline_cpu_part=+nohz=on${cmd_isolcpus} nohz_full=${isolated_cores} rcu_nocbs=${isolated_cores} \
tuned.non_isolcpus=${not_isolated_cpumask} intel_pstate=disable nosoftlockup
"""
TUNED_VARIABLES = """\
# Examples:
# isolated_cores=2,4-7
#
# Reserve 1 core per socket for housekeeping, isolate the rest.
isolated_cores=${f:calc_isolated_cores:1}

# To disable the kernel load balancing in certain isolated CPUs:
# no_balance_cores=5-10
"""
# As tuned-adm has the service do: GRUB boots with what stands in bootcmdline, as $tuned_params.
TUNED_ADM = r"""#!/bin/busybox sh
[ "$1" = profile ] && [ $# -gt 1 ] || exit 1
echo "$@" >> /tuned-adm.log
shift; echo "$@" > /etc/tuned/active_profile
of() { /bin/busybox sed -n "s/^$1=//p" /etc/tuned/cpu-partitioning-variables.conf; }
isolated_cores=$(of isolated_cores)
no_balance_cores=$(of no_balance_cores)
case $isolated_cores in *calc*) isolated_cores=1-7 ;; esac
add="nohz=on${no_balance_cores:+ isolcpus=$no_balance_cores} nohz_full=$isolated_cores"
/bin/busybox grep -q rcu_nocbs /usr/lib/tuned/cpu-partitioning/tuned.conf && add="$add rcu_nocbs=$isolated_cores"
echo "TUNED_BOOT_CMDLINE=\"skew_tick=1 $add tuned.non_isolcpus=e1 intel_pstate=disable nosoftlockup\"" > /etc/tuned/bootcmdline
"""
CONFIG = "\n".join(
    f"CONFIG_{name}=y" for name in ("CPU_ISOLATION", "NO_HZ_FULL", "RCU_NOCB_CPU", "HUGETLBFS")
)


def put(root: Path, name: str, text: str, mode: int = 0o644) -> None:
    path = root / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def kernel(root: Path, cpus: int = 8, cmdline: str = "ro quiet", threads: int = 1) -> None:
    """A running kernel's files: CPUs, huge pages on two nodes, governors, interrupts."""
    put(root, "/proc/cmdline", cmdline + "\n")
    put(root, "/proc/sys/kernel/random/boot_id", "0b8d1b1e-7d4c-4a5e-9f5b-3d1f0b8a9c01\n")
    put(root, "/proc/mounts", "proc /proc proc rw 0 0\n")
    put(root, "/proc/sys/kernel/osrelease", "6.1.0-test\n")
    put(root, "/boot/config-6.1.0-test", CONFIG + "\n")
    for name in ("present", "online"):
        put(root, f"/sys/devices/system/cpu/{name}", f"0-{cpus - 1}\n")
    for name in ("isolated", "nohz_full"):
        put(root, f"/sys/devices/system/cpu/{name}", "\n")
    for cpu in range(cpus):
        folder = f"/sys/devices/system/cpu/cpu{cpu}"
        core = cpu % (cpus // threads)
        pair = ",".join(str(core + i * (cpus // threads)) for i in range(threads))
        put(root, f"{folder}/topology/thread_siblings_list", pair + "\n")
        put(root, f"{folder}/cpufreq/scaling_governor", "schedutil\n")
        put(root, f"{folder}/cpufreq/scaling_available_governors", "performance schedutil\n")
    put(root, "/proc/meminfo", f"MemTotal:       {64 << 20} kB\nMemFree:        {60 << 20} kB\n")
    for node in (0, 1):
        put(
            root,
            f"/sys/devices/system/node/node{node}/meminfo",
            f"Node {node} MemTotal:       {32 << 20} kB\n",
        )
    for size in ("2048kB", "1048576kB"):
        put(root, f"/sys/kernel/mm/hugepages/hugepages-{size}/nr_hugepages", "0\n")
        for node in (0, 1):
            folder = f"/sys/devices/system/node/node{node}/hugepages/hugepages-{size}"
            put(root, f"{folder}/nr_hugepages", "0\n")
    put(root, "/proc/irq/default_smp_affinity", "ff\n")
    for irq in (9, 24, 25):
        put(root, f"/proc/irq/{irq}/smp_affinity_list", f"0-{cpus - 1}\n")


def debian(root: Path) -> None:
    kernel(root)
    put(root, "/etc/default/grub", GRUB)
    put(root, "/usr/sbin/grub-mkconfig", GRUB_MKCONFIG, 0o755)


def ubuntu(root: Path) -> None:
    kernel(root, cpus=16, threads=2)
    put(root, "/etc/default/grub", GRUB)
    put(root, "/usr/sbin/grub-mkconfig", GRUB_MKCONFIG, 0o755)
    put(root, "/etc/default/grub.d/50-cloudimg-settings.cfg", CLOUD)
    put(root, "/etc/default/grub.d/init-select.cfg", "# nothing\n")
    put(root, "/etc/default/irqbalance", '#IRQBALANCE_ARGS=\nIRQBALANCE_BANNED_CPULIST="9"\n')


def rhel(root: Path) -> None:
    kernel(root)
    put(root, "/etc/default/grub", 'GRUB_CMDLINE_LINUX="rhgb quiet"\nGRUB_ENABLE_BLSCFG=true\n')
    for n in (362, 427):
        put(root, f"/boot/loader/entries/abc-5.14.0-{n}.el9.x86_64.conf", BLS.format(n=n), 0o600)
    put(root, "/etc/kernel/cmdline", "root=/dev/mapper/rhel-root ro rhgb quiet\n")
    put(
        root,
        "/etc/sysconfig/irqbalance",
        "# comments\n#IRQBALANCE_ONESHOT=\nIRQBALANCE_BANNED_CPUS=c0\n",
    )
    put(root, "/usr/sbin/grubby", GRUBBY, 0o755)
    programs(root)


# As MFT's manual shows its answer.
MLXCONFIG = """#!/bin/busybox sh
/bin/busybox cat <<EOF
Device #1:
----------
Device type:        BlueField3
Configurations:                          Default             Current             Next Boot
        INTERNAL_CPU_MODEL               SEPARATED_HOST(0)   EMBEDDED_CPU(1)     EMBEDDED_CPU(1)
*       INTERNAL_CPU_OFFLOAD_ENGINE      {default}         {current}         {then}
The '*' shows parameters with next value different from default/current value.
EOF
"""


# What doca-hugepages does by its manual: config asks where the application is there and --force is
# not given; nothing takes effect before reload, which adds up. The manual does not show the form of
# what show says.
DOCA_HUGEPAGES = r"""#!/bin/busybox sh
db=/etc/doca-hugepages.db
echo "$@" >> /doca-hugepages.log
do=$1; shift
while [ $# -gt 0 ]; do case $1 in
--app) app=$2; shift ;; --size) size=$2; shift ;; --num) num=$2; shift ;; --force) force=1 ;; *) exit 2 ;;
esac; shift; done
case $do in
config)
	if /bin/busybox grep -q "^$app $size " $db && [ -z "$force" ]; then
		echo "$app is configured already. Overwrite? [y/n]"
		read answer || { echo "EOFError: EOF when reading a line" >&2; exit 1; }
	fi
	/bin/busybox sed -i "/^$app $size /d" $db
	echo "$app $size $num" >> $db ;;
remove)
	/bin/busybox grep -q "^$app " $db || { echo "$app: no such application" >&2; exit 1; }
	/bin/busybox sed -i "/^$app /d" $db ;;
reload)
	for size in 2048 1048576; do
		sum=0
		while read a s n; do [ "$s" = $size ] && sum=$((sum + n)); done < $db
		echo $sum > /sys/kernel/mm/hugepages/hugepages-${size}kB/nr_hugepages
	done ;;
show)
	echo "+-----------+---------+------+"
	while read a s n; do echo "| $a | $s | $n |"; done < $db ;;
*) exit 2 ;;
esac
"""


def doca(root: Path) -> None:
    """A BlueField whose doca-hugepages can be run, with another application's pages."""
    bluefield(root)
    programs(root)
    put(root, "/etc/doca-hugepages.db", "other 2048 100\n")
    put(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "100\n")
    put(root, "/usr/sbin/doca-hugepages", DOCA_HUGEPAGES, 0o755)


def ask(root: Path, name: str, *args: str) -> str:
    """What a stand-in of the root says, as Root.ask has it of this machine's programs."""
    folders = [f for f in ("/usr/sbin", "/usr/bin") if os.access(root / f[1:] / name, os.X_OK)]
    if not folders or os.geteuid() != 0:
        return ""
    command = ["chroot", root, f"{folders[0]}/{name}", *args]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout if done.returncode == 0 else ""


def programs(root: Path) -> None:
    """A shell for the root's stand-ins."""
    (root / "bin").mkdir(exist_ok=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")


def bluefield(root: Path) -> None:
    kernel(root, cpus=16)
    put(root, "/etc/default/grub", BLUEFIELD)
    put(root, "/usr/sbin/grub-mkconfig", GRUB_MKCONFIG, 0o755)
    put(root, "/etc/mlnx-release", "bf-bundle-2.9.1-40_24.11_ubuntu-22.04_prod\n")
    put(root, "/usr/sbin/doca-hugepages", "#!/bin/sh\n", 0o755)
    put(root, "/etc/modprobe.d/mlnx-bf.conf", "options mlx5_core probe_vf=0\n")


def tuned(root: Path, profile: str = "cpu-partitioning", conf: str = TUNED_PROFILE) -> None:
    """Debian with this profile of tuned active, its variables as it brings them."""
    debian(root)
    programs(root)
    put(root, "/usr/lib/tuned/cpu-partitioning/tuned.conf", conf)
    put(root, "/etc/tuned/cpu-partitioning-variables.conf", TUNED_VARIABLES)
    put(root, "/etc/tuned/active_profile", profile + "\n")
    put(root, "/etc/tuned/bootcmdline", 'TUNED_BOOT_CMDLINE="skew_tick=1"\n')
    put(root, "/usr/sbin/tuned-adm", TUNED_ADM, 0o755)


def hand_edited(root: Path) -> None:
    kernel(root)
    put(root, "/etc/default/grub", HAND_EDITED, 0o600)
    put(root, "/usr/sbin/grub-mkconfig", GRUB_MKCONFIG, 0o755)
    put(
        root,
        "/etc/default/grub.d/10-local.cfg",
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX hugepagesz=2M"\n',
    )


PCI = "/sys/bus/pci"


def nic(
    root: Path,
    vendor: str = "0x8086",
    driver: str = "ice",
    iommu: bool = True,
    up: bool = False,
    virtio: bool = False,
    name: str = "0000:3b:00.0",
    fails: bool = False,
) -> str:
    """A port with its kernel driver. `virtio`: its interface is its virtio device's. `fails`:
    vfio-pci's probe does."""
    folder = f"{PCI}/devices/{name}"
    put(root, f"{folder}/vendor", vendor + "\n")
    put(root, f"{folder}/driver_override", "(null)\n")
    put(root, f"{folder}/x-native", driver + "\n")
    for one in (driver, "vfio-pci"):
        put(root, f"{PCI}/drivers/{one}/unbind", "")
    put(root, f"{PCI}/drivers_probe", "")
    put(root, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "N\n")
    (root / folder[1:] / "driver").symlink_to(f"../../drivers/{driver}")
    if iommu:
        put(root, f"{folder}/iommu_group/type", "DMA-FQ\n")
        put(root, f"{folder}/iommu_group/devices/{name}", "")
    if fails:
        put(root, f"{folder}/x-vfio-fails", "")
    net = f"{folder}/virtio3/net/ens3" if virtio else f"{folder}/net/eth0"
    # virtio's state is unknown also while it is in use, where the host tells no link.
    put(root, f"{net}/operstate", "unknown\n" if virtio else "down\n")
    put(root, f"{net}/flags", "0x1003\n" if up else "0x1002\n")
    return name


ALL = {
    "debian": debian,
    "ubuntu": ubuntu,
    "rhel": rhel,
    "bluefield": bluefield,
    "hand-edited": hand_edited,
}


def snapshot(root: Path) -> dict[str, tuple]:
    """Every file, folder and link: kind, mode, bytes. Kernel files have no mode that matters."""
    found: dict[str, tuple] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder) / name
            inside = str(path.relative_to(root))
            if path.is_symlink():
                found[inside] = ("link", os.readlink(path))
            elif path.is_dir():
                found[inside] = ("folder",)
            else:
                found[inside] = ("file", path.stat().st_mode, path.read_bytes())
    return found
