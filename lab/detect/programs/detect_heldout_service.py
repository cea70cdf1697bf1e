"""A service that runs each model in a process of its own, which it ends before the next one. The files are blobs
named by their hash, as a store of models has them, or .engine files; the service reads its manifests and writes
a log."""

import argparse
import json
import os
import subprocess
import sys
import threading

import label
import truth


def run_model(path, work):
    """The child: a load, then work until the service closes its input."""
    gpu = label.Gpu()
    with label.load(path):
        with label.phase("read"):
            data = label.read_whole(path)
        with label.phase("host_to_device"):
            gpu.copy(len(data))
    print("ready", flush=True)
    gpu.work(work)
    sys.stdin.read()


def name(path):
    return os.path.basename(os.path.dirname(path))


def both(paths, work):
    """One process that loads two models at the same time, each in a thread."""
    gpu = label.Gpu()

    def one(path):
        truth.name(name(path))
        with label.load(path):
            gpu.copy(len(label.read_whole(path)))

    with label.life():
        label.pause(1)
        threads = [threading.Thread(target=one, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread, path in zip(threads, paths):
            start = truth.now()
            thread.join()
            truth.record("wait", start, truth.now(), name(path))
        gpu.work(work)


def serve(paths, folder, work):
    with label.life():
        for number, path in enumerate(paths):
            manifest = os.path.join(folder, "manifest.json")
            with open(manifest, "w") as file:
                json.dump({"layers": [{"digest": os.path.basename(path), "size": os.path.getsize(path)}]}, file)
            with open(manifest) as file:
                json.load(file)
            child = subprocess.Popen([sys.executable, __file__, "--child", "--work", str(work), path],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            child.stdout.readline()
            for request in range(20):
                with open(os.path.join(folder, "service.log"), "a") as file:
                    file.write(f"model {number}, request {request}\n" * 100)
                label.pause(work / 20)
            child.stdin.close()
            child.wait()
            label.pause(work / 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--both", action="store_true")
    parser.add_argument("--folder", help="of the manifest and the log")
    parser.add_argument("--work", type=float, default=3)
    args = parser.parse_args()
    if args.child:
        run_model(args.models[0], args.work)
    elif args.both:
        both(args.models, args.work)
    else:
        serve(args.models, args.folder, args.work)


if __name__ == "__main__":
    main()
