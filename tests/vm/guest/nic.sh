# SPDX-License-Identifier: BSD-3-Clause
# The appliance on the guest's network card by vfio-pci, on CPU 1, which is isolated: tokd-host gives it the card, and
# takes it back. $PAGE and $PAGES are on the kernel's line.
export PATH=/bin:/usr/bin:/usr/local/sbin
. /said.sh
echo "@@ isolated $(cat /sys/devices/system/cpu/isolated)"
mkdir -p /dev/huge
mount -t hugetlbfs -o "pagesize=$PAGE" huge /dev/huge

card=0000:00:05.0
device=/sys/bus/pci/devices/$card
is() { # WHEN: whose the card is, and which interrupts may come to CPU 1
	echo "@@ driver-$1 $(basename "$(readlink $device/driver)")"
	echo "@@ override-$1 $(cat $device/driver_override)"
	echo "@@ interface-$1 $(ls $device/virtio*/net 2>/dev/null)"
	echo "@@ loud-$1 $(grep -l 1 /proc/irq/*/smp_affinity_list | cut -d/ -f4 | sort -n | tr '\n' ' ')"
}

is before
said check tokd-host check --json --cores 1 --hugepages "$PAGES" --nic $card
echo "@@ findings $(tr -d '\n' </run/check.txt)"
interface=$(ls $device/virtio*/net)
ip link set "$interface" up
said apply-up tokd-host apply --nic $card
sed 's/^/@@ refusal /' /run/apply-up.txt
is refused
ip link set "$interface" down
said apply tokd-host apply --nic $card
is applied
echo "@@ iommu-group $(basename "$(readlink $device/iommu_group)")"
said verify tokd-host verify
echo "@@ up-verified $(cut -d' ' -f1 /proc/uptime)"

dpdk-tokd --lcores 1 -d /drivers --huge-dir /dev/huge -a $card -- \
	--ip 10.99.0.1 --vocab /vocab.* >/tmp/log 2>&1 &
pid=$!
until grep -q 'ready: ' /tmp/log; do
	kill -0 $pid || break
	sleep 0.2
done
cat /tmp/log
echo "@@ checksums $(grep -o 'by the device:.*' /tmp/log)"
if kill -0 $pid; then
	for thread in /proc/$pid/task/*; do
		echo "@@ thread $(cat "$thread/comm") $(awk '/Cpus_allowed_list/ {print $2}' "$thread/status")"
	done
	for pool in /sys/kernel/mm/hugepages/*; do
		echo "@@ pages $(basename "$pool") $(cat "$pool/nr_hugepages") of them free $(cat "$pool/free_hugepages")"
	done
	echo "@@ ready"
	read -r _ # from the test: it has its ids
	kill -TERM $pid
	wait $pid
	echo "@@ status $?"
	sed 1,/ready:/d /tmp/log
fi

said revert tokd-host revert
is reverted
ls -d /etc/dpdk-tokd /etc/security /var/lib/dpdk-tokd 2>/dev/null | sed 's/^/@@ left /'
ip addr add 10.99.0.1/24 dev "$interface"
ip link set "$interface" up
said ping ping -c 3 10.99.0.2 # by the kernel's driver again
