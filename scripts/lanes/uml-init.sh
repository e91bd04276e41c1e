#!/bin/sh
# Process 1 of a User-Mode Linux machine (see uml.mjs). The root is the host's own, read-only; $exchange, from the
# kernel's command line, is the one directory of the host that is written to.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# Whatever happens, the machine goes off: a process 1 that ends would leave a kernel that panics and stays.
trap 'sync; echo o > /proc/sysrq-trigger; sleep 60' EXIT
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
# Debian's kernel has these as modules, in a place where modprobe does not look.
mkdir -p /run/root/lib
ln -s /usr/lib/uml/modules /run/root/lib/modules
modprobe -d /run/root -a ipv6 dummy veth
ip link set lo up
# A machine has an address that others could reach.
ip link add dummy0 type dummy
ip address add 10.64.0.1/24 dev dummy0
ip link set dummy0 up
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
