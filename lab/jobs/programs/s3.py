"""Programs whose data are in S3, with boto3. The first epoch is with a slow server, the others with a fast one.

objects    torch's DataLoader gets an object for each item, as a whole, in pieces of its stream, or in ranges
model      downloads a model with boto3's transfer, which has threads, and reads it
shards     threads stream tar shards and decode them into a queue
logs       stores what it logs, after some steps; its data are in memory
rank       as objects, and meets a slow peer that serves no data after each step

With --follow, the server stays slow, and the later epochs do what a remedy says: prefetch (several requests at once,
ahead), connections (more of them for one object), larger (requests), or copy (to a local disk, before).
"""

import argparse
import http.client
import io
import os
import queue
import socket
import tarfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import boto3
import numpy
import torch
import truth
import urllib3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from PIL import Image
from torch.utils.data import DataLoader, Dataset

BUCKET = "data"
AHEAD = 8  # requests at once of a remedy


class Calls:
    """Logs the calls of this process's sockets. boto3 has no place of its own for that."""

    last = (0, "main")  # end and thread of the last one
    first = (0, "")

    @classmethod
    def watch(cls):
        receive, send = socket.socket.recv_into, socket.socket.sendall
        wait = urllib3.util.wait_for_read

        def logged(self, *args):
            if self.family != socket.AF_INET:
                return receive(self, *args)
            if not hasattr(truth._local, "name") and threading.current_thread() is not threading.main_thread():
                truth.name(threading.current_thread().name)
            with truth.span(getattr(truth._local, "receives", "fetch")) as one:
                got = receive(self, *args)
                if one.kind == "fetch":
                    one.argument = got
            cls.last = truth.now(), getattr(truth._local, "name", "main")
            cls.first = cls.first if cls.first[0] else cls.last
            return got

        def sent(self, *args):
            if self.family != socket.AF_INET or getattr(truth._local, "receives", "fetch") == "fetch":
                return send(self, *args)
            with truth.span("other", "send"):
                return send(self, *args)

        def waited(sock, *args):  # until the server wants what is stored (100 Continue)
            with truth.span("other", "server"):
                return wait(sock, *args)

        socket.socket.recv_into, socket.socket.sendall = logged, sent
        urllib3.util.wait_for_read = waited


def port_of(path):
    """The address of a server: its host and port."""
    while not os.path.exists(path):
        time.sleep(0.05)
    with open(path) as file:
        return file.read()


def client(port):
    return boto3.client(
        "s3", endpoint_url=f"http://{port}", region_name="us-east-1", aws_access_key_id="key",
        aws_secret_access_key="secret", config=Config(s3={"addressing_style": "path"}, max_pool_connections=32),
    )


