"""Extracts features from JPEG files with a pool of processes that is made for each pass, and fits a classifier."""

import argparse
import io
import os
from concurrent.futures import ProcessPoolExecutor

import numpy
import truth
from PIL import Image
from sklearn.linear_model import SGDClassifier


def feature(path):
    truth.name(f"process{os.getpid()}")
    image = Image.open(io.BytesIO(truth.read_file(path))).convert("L").resize((96, 96), Image.BICUBIC)
    spectrum = numpy.abs(numpy.fft.fft2(numpy.asarray(image, dtype=numpy.float64)))
    return os.getpid(), numpy.log1p(spectrum[:16, :16]).ravel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of JPEG files")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    paths = [os.path.join(args.data, f) for f in sorted(os.listdir(args.data)) if f.endswith(".jpg")]
    for number in range(args.epochs):
        with truth.window(number, "custom", name="features"):
            features = []
            with ProcessPoolExecutor(args.processes) as pool:
                results = pool.map(feature, paths)
                for _ in paths:
                    start = truth.now()
                    pid, values = next(results)
                    truth.record("wait", start, truth.now(), f"process{pid}")
                    features.append(values)
            SGDClassifier(max_iter=5, tol=None).fit(features, [i % 2 for i in range(len(features))])


if __name__ == "__main__":
    main()
