"""Starts a Python program several times whose libraries are on the disk.

Nothing is logged inside of the imports: what the first start takes longer than the others is storage.
"""

import argparse
import os
import subprocess
import sys

import truth


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", help="a folder of Python packages")
    parser.add_argument("--starts", type=int, default=3)
    args = parser.parse_args()
    environment = dict(os.environ, PYTHONPATH=args.data)
    program = "import " + ", ".join(
        ["sklearn." + m for m in ("ensemble", "linear_model", "manifold", "mixture", "neural_network", "svm")]
        + ["scipy." + m for m in ("fft", "integrate", "interpolate", "ndimage", "signal", "stats")]
    )
    for number in range(args.starts):
        with truth.window(number, "custom", name="start"), truth.span("read", 1):
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)


if __name__ == "__main__":
    main()
