# SPDX-License-Identifier: BSD-3-Clause
# The appliance on the guest's network card by vfio-pci, on CPU 1, which is isolated. $PAGE is on the kernel's line.
mkdir -p /dev/huge
mount -t hugetlbfs -o "pagesize=$PAGE" huge /dev/huge
echo "@@ isolated $(cat /sys/devices/system/cpu/isolated)"

card=/sys/bus/pci/devices/0000:00:05.0
[ ! -e "$card/driver" ] || basename "$card" >"$card/driver/unbind"
echo vfio-pci >"$card/driver_override"
basename "$card" >/sys/bus/pci/drivers_probe
echo "@@ driver $(basename "$(readlink "$card/driver")")"
echo "@@ iommu-group $(basename "$(readlink "$card/iommu_group")")"

dpdk-tokd --lcores 1 -d /drivers --huge-dir /dev/huge -a "$(basename "$card")" -- \
	--ip 10.99.0.1 --vocab /vocab.* >/tmp/log 2>&1 &
pid=$!
until grep -q 'ready: ' /tmp/log; do
	kill -0 $pid || break
	sleep 0.2
done
cat /tmp/log
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
