# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# In a fresh Debian 12, as root: /debs has the packages, /debs/next those of a later version.
export DEBIAN_FRONTEND=noninteractive
cd /debs || exit
fail() {
	echo "$*" >&2
	exit 1
}

apt-get install -q -y --no-install-recommends ./*.deb librte-net-tap23
getent passwd tokd
for program in dpdk-tokd tok tokd-client tokd-diag tokd-gpu tokd-host tokd-load tokd-tail tokd-top; do
	"$program" --help >/dev/null
done
dpdk-tokd --version | grep '^drivers in .* net_tap'
systemd-analyze verify --man=no /lib/systemd/system/dpdk-tokd.service /lib/systemd/system/tokd-*.service
grep -qx TOKD_GPU_DEVICE=cpu /etc/default/tokd-gpu
[ -z "$(systemctl is-enabled dpdk-tokd tokd-exporter tokd-gateway tokd-gpu tokd-host | grep -x enabled)" ]

vocabulary=$(echo /debs/vocabulary.*)
[ "$(printf 'Hello, world' | tok encode --vocab "$vocabulary" | xargs)" = "15496 11 995" ]
[ "$(python3 -c "import dpdk_tokd, sys; print(*dpdk_tokd.Tokenizer.load(sys.argv[1]).encode('Hello, world'))" \
	"$vocabulary")" = "15496 11 995" ]
python3 -c "import dpdk_tokd._native.block_keys"

# A request to the appliance, by a tap of its own network namespace.
cat >/debs/serve.sh <<-EOF
	dpdk-tokd -l 0 --no-pci --no-huge -m 512 --vdev=net_tap0,iface=tokd0 -- \\
		--ip 10.99.0.2 --vocab $vocabulary 2>/debs/log &
	trap "kill \$!; wait" EXIT
	for _ in \$(seq 600); do
		! grep -q ready: /debs/log || break
		sleep 0.1
	done
	ip addr add 10.99.0.1/24 dev tokd0
	[ "\$(printf 'Hello, world' | tokd-client 10.99.0.2 | xargs)" = "15496 11 995" ]
	tokd-top --once
EOF
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod /dev/net/tun c 10 200
unshare --net bash -eux /debs/serve.sh || fail "$(cat /debs/log)"

echo 'DPDK_TOKD_ARGS="--vocab gpt2"' >>/etc/default/dpdk-tokd
apt-get install -q -y --no-install-recommends ./next/*.deb
dpkg-query -W dpdk-tokd | grep -q '+next$'
grep -q -- '--vocab gpt2' /etc/default/dpdk-tokd
tok --version

names=$(for deb in *.deb; do dpkg-deb -f "$deb" Package; done)
# shellcheck disable=SC2086
apt-get remove -q -y $names
[ -f /etc/default/dpdk-tokd ]
# shellcheck disable=SC2086
dpkg --purge $names
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /debs -o -path /var/cache/apt \) -prune -o -name '*tokd*' -print)
[ -z "$left" ] || fail "left after the purge: $left"
