"""A guest with sockets and nothing else. argv: a command and its arguments; prints one JSON document."""
import errno
import hashlib
import json
import socket
import sys
import threading
import time


def connect(host, port, timeout=20):
    return socket.create_connection((host, int(port)), timeout)


def read_all(sock):
    data = b''
    while True:
        chunk = sock.recv(65536)
        if not chunk:
            return data
        data += chunk


def outcome(act):
    """What came of it, an errno by its name."""
    try:
        return act()
    except socket.gaierror as error:
        return {socket.EAI_NONAME: 'EAI_NONAME', socket.EAI_AGAIN: 'EAI_AGAIN'}.get(error.errno, str(error))
    except socket.timeout:
        return 'timeout'
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def talk(host, port, text='', timeout=20):
    def act():
        with connect(host, port, float(timeout)) as sock:
            sock.sendall(text.encode())
            sock.shutdown(socket.SHUT_WR)
            return read_all(sock).decode('latin1')
    return outcome(act)


def get(host, port=80, timeout=20):
    return talk(host, port, 'GET / HTTP/1.0\r\nHost: %s\r\n\r\n' % host, timeout)


def reached(host, port=80, timeout=20):
    """Whether an HTTP server answered, or what happened instead."""
    answer = get(host, port, timeout)
    return 'reached' if answer.startswith('HTTP/1.') else answer or 'closed'


def many(*targets):
    return {target: reached(*target.rsplit(':', 1)) for target in targets}


def upload(host, port, size):
    left, block = int(size), bytes(1 << 16)
    with connect(host, port) as sock:
        while left > 0:
            left -= sock.send(block[:left])
        sock.shutdown(socket.SHUT_WR)
        return read_all(sock).decode()


def download(host, size, rate=0):
    """Reads a body of zeros, `rate` bytes a second where that is not 0, and gives its length and hash."""
    digest, count, started = hashlib.sha256(), 0, time.monotonic()
    with connect(host, 80) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sock.sendall(('GET /bytes/%s HTTP/1.0\r\nHost: %s\r\n\r\n' % (size, host)).encode())
        stream = sock.makefile('rb')
        while stream.readline().strip():
            pass
        while True:
            chunk = stream.read1(65536)
            if not chunk:
                break
            digest.update(chunk)
            count += len(chunk)
            if int(rate):
                time.sleep(max(0, count / int(rate) - (time.monotonic() - started)))
    return {'bytes': count, 'sha256': digest.hexdigest()}


def stall(host, port, seconds):
    """Opens, and reads nothing for that long."""
    with connect(host, port) as sock:
        sock.settimeout(5)
        time.sleep(float(seconds))
    return 'stalled'


def half_close(host, port):
    """Says all, closes that direction, and still hears the answer."""
    with connect(host, port) as sock:
        sock.sendall(b'one ')
        time.sleep(0.2)
        sock.sendall(b'two')
        sock.shutdown(socket.SHUT_WR)
        return read_all(sock).decode()


def reset_by_server(host, port):
    def act():
        with connect(host, port) as sock:
            return read_all(sock).decode()
    return outcome(act)


def reset_by_guest(host, port):
    with connect(host, port) as sock:
        sock.sendall(b'x')
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
    return 'reset'


def parallel(host, port, count):
    """That many connections open at one time, each with a message of its own."""
    results, barrier = [None] * int(count), threading.Barrier(int(count))

    def one(index):
        def act():
            with connect(host, port, 60) as sock:
                barrier.wait(60)
                sock.sendall(b'%d' % index)
                sock.shutdown(socket.SHUT_WR)
                return read_all(sock).decode()
        results[index] = outcome(act)
    threads = [threading.Thread(target=one, args=(index,)) for index in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def lookup(*names):
    def one(name, family, flags):
        return outcome(lambda: sorted({found[4][0] for found in socket.getaddrinfo(name, 80, family, socket.SOCK_STREAM, 0, flags)}))
    families = {'any': socket.AF_UNSPEC, 'v4': socket.AF_INET, 'v6': socket.AF_INET6}
    return {name: {label: one(name, family, socket.AI_ADDRCONFIG) for label, family in families.items()} for name in names}


def datagrams(*targets):
    for target in targets:
        host, port = target.rsplit(':', 1)
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            for _ in range(3):
                outcome(lambda: sock.sendto(b'x', (host, int(port))))
    return len(targets)


def sockets():
    """Which kinds of socket the guest may have at all."""
    kinds = {'tcp': (socket.AF_INET, socket.SOCK_STREAM, 0), 'raw': (socket.AF_INET, socket.SOCK_RAW, 1), 'ping': (socket.AF_INET, socket.SOCK_DGRAM, 1), 'packet': (17, socket.SOCK_DGRAM, 0), 'vsock': (40, socket.SOCK_STREAM, 0)}
    return {name: outcome(lambda kind=kind: socket.socket(*kind).close() or 'made') for name, kind in kinds.items()}


print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