def work(data, seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        zlib.crc32(data[:65536])


class Objects(Dataset):
    def __init__(self, args, port):
        self.args, self.port, self.client, self.copies = args, port, None, ""
        self.range = args.range

    def __len__(self):
        return self.args.objects

    def fetch(self, index):
        if self.copies:
            with open(f"{self.copies}/{index}", "rb") as file:
                return file.read()
        if self.client is None:  # of this process
            self.client = client(self.port)
        key, step, pieces = f"object/{index}", self.range or self.args.size, []
        for start in range(0, self.args.size, step):
            ask = {"Range": f"bytes={start}-{start + step - 1}"} if self.range else {}
            body = self.client.get_object(Bucket=BUCKET, Key=key, **ask)["Body"]
            pieces.extend(body.iter_chunks(self.args.read) if self.args.read else [body.read()])
        return b"".join(pieces)

    def __getitem__(self, index):
        work(self.fetch(index), self.args.decode)
        return torch.zeros(1)

    def copy(self, folder):
        os.makedirs(folder)
        for index in range(len(self)):
            with open(f"{folder}/{index}", "wb") as file:
                file.write(self.fetch(index))
        self.copies = folder

    def ahead(self):
        """Yields the batches of a loader without workers, with several requests at once ahead of it."""
        with ThreadPoolExecutor(AHEAD) as pool:
            coming = [pool.submit(self.fetch, index) for index in range(2 * AHEAD)]
            for index in range(0, len(self), 2):
                for item in range(index, min(index + 2, len(self))):
                    work(coming.pop(0).result(), self.args.decode)
                    if item + 2 * AHEAD < len(self):
                        coming.append(pool.submit(self.fetch, item + 2 * AHEAD))
                yield


def objects(args, port):
    gpu = truth.Accelerator() if args.step else None
    data = Objects(args, port)
    if not args.workers:
        data.client = client(port)  # which takes a while, and is not for the first epoch alone
    peer = meet(args.meet) if args.kind == "rank" else None
    for epoch in epochs(args, port):
        follow = args.follow if epoch else ""
        if follow == "copy" and not data.copies:
            data.copy(os.path.join(os.path.dirname(args.port), "copy"))
        if follow == "larger":
            data.range = 0
        with truth.window(epoch, "epoch", epoch=epoch):
            loader = DataLoader(data, batch_size=2, num_workers=args.workers, worker_init_fn=truth.name_worker)
            for _ in data.ahead() if follow == "prefetch" else truth.batches(loader, args.workers):
                if gpu:
                    gpu.run(args.step)
                if peer:
                    with truth.span("other", "peer"):
                        peer.send(b"x")
                        peer.recv(1)


def epochs(args, port):
    for epoch in range(args.epochs):
        if epoch == 1 and not args.follow:
            connection = http.client.HTTPConnection(port)
            connection.request("GET", "/fast")
            connection.getresponse().read()
            connection.close()
        yield epoch


def model(args, port):
    """Downloads a file and reads it, in each epoch."""
    store, path = client(port), os.path.join(os.path.dirname(args.port), "model")
    gpu = truth.Accelerator() if args.step else None
    for epoch in epochs(args, port):
        follow = args.follow if epoch else ""
        threads = AHEAD if follow == "connections" else args.threads
        config = TransferConfig(
            multipart_threshold=args.range, multipart_chunksize=args.range, max_concurrency=threads,
            use_threads=threads > 1, io_chunksize=args.read or 262144,
        )
        if follow == "copy" and epoch == 1:
            store.download_file(BUCKET, "object/0", path + ".copy")
        with truth.window(epoch, "epoch", epoch=epoch):
            if follow != "copy":
                download(store, path, config)
            with open(path + ".copy" if follow == "copy" else path, "rb") as file:
                data = numpy.frombuffer(file.read(), dtype=numpy.uint8)
            work(data.tobytes(), args.decode)
            if gpu:
                gpu.run(args.step)


def download(store, path, config):
    """Downloads the model. The main thread waits for the first answer, which has the size, and then for the last part."""
    Calls.first, start = (0, ""), truth.now()
    store.download_file(BUCKET, "object/0", path, Config=config)
    if config.use_threads:
        truth.record("wait", start, Calls.first[0], Calls.first[1])
        truth.record("wait", Calls.first[0], Calls.last[0], Calls.last[1])


class Ahead(io.RawIOBase):
    """The body of an object as a file."""

    def __init__(self, body):
        self.body = body

    def readable(self):
        return True

    def readinto(self, buffer):
        data = self.body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def feed(number, keys, store, args, out):
    truth.name(f"feeder{number}")
    for key in keys:
        if key.startswith("/"):
            body = open(key, "rb")
        else:
            body = Ahead(store.get_object(Bucket=BUCKET, Key=key)["Body"])
        with tarfile.open(fileobj=body, mode="r|", bufsize=args.read or 65536) as shard:
            for member in shard:
                image = Image.open(io.BytesIO(shard.extractfile(member).read())).convert("RGB")
                image = image.resize((128, 128), Image.BILINEAR)
                put(out, (number, numpy.asarray(image, dtype=numpy.float32) / 255))
    put(out, (number, None))


def put(out, item):
    with truth.span("other", "queue"):
        out.put(item)


def shards(args, port):
    store, gpu = client(port), truth.Accelerator()
    keys = sorted(o["Key"] for o in store.list_objects_v2(Bucket=BUCKET, Prefix="file/")["Contents"])
    for epoch in epochs(args, port):
        follow = args.follow if epoch else ""
        threads = AHEAD if follow == "prefetch" else args.threads
        if follow == "copy" and epoch == 1:
            folder = os.path.join(os.path.dirname(args.port), "copy")
            os.makedirs(folder)
            for i, key in enumerate(keys):
                store.download_file(BUCKET, key, f"{folder}/{i}")
            keys = [f"{folder}/{i}" for i in range(len(keys))]
        with truth.window(epoch, "epoch", epoch=epoch):
            items, batch, running = queue.Queue(maxsize=32), [], threads
            feeders = [
                threading.Thread(target=feed, args=(n, keys[n::threads], store, args, items), daemon=True)
                for n in range(threads)
            ]
            for thread in feeders:
                thread.start()
            while running:
                start = truth.now()
                number, pixels = items.get()
                truth.record("wait", start, truth.now(), f"feeder{number}")
                if pixels is None:
                    running -= 1
                    continue
                batch.append(pixels)
                if len(batch) == 8:
                    numpy.stack(batch)
                    gpu.run(args.step)
                    batch = []


def logs(args, port):
    """Computes, and stores a log after some steps. The server takes it slowly."""
    store, gpu, text = client(port), truth.Accelerator(), os.urandom(args.size)
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for step in range(args.objects):
                work(text, args.decode)
                gpu.run(args.step)
                if step % 4 == 3:
                    truth._local.receives = "other"
                    store.put_object(Bucket=BUCKET, Key=f"log/{epoch}/{step}", Body=text)
                    truth._local.receives = "fetch"


def meet(path):
    connection = socket.create_connection(("127.0.0.1", int(port_of(path))))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer(args):
    listener = socket.create_server(("127.0.0.1", 0))
    with open(args.port + ".new", "w") as file:
        file.write(str(listener.getsockname()[1]))
    os.rename(args.port + ".new", args.port)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while connection.recv(1):
        time.sleep(args.step)
        connection.sendall(b"x")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["objects", "model", "shards", "logs", "rank", "answer"])
    parser.add_argument("port", help="the file with the server's port")
    parser.add_argument("--size", type=int, default=1 << 20, help="bytes of an object")
    parser.add_argument("--read", type=int, default=0, help="bytes of a read of the stream, 0 for all")
    parser.add_argument("--range", type=int, default=0, help="bytes of a request, 0 for all")
    parser.add_argument("--objects", type=int, default=60)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--decode", type=float, default=0.01)
    parser.add_argument("--step", type=float, default=0.0, help="seconds of the accelerator, 0 for none")
    parser.add_argument("--meet", default="", help="the file with the peer's port")
    parser.add_argument("--follow", default="", choices=["", "prefetch", "connections", "larger", "copy"])
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    if args.kind == "answer":
        answer(args)
        return
    does = {"objects": objects, "rank": objects, "model": model, "shards": shards, "logs": logs}[args.kind]
    port = port_of(args.port)
    Calls.watch()
    does(args, port)


if __name__ == "__main__":
    main()
