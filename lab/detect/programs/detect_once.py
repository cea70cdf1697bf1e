"""No epochs: goes through a data set once, part by part, as to embed a corpus or to prepare features. Each part does
about as much work as the one before, and is of other files.

shards: a process reads one shard after another and works on the GPU; with --workers, new processes decode each shard.
chunks: a pool of new processes reads the files of each chunk, and the first process stores what they made of them.
"""

import argparse
import glob
import multiprocessing
import os

import label
import numpy
import truth

BATCH = 1 << 20


def batches(path, part, parts):
    """Every so manyth batch of a shard."""
    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        for at in range(part * BATCH, size, parts * BATCH):
            file.seek(at)
            with truth.span("read", BATCH):
                yield numpy.frombuffer(file.read(BATCH), dtype=numpy.uint8)


def decode(path, part, parts, ready):
    for data in batches(path, part, parts):
        ready.put(float(data[::16].astype(numpy.float32).sum()))
    ready.put(None)


def shards(args, gpu):
    for path in sorted(glob.glob(os.path.join(args.data, "*"))):
        if not args.workers:
            for data in batches(path, 0, 1):
                data.astype(numpy.float32).sum()
                gpu.run(args.step)
            continue
        ready = multiprocessing.Queue(2 * args.workers)
        all_workers = [multiprocessing.Process(target=decode, args=(path, n, args.workers, ready), daemon=True)
                       for n in range(args.workers)]
        for worker in all_workers:
            worker.start()
        left = args.workers
        while left:
            if ready.get() is None:
                left -= 1
            else:
                gpu.run(args.step)
        for worker in all_workers:
            worker.join()


def feature(path):
    with open(path, "rb", buffering=0) as file, truth.span("read", os.path.getsize(path)):
        data = numpy.frombuffer(file.read(), dtype=numpy.uint8)
    return numpy.sort(data[:1 << 20]).astype(numpy.float32)[::64]


def chunks(args, gpu):
    files = sorted(glob.glob(os.path.join(args.data, "*")))
    for number, at in enumerate(range(0, len(files), args.chunk)):
        made = []
        with multiprocessing.Pool(max(1, args.workers)) as pool:
            for one in pool.imap(feature, files[at:at + args.chunk]):
                made.append(one)
                gpu.run(args.step)
        numpy.save(os.path.join(args.out, f"features-{number:04}.npy"), numpy.concatenate(made))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder")
    parser.add_argument("--what", choices=("shards", "chunks"), default="shards")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--chunk", type=int, default=30, help="files of a chunk")
    parser.add_argument("--out", help="folder of features")
    parser.add_argument("--step", type=float, default=0.03, help="seconds of the GPU for each batch or file")
    args = parser.parse_args()
    multiprocessing.set_start_method("fork")
    gpu = label.Gpu()
    with label.life(negative=True):
        label.pause(1)
        {"shards": shards, "chunks": chunks}[args.what](args, gpu)
        label.pause(1)


if __name__ == "__main__":
    main()
