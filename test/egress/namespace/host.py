"""Takes the descriptors from the namespace and becomes the host: argv is its command, which inherits them from 3 on, and after them
the connection to tell when it is ready."""
import os
import socket
import sys

path, command = sys.argv[1], sys.argv[2:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(path)
server.listen(1)
print('waiting', flush=True)
client, _ = server.accept()
server.close()
_, descriptors, _, _ = socket.recv_fds(client, 1, 253)
# Out of the way first: the numbers from 3 on may be in use.
high = [os.dup2(fd, 500 + index) for index, fd in enumerate([*descriptors, client.fileno()])]
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index, inheritable=True)
os.closerange(3 + len(high), 1000)
os.execvp(command[0], command)
