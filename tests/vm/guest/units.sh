# SPDX-License-Identifier: BSD-3-Clause
# The unit dpdk-tokd as doc/user/host.md has it installed: with wrong settings, with right ones, reloaded, hung, killed, restarted
# beside tokd-gpu, asked by tokd-exporter, stopped; and tokd-gateway. The test reads texts' ids whenever it is said to be serving.
unit=dpdk-tokd.service
settings=/etc/default/dpdk-tokd
state() { # PROPERTY
	systemctl show --property="$1" --value $unit
}

serving() { # NAME
	echo "@@ serving-$1 $(systemctl is-active $unit), $(state NRestarts) restarts"
	read -r _ </dev/ttyS0
}

# again PID: until another process is what the unit has, and is ready.
again() {
	until case $(state MainPID) in
		0 | "$1") false ;;
		*) [ "$(state ActiveState)" = active ] ;;
		esac do
		[ "$(state ActiveState)" != failed ] || break
		sleep 0.5
	done
}

cp /usr/local/share/dpdk-tokd/default/dpdk-tokd.default $settings
cat >>$settings <<-END
	DPDK_TOKD_EAL="-l 1 --file-prefix tokd -a 0000:00:05.0"
	TOKD_IP=10.99.0.999
END
said unit-wrong systemctl start $unit
echo "@@ wrong $(state ActiveState) by $(state ExecMainStatus), $(state NRestarts) restarts"
journalctl --unit=$unit --priority=warning --output=cat | sed 's/^/@@ wrong-log /'

sed -i 's/^TOKD_IP=.*/TOKD_IP=10.99.0.1/' $settings
said unit-start systemctl start $unit
systemctl status --no-pager $unit | sed 's/^/    /'
first=$(state MainPID)
for thread in /proc/"$first"/task/*; do
	echo "@@ thread $(cat "$thread/comm") $(awk '/Cpus_allowed_list/ {print $2}' "$thread/status")"
done
echo "@@ page-free $(cat /sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages)"
serving started

said unit-reload systemctl reload $unit
# The log says it before systemd is told.
until journalctl --unit=$unit --output=cat | grep -q 'reload: done' &&
	[ "$(state ActiveState)" != reloading ]; do
	case $(state ActiveState) in active | reloading) ;; *) break ;; esac
	sleep 0.5
done
serving reloaded

# Longer than WatchdogSec: with no sign of life it would have been ended by now.
sign=$(state WatchdogTimestampMonotonic)
sleep 12
echo "@@ signs $(($(state WatchdogTimestampMonotonic) - sign)) us later"
[ "$(state MainPID)" = "$first" ] && echo "@@ lives yes"

kill -STOP "$first"
again "$first"
serving hung
second=$(state MainPID)
kill -KILL "$second"
again "$second"
serving killed

cp /usr/local/share/dpdk-tokd/default/tokd-gpu.default /etc/default/tokd-gpu
printf 'TOKD_GPU_DEVICE=cpu\nTOKD_GPU_TABLE=random:50257x16\n' >>/etc/default/tokd-gpu
echo TOKD_SINK=gpu >>$settings
said gpu-start systemctl start tokd-gpu.service
said unit-restart systemctl restart $unit
journalctl --unit=$unit --lines=20 --output=cat | sed 's/^/    /'
serving restarted

# ask URL [BODY]: what is answered, as soon as somebody listens there.
ask() {
	until python3 -c '
import sys, urllib.request
body = [text.encode() for text in sys.argv[2:]]
head = {"Content-Type": "application/json"}
print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], *body, headers=head), timeout=60).read().decode())
' "$@" 2>/run/ask.txt; do
		cat /run/ask.txt >&2
		grep -q refused /run/ask.txt || break
		sleep 1
	done
}
said exporter-start systemctl start tokd-exporter.service
echo "@@ exporter-ready $(ask http://127.0.0.1:9477/ready)"
echo "@@ exporter-up $(ask http://127.0.0.1:9477/metrics | grep '^tokd_up ')"

cp /usr/local/share/dpdk-tokd/default/tokd-gateway.default /etc/default/tokd-gateway
said gateway-start systemctl start tokd-gateway.service
journalctl --unit=tokd-gateway --output=cat | sed 's/^/    /'
echo "@@ gateway $(ask http://127.0.0.1:8000/tokenize '{"prompt": "Hello, world"}')"
said gateway-stop systemctl stop tokd-gateway.service
unit=tokd-gateway.service
echo "@@ gateway-stopped $(state ActiveState), $(state Result), $(state ExecMainStatus)"

for unit in tokd-host.service tokd-gpu.service tokd-exporter.service tokd-gateway.service dpdk-tokd.service; do
	said "rated-$unit" systemd-analyze security --no-pager --threshold=25 $unit
done

said unit-stop systemctl stop $unit
journalctl --unit=$unit --output=cat | sed -n "s/^$unit: /@@ unit-log /p; /sandbox: /s/^/@@ /p"
echo "@@ stopped $(state ActiveState), $(state Result), $(state ExecMainStatus)"
echo "@@ exporter-without $(ask http://127.0.0.1:9477/metrics | grep '^tokd_up ')"
unit=tokd-exporter.service
said exporter-stop systemctl stop $unit
echo "@@ exporter-stopped $(state ActiveState), $(state Result), $(state ExecMainStatus)"
unit=tokd-gpu.service
said gpu-stop systemctl stop $unit
echo "@@ gpu-stopped $(state ActiveState), $(state Result), $(state ExecMainStatus)"
