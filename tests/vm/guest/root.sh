# SPDX-License-Identifier: BSD-3-Clause
# From the initramfs to the disk: all that one has to do here.
mkdir -p /root
mount -t ext4 /dev/vda1 /root || exit
mount --move /dev /root/dev
exec switch_root /root /sbin/init
