"""Loads .npz files with numpy, for a computation on the GPU, warm and cold, and stops a load in the middle."""

import argparse

import label
import numpy
import truth


def load(path, gpu, share=1.0):
    with numpy.load(truth.File(path)) as arrays:
        names = arrays.files
        for number, name in enumerate(names):
            if number >= share * len(names):
                raise KeyError(name)  # a layer that the model does not have
            gpu.copy(arrays[name].nbytes)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--abort", action="store_true", help="the first load of each ends in its middle with an error")
    parser.add_argument("--work", type=float, default=2)
    args = parser.parse_args()
    gpu = label.Gpu()
    with label.life():
        label.pause(1)
        for path in args.models:
            if args.abort:
                try:
                    with label.load(path):
                        load(path, gpu, 0.6)
                except KeyError:
                    gpu.free()
                label.pause(args.work)
                label.cold(path)
            for _ in range(2):
                with label.load(path):
                    load(path, gpu)
                gpu.work(args.work)
                gpu.free()
                label.pause(1)


if __name__ == "__main__":
    main()
