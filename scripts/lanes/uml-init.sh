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

# Through a pipe: nothing in here should take the line for a terminal. What the job left behind may hold the pipe open.
mkfifo /run/output
{ cat /run/output > /dev/ttyS0; touch /run/drained; } &
/bin/sh /run/exchange/job </dev/null >/run/output 2>&1
echo $? > /run/exchange/status
tries=0
while [ ! -e /run/drained ] && [ $tries -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
umount /run/exchange
sync
echo o > /proc/sysrq-trigger
sleep 60
