"""Ranks in processes of their own: each loads its .distcp file of a checkpoint, they train from memory, and each
stores its part in a thread into a folder with another name, which the first rank renames when all parts are on
the disk."""

import argparse
import multiprocessing
import os
import threading

import label
import truth


def part(folder, rank):
    return os.path.join(folder, f"__{rank}_0.distcp")


def rank_main(rank, args, start, loaded, barrier):
    truth.name(f"rank{rank}")
    gpu = label.Gpu(rank)
    start.wait()
    path = part(args.resume, rank)
    gpu.copy(len(label.read_whole(path)))
    loaded.wait()
    saver = None
    for number in range(args.saves):
        for _ in range(args.steps):
            gpu.run(args.step)
            meet(barrier)
        if saver:
            saver.join()
        data = os.urandom(args.size // args.ranks)
        saver = threading.Thread(target=store, args=(args, rank, number, data))
        saver.start()
    saver.join()


def meet(barrier):
    with truth.span("other", "barrier"):
        barrier.wait()


def store(args, rank, number, data):
    truth.name(f"saver{rank}")
    folder = os.path.join(args.output, f"step_{number}.tmp")
    os.makedirs(folder, exist_ok=True)
    one = label.checkpoint(f"step_{number}")
    one.__enter__()
    with open(part(folder, rank), "wb") as file:
        for at in range(0, len(data), label.CHUNK):
            with truth.span("write", label.CHUNK):
                file.write(data[at:at + label.CHUNK])
        file.flush()
        os.fsync(file.fileno())
    open(os.path.join(folder, f"done{rank}"), "w").close()
    if rank:
        return
    while not all(os.path.exists(os.path.join(folder, f"done{n}")) for n in range(args.ranks)):
        label.pause(0.01)
    with open(os.path.join(folder, ".metadata"), "wb") as file:
        file.write(bytes(20000))
    os.rename(folder, folder[:-4])
    one.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("resume")
    parser.add_argument("output")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--saves", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--step", type=float, default=0.04)
    parser.add_argument("--size", type=int, default=64 << 20)
    args = parser.parse_args()
    start, barrier = multiprocessing.Event(), multiprocessing.Barrier(args.ranks)
    loaded = multiprocessing.Barrier(args.ranks + 1)
    ranks = [multiprocessing.Process(target=rank_main, args=(n, args, start, loaded, barrier))
             for n in range(args.ranks)]
    with label.life():
        for rank in ranks:
            rank.start()
        label.pause(1.5)
        with label.load(args.resume):
            start.set()
            loaded.wait()
        for rank in ranks:
            rank.join()


if __name__ == "__main__":
    main()
