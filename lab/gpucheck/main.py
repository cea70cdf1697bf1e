"""Runs the parts of gpu-check one after another, each within its time, and writes what they found (../gpu-check.sh)."""

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback

import busy
import cost
import facts
import load
import metrics
import recording
import table
import training
from setting import Setting, Skip, TimeUp

PARTS = [  # name, what runs it, seconds at most
    ("facts", facts.run, 120),  # to import PyTorch can take a minute on a machine that is cold
    ("metrics", metrics.run, 60),
    ("busy", busy.run, 165),
    ("training", training.run, 130),
    ("load", load.run, 90),
    ("recording", recording.run, 40),
    ("cost", cost.run, 140),  # the last: it takes what time is left
]
TOGETHER = 455  # seconds, for all parts


def arguments():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description="Hold Stallspan against an NVIDIA GPU.")
    parser.add_argument(
        "--out", default=os.path.join(root, "build/gpu-check"), help="folder for what is found (build/gpu-check)"
    )
    parser.add_argument(
        "--data", default=os.path.join(root, "build"), help="folder on a real disk, for up to 20 GB meanwhile (build)"
    )
    parser.add_argument(
        "--stallspan", default=os.path.join(root, "build/stallspan"), help="the program (build/stallspan)"
    )
    parser.add_argument(
        "--nvml",
        default="",
        help="folder of libnvidia-ml.so.1; with --fake build/fakenvml, otherwise the loader's choice",
    )
    parser.add_argument(
        "--parts", default="", help="the parts to run, with commas: " + ",".join(name for name, _, _ in PARTS)
    )
    parser.add_argument("--fake", action="store_true", help="no GPU: run with testdata/fakenvml what that can answer")
    args = parser.parse_args()
    if args.fake and not args.nvml:
        args.nvml = os.path.join(root, "build/fakenvml")
    args.root = root
    chosen = [name for name in args.parts.split(",") if name]
    unknown = set(chosen) - {name for name, _, _ in PARTS}
    if unknown:
        parser.error("no such part: " + ", ".join(sorted(unknown)))
    if not os.access(args.stallspan, os.X_OK):
        parser.error(args.stallspan + " is not there: run make build, or name it with --stallspan")
    if args.fake and not os.path.exists(os.path.join(args.nvml, "libnvidia-ml.so.1")):
        parser.error(args.nvml + " holds no libnvidia-ml.so.1: run make fakenvml, or name its folder with --nvml")
    args.chosen = ["facts", *chosen] if chosen else []  # the others go by what it finds
    return args


def last_line(error):
    """What went wrong, and where: the traceback's last place and its last line."""
    where = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(where[-1].filename)}:{where[-1].lineno}: " if where else ""
    return place + traceback.format_exception_only(error)[-1].strip()


def run_part(setting, run, part, limit):
    """Runs a part, and leaves in its dictionary how it went. Nothing but ^C gets out."""

    def up(_number, _frame):
        # Once more soon, should the first one be lost where an exception cannot leave, as in a destructor.
        signal.setitimer(signal.ITIMER_REAL, 10)
        raise TimeUp(f"not done within {limit:.0f} s")

    began = time.monotonic()
    setting.deadline = began + limit
    signal.signal(signal.SIGALRM, up)
    try:
        signal.setitimer(signal.ITIMER_REAL, limit)
        run(setting, part)
        judged = [aim["ok"] for aim in part["aims"] if aim["ok"] is not None]
        part["ok"] = all(judged)
        if not part["ok"]:
            part["why"] = "; ".join(aim["what"] for aim in part["aims"] if aim["ok"] is False)
    except Skip as reason:
        part["skipped"], part["why"] = True, str(reason)
    except Exception as error:  # whatever it is, the other parts run and the file is written
        part["ok"], part["why"] = False, last_line(error)
        part["traceback"] = traceback.format_exc().splitlines()[-12:]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        setting.clean_up()
        part["took_s"] = round(time.monotonic() - began, 1)


def verdict(result):
    """Whether every part that was asked for ran, and reached its aims. Of those that the stand-in can answer."""
    ran = [part["ok"] for part in result["parts"].values() if part["ok"] is not None]
    missing = [
        part
        for part in result["parts"].values()
        if part["wanted"] and part["ok"] is None and not (result["fake"] and part["skipped"])
    ]
    return bool(ran) and all(ran) and not missing


def write(setting, result):
    """Writes what is known so far: whatever happens next, it is there."""
    result["ok"] = verdict(result)
    result["not_run"] = [name for name, part in result["parts"].items() if part["ok"] is None]
    for name, text in (("gpu-check.json", json.dumps(result, indent=1)), ("gpu-check.md", table.markdown(result))):
        path = os.path.join(setting.out, name)
        with open(path + ".new", "w") as file:
            file.write(text + "\n")
        os.replace(path + ".new", path)


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    os.makedirs(args.data, exist_ok=True)
    for name in ("gpu-check.json", "gpu-check.md"):
        if os.path.exists(os.path.join(args.out, name)):
            os.remove(os.path.join(args.out, name))
    folder = tempfile.mkdtemp(prefix="gpu-check-", dir=args.data)
    short = tempfile.mkdtemp(prefix="gpu-check-")  # for sockets, whose paths are at most 107 bytes long
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(143))
    setting = Setting(args, folder, short)
    setting.forget_recording()
    result = {"fake": args.fake, "ok": False, "not_run": [], "parts": {}}
    for name, _, _ in PARTS:
        chosen = not args.chosen or name in args.chosen
        why = "the check ended before it" if chosen else "not asked for"
        result["parts"][name] = {"ok": None, "wanted": chosen, "skipped": not chosen, "why": why, "aims": []}
    setting.parts = result["parts"]
    end = time.monotonic() + TOGETHER
    try:
        for name, run, limit in PARTS:
            part = result["parts"][name]
            if part["skipped"]:
                continue
            limit = min(limit, end - time.monotonic() - 5)
            if limit < 10:
                part["skipped"], part["why"] = True, "no time was left for it"
                continue
            part["why"] = ""
            run_part(setting, run, part, limit)
            if name == "facts":
                result.update(part.pop("top", {}))
            said = "skipped: " + part["why"] if part["skipped"] else "ok" if part["ok"] else "NOT OK: " + part["why"]
            print(f"gpu-check: {name} ({part['took_s']} s): {said}", file=sys.stderr)
            write(setting, result)
    finally:
        write(setting, result)
        setting.clean_up()
        setting.let_go()
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(short, ignore_errors=True)
    print(table.markdown(result))
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
