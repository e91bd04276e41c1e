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


def crowd(host, port, count):
    """That many connections, one after the other, all kept; then what becomes of each."""
    socks = [outcome(lambda: connect(host, port)) for _ in range(int(count))]
    return [sock if isinstance(sock, str) else outcome(lambda sock=sock: read_all(sock).decode()) for sock in socks]


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


def question(name, number=0, kind=1):
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    return number.to_bytes(2, 'big') + b'\1\0\0\1\0\0\0\0\0\0' + labels + b'\0' + kind.to_bytes(2, 'big') + b'\0\1'


def messages(*texts):
    """Each of these bytes, in hex, as a datagram to the resolver; the code of each answer, or what came instead."""
    def one(text):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.5)
            sock.connect(('127.0.0.1', 53))
            sock.send(bytes.fromhex(text))
            return sock.recv(4096)[3] & 15
    return [outcome(lambda text=text: one(text)) for text in texts]


def ask_and_go(name, count):
    """That many questions, as fast as they can be sent, by one who does not wait for an answer."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.connect(('127.0.0.1', 53))
    return sum(sock.send(question('n%d.%s' % (number, name), number % 65536)) > 0 for number in range(int(count)))


def stream(name, count, reads='yes'):
    """That many questions over one connection; how many bytes of answers were read."""
    frames = b''.join(len(each).to_bytes(2, 'big') + each for each in (question('n%d.%s' % (number, name), number % 65536) for number in range(int(count))))
    with socket.create_connection(('127.0.0.1', 53)) as sock:
        sock.sendall(frames)
        sock.shutdown(socket.SHUT_WR)
        return len(read_all(sock)) if reads == 'yes' else 0


def resolver_crowd(count):
    """That many connections to the resolver at one time; how many of them it hung up on."""
    socks = [socket.create_connection(('127.0.0.1', 53)) for _ in range(int(count))]
    time.sleep(1)
    gone = 0
    for sock in socks:
        sock.setblocking(False)
        word = outcome(lambda sock=sock: sock.recv(1) == b'' and 'end')
        gone += word in ('end', 'ECONNRESET')
    return gone


def odd_packets(host, port):
    """IPv6 packets whose payload stands behind another header: fragments, and segment routing's header."""
    port, said = int(port), {}
    big = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    big.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    said['fragments'] = outcome(lambda: big.sendto(bytes(65527), (host, port)))
    for hops in (1, 8):
        header = bytes([0, 2 * hops, 4, hops - 1, hops - 1, 0, 0, 0]) + socket.inet_pton(socket.AF_INET6, host) * hops
        for kind in ('datagram', 'stream'):
            port += 1
            sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM if kind == 'datagram' else socket.SOCK_STREAM)
            sock.settimeout(1.5)
            outcome(lambda: sock.setsockopt(41, 57, header))
            said['%s behind %d' % (kind, hops)] = outcome(lambda: sock.sendto(b'x', (host, port)) if kind == 'datagram' else sock.connect((host, port)))
    return said


def burst(host, port, count):
    """Begins that many connections and lets go of all of them at once."""
    address, socks = socket.gethostbyname(host), []
    for _ in range(int(count)):
        socks.append(socket.socket())
        socks[-1].setblocking(False)
        socks[-1].connect_ex((address, int(port)))
    return len(socks)


def hammer(host, port, seconds):
    """Connects and lets go, over and over; how often."""
    address, end, count = socket.gethostbyname(host), time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        with socket.socket() as sock:
            sock.setblocking(False)
            sock.connect_ex((address, int(port)))
        count += 1
    return count


print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
