"""Fits a classifier to a CSV file, chunk by chunk, with scikit-learn's partial_fit."""

import argparse
import io
import itertools

import numpy
import truth
from sklearn.neural_network import MLPClassifier


def chunks(path, rows):
    with io.TextIOWrapper(io.BufferedReader(truth.Raw(path), 64 * 1024)) as file:
        while lines := list(itertools.islice(file, rows)):
            yield numpy.loadtxt(lines, delimiter=",", ndmin=2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a CSV file whose first column is the class, 0 or 1")
    parser.add_argument("--rows", type=int, default=500, help="of a chunk")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    model = MLPClassifier((256, 128))
    for epoch in range(args.epochs):
        with truth.window(epoch, "epoch", epoch=epoch):
            for rows in chunks(args.data, args.rows):
                model.partial_fit(rows[:, 1:], rows[:, 0], classes=[0, 1])


if __name__ == "__main__":
    main()
