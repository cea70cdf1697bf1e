"""Runs a program as a launcher does, and looks again and again whether it has ended."""

import argparse
import os
import runpy
import select
import subprocess
import sys
import threading
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=["sleep", "poll", "thread"], help="between two looks; or join it")
    parser.add_argument("every", type=float, help="seconds between two looks")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()

    if args.way == "thread":
        sys.argv = [args.program] + args.arguments
        worker = threading.Thread(target=runpy.run_path, args=(args.program,), kwargs={"run_name": "__main__"})
        worker.start()
        worker.join()
        return 0
    child = subprocess.Popen([sys.executable, args.program] + args.arguments)
    events = select.poll()
    events.register(os.pidfd_open(child.pid), select.POLLIN)
    while child.poll() is None:
        if args.way == "sleep":
            time.sleep(args.every)
        else:
            events.poll(1000 * args.every)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
