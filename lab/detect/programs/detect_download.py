"""Downloads a model from a server of its own, writes it to the disk, and loads it. A download is no load; with it or
without it, the load has the right begin."""

import argparse
import os
import socket
import threading
import time

import detect_safetensors
import label
import truth


def send(listener, size, rate):
    """The server: sends bytes at a rate."""
    connection, _ = listener.accept()
    block = bytes(1 << 20)
    with connection:
        for sent in range(0, size, len(block)):
            connection.sendall(block[:size - sent])
            time.sleep(len(block) / rate)


def fetch(source, path, rate):
    """Get as many bytes as the source has over a connection, and put the source's own into the file."""
    size = os.path.getsize(source)
    listener = socket.create_server(("127.0.0.1", 0))
    server = threading.Thread(target=send, args=(listener, size, rate))
    server.start()
    with open(source, "rb") as true, open(path + ".incomplete", "wb", buffering=0) as file, \
            socket.create_connection(listener.getsockname()) as connection:
        while True:
            with truth.span("other", "socket"):
                block = connection.recv(1 << 20)
            if not block:
                break
            content = true.read(len(block))
            with truth.span("write", len(block)):
                file.write(content)
    os.rename(path + ".incomplete", path)
    server.join()
    listener.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source", help="a file in memory, under a name that no model has")
    parser.add_argument("path")
    parser.add_argument("--rate", type=float, default=60e6)
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        began = label.now()
        with label.phase("download"):
            fetch(args.source, args.path, args.rate)
        with label.load(args.path) as load:
            load.begins.append(began)
            detect_safetensors.mapped(args.path, gpu)
        gpu.work(args.work)
        gpu.free()
        label.pause(args.work)
        label.cold(args.path)
        with label.load(args.path):
            detect_safetensors.mapped(args.path, gpu)
        gpu.work(args.work)


if __name__ == "__main__":
    main()
