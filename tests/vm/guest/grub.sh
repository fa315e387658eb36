# SPDX-License-Identifier: BSD-3-Clause
# On the disk, once each boot: what an administrator does, step by step.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
. /said.sh
step=$(cat /var/vm-step 2>/dev/null || echo 1)
echo $((step + 1)) >/var/vm-step
echo "@@ boot $step"
echo "@@ cmdline-$step $(cat /proc/cmdline)"
sed 's/^/    /' /boot/grub/grub.cfg | grep 'linux.*vmlinuz' | head -n 1
echo "@@ up-$step $(cut -d' ' -f1 /proc/uptime)"

asked='--cores 1 --hugepages 1x1G --nic 0000:00:05.0'
card=/sys/bus/pci/devices/0000:00:05.0
case $step in
1) # as the installer left it
	said check tokd-host check $asked
	said apply tokd-host apply $asked
	systemctl enable tokd-host.service
	;;
2) # as asked
	echo "@@ isolated $(cat /sys/devices/system/cpu/isolated)"
	echo "@@ nohz_full $(cat /sys/devices/system/cpu/nohz_full)"
	echo "@@ pages $(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages)"
	echo "@@ mount $(grep -c ' /dev/hugepages-1G hugetlbfs .*pagesize=1024M' /proc/mounts)"
	echo "@@ driver $(basename "$(readlink $card/driver)")"
	echo "@@ modprobe $(journalctl --unit=tokd-host --output=cat | grep -c '^run   modprobe vfio-pci')"
	echo "@@ service $(systemctl is-active tokd-host.service)"
	said verify tokd-host verify
	. /units.sh
	sed -i 's/ nohz_full=[^ ]*//' /boot/grub/grub.cfg
	;;
3) # a word is gone from GRUB's line
	echo "@@ isolated-3 $(cat /sys/devices/system/cpu/isolated)"
	said verify-less tokd-host verify
	grep -h 'nohz_full' /run/verify-less.txt | sed 's/^/@@ less /'
	said revert tokd-host revert
	echo "@@ driver-reverted $(basename "$(readlink $card/driver)")"
	echo "@@ left $(grep -c isolcpus /boot/grub/grub.cfg) of $(grep -c 'linux.*vmlinuz' /boot/grub/grub.cfg)"
	;;
esac
sync
systemctl reboot -ff # QEMU ends: the test turns it on again
