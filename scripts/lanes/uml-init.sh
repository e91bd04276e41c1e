#!/bin/sh
# Process 1 of a User-Mode Linux machine (see uml.mjs). The root is the host's own, read-only; $exchange, from the
# kernel's command line, is the one directory of the host that is written to.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

set -e
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /run/exchange
mount -t devpts -o ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t hostfs -o "$exchange" none /run/exchange
# Not hostfs, which cannot be idmapped.
mount -t ext4 /dev/ubda /tmp
chmod 1777 /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo '+cpu +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
ip link set lo up
# A line discipline in the way of the output would add carriage returns.
stty -F /dev/ttyS0 raw -echo
set +e

/bin/sh /run/exchange/job </dev/null >/dev/ttyS0 2>&1
echo $? > /run/exchange/status
umount /run/exchange
sync
echo o > /proc/sysrq-trigger
sleep 60
