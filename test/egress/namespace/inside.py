"""Stands in for the launcher: makes the sockets inside a network namespace, hands them out, then runs the guest's command.

argv: path of the host's unix socket, ports of IPv4 as JSON, ports of IPv6 as JSON, IPv6 literals as JSON, command...
Runs as root of a user namespace of its own with new network and mount namespaces.
"""
import json
import os
import socket
import subprocess
import sys

path, ipv4, ipv6, literals, command = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3]), json.loads(sys.argv[4]), sys.argv[5:]


def ip(*args):
    subprocess.run(['ip', *args], check=True)


ip('link', 'set', 'lo', 'up')
# On a loopback device the kernel makes the whole prefix local; an address that is not 127.0.0.0/8 also satisfies AI_ADDRCONFIG.
ip('addr', 'add', '198.18.0.1/15', 'dev', 'lo')
# Whatever else the guest dials arrives too, and is refused and logged instead of being unreachable in silence.
ip('route', 'add', 'local', 'default', 'dev', 'lo')
for literal in literals:
    ip('route', 'add', 'local', literal, 'dev', 'lo')

etc = '/tmp/egress-resolv-%d' % os.getpid()
for name, content in (('resolv.conf', 'nameserver 127.0.0.1\noptions edns0\n'), ('hosts', '127.0.0.1 localhost\n'), ('nsswitch.conf', 'hosts: files dns\n')):
    with open(etc, 'w') as file:
        file.write(content)
    private = etc + '-' + name
    os.rename(etc, private)
    subprocess.run(['mount', '--bind', private, '/etc/' + name], check=True)
    os.unlink(private)


def listener(family, address, port):
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    made.bind((address, port))
    made.listen(128)
    return made


udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(('127.0.0.1', 53))
sockets = [udp, listener(socket.AF_INET, '127.0.0.1', 53)]
sockets += [listener(socket.AF_INET, '0.0.0.0', port) for port in ipv4]
sockets += [listener(socket.AF_INET6, '::', port) for port in ipv6]

host = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
host.connect(path)
socket.send_fds(host, [b'x'], [made.fileno() for made in sockets])
for made in sockets:
    made.close()
host.recv(1)
host.close()
sys.exit(subprocess.run(command).returncode)
