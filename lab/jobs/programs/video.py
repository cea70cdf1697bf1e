"""Reads one large file from begin to end in pieces of 1 MiB, as of a video, and decodes frames of it for a GPU."""

import argparse
import zlib

import numpy
import truth


def frames(path, size):
    """Decode a stream of frames of that many bytes."""
    decoder, left = zlib.decompressobj(), b""
    with open(path, "rb", buffering=0) as file:
        while True:
            with truth.span("read") as one:
                data = file.read(1 << 20)
                one.argument = len(data)
            if not data:
                return
            left += decoder.decompress(data)
            whole = len(left) // size * size
            for first in range(0, whole, size):
                yield numpy.frombuffer(left[first : first + size], dtype=numpy.uint8)
            left = left[whole:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--frame", type=int, default=256 * 256 * 3, help="bytes")
    parser.add_argument("--clip", type=int, default=16, help="frames")
    parser.add_argument("--step", type=float, default=0.03)
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()

    gpu = truth.Accelerator()
    for number in range(args.passes):
        with truth.window(number, "custom", name="clips"):
            clip = []
            for frame in frames(args.data, args.frame):
                clip.append(frame)
                if len(clip) == args.clip:
                    (numpy.stack(clip).astype(numpy.float32) - 128) / 64
                    gpu.run(args.step)
                    clip = []


if __name__ == "__main__":
    main()
