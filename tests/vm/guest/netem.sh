# SPDX-License-Identifier: BSD-3-Clause
# The appliance behind a bridge: frames in both directions go through $NETEM, words of tc-netem(8).
#
#   card, netem = bridge = wire, netem = veth0, the appliance
# /bin/tc: not busybox's.
. /said.sh
card=$(ls /sys/bus/pci/devices/0000:00:05.0/virtio*/net)
ip link add wire type veth # the other end is veth0
ip link add bridge type bridge
for port in "$card" wire; do
	ip link set "$port" master bridge
	said netem /bin/tc qdisc add dev "$port" root netem limit 10000 $NETEM
done
for interface in bridge "$card" wire veth0; do
	ip link set "$interface" up
done

dpdk-tokd --lcores 1 --no-pci --no-huge -m 256 -d /drivers --vdev net_af_packet0,iface=veth0 -- \
	--ip 10.99.0.1 --vocab /vocab.* --socket /run/tokd >/tmp/appliance 2>&1 &
pid=$!
until grep -q 'ready: ' /tmp/appliance; do
	kill -0 $pid || break
	sleep 0.2
done
tokd-tail --socket /run/tokd >"/dev/$(basename /sys/class/virtio-ports/vport*)" 2>/tmp/tail &
tail=$!
until grep -q 'attached' /tmp/tail; do
	kill -0 $tail || break
	sleep 0.2
done
echo "@@ tail $(kill -0 $tail && echo attached)"
read -r _ # from the test: it has its ids
for port in "$card" wire; do
	echo "@@ sent $(/bin/tc -s qdisc show dev "$port" | grep Sent)"
done
kill -TERM $pid
wait $tail
wait $pid
echo "@@ status $?"
sed 1,/ready:/d /tmp/appliance
