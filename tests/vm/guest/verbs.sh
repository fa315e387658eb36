# SPDX-License-Identifier: BSD-3-Clause
# The GPU ring by RDMA: soft-RoCE on the card that leads to the other guest, or, where $ROLE is "both", on none.
# What is to happen when, the test says on the console.
ring_port=7472
agent_ip=192.168.77.2

card() { # ADDRESS: the interface of a virtio card
	ls "/sys/bus/pci/devices/0000:00:$1.0/"virtio*/net
}

wait_for() { # LOG TEXT
	until grep -q "$2" "$1"; do
		kill -0 $pid || break
		sleep 0.2
	done
}

shown() { # LOG: on the console as it grows
	: >"$1"
	tail -f "$1" &
}

# A guest whose host is busy stands still for seconds: that is nobody's fault.
agent() {
	shown /tmp/agent
	tokd-gpu --device cpu --table "random:$TABLE" --producers 1 --listen tcp:$ring_port --stuck 60000 \
		--subscriber-timeout 60000 --subscribers-socket /tmp/subscribers >>/tmp/agent 2>&1 &
	pid=$!
	agent_pid=$pid
	wait_for /tmp/agent 'ready: '
	shown /tmp/subscriber
	subscriber /tmp/subscribers "/dev/$(basename /sys/class/virtio-ports/vport*)" >>/tmp/subscriber 2>&1 &
	subscriber_pid=$!
	wait_for /tmp/subscriber 'holding '
	echo "@@ agent $(kill -0 $subscriber_pid && echo ready)"
}

appliance() {
	shown /tmp/appliance
	text=$(card 05)
	ip link set "$text" up
	dpdk-tokd --lcores 1 --no-pci --no-huge -m 256 -d /drivers --vdev "net_af_packet0,iface=$text" -- \
		--sandbox=no --ip 10.99.0.1 --vocab /vocab.* --sink "gpu=verbs:$agent_ip:$ring_port" \
		>>/tmp/appliance 2>&1 &
	pid=$!
	appliance_pid=$pid
	wait_for /tmp/appliance 'ready: '
	echo "@@ appliance $(kill -0 $pid && echo ready)"
}

end() { # NAME PID LOG
	[ -n "$2" ] || return
	kill -TERM "$2"
	wait "$2"
	echo "@@ $1-status $?"
	sed -n 's/^  \(sink_[a-z_]*\) *\([0-9]*\) .*/@@ \1 \2/p' "$3"
}

own_ip=$agent_ip
case $ROLE in
both)
	wire=d0
	ip link add d0 type dummy
	;;
appliance)
	wire=$(card 06)
	own_ip=192.168.77.1
	;;
agent) wire=$(card 06) ;;
esac
ip addr add "$own_ip/24" dev "$wire"
ip link set "$wire" up
rdma link add rxe0 type rxe netdev "$wire"
echo "@@ rdma $(cat /sys/class/infiniband/rxe0/ports/1/state)"

while read -r command; do
	case $command in
	pair)
		verbs_pair -n 320 -a "$own_ip" >/tmp/pair 2>&1
		status=$?
		cat /tmp/pair
		echo "@@ pair $status"
		;;
	agent) agent ;;
	appliance) appliance ;;
	down | up)
		ip link set "$wire" "$command"
		echo "@@ wire $command"
		;;
	broken)
		wait_for /tmp/appliance 'connection lost'
		echo '@@ broken yes'
		;;
	again) # the producer slot was resumed; or, on a busy host, it was kept no longer, and there is another, of another epoch
		wait_for /tmp/appliance 'connected again\|verbs, producer .* epoch [2-9]'
		grep -q 'connected again' /tmp/appliance && echo '@@ again resumed' || echo '@@ again anew'
		;;
	end) break ;;
	esac
done
end appliance "$appliance_pid" /tmp/appliance
end agent "$agent_pid" /tmp/agent
