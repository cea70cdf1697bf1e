"""Measures what the package costs: `python3 -m tests.cost` in the folder python, after `make build`.

Each line is the least and the median of some rounds, per call. An agent is started for the second part.
"""

from __future__ import annotations

import os
import statistics
import sys
import timeit
from typing import Dict, List

from .support import PROGRAM, SOURCE, agent, environment, run

ROUNDS = 7
CHILD = "--child"

NOTHING = {
    "an empty loop, per step": ("for x in r: pass", 100000, "r = range(100000)"),
    "epoch, without an agent": ("with stallspan.epoch(3): pass", 1, "import stallspan\nwith stallspan.epoch(0): pass"),
    "watch, without an agent, per step": ("for x in stallspan.watch(r): pass", 100000,
                                          "import stallspan\nr = range(100000)\nwith stallspan.epoch(0): pass"),
}
AGENT = {
    "epoch, begin and end": ("with stallspan.epoch(3): sleep(0.002)", 1, "import stallspan\nfrom time import sleep"),
    "the same sleep alone": ("sleep(0.002)", 1, "from time import sleep"),
    "watch with its windows, per step": ("for x in stallspan.watch(r): pass", 100000,
                                         "import stallspan\nr = range(100000)"),
}


def measure(table: Dict[str, tuple[str, int, str]]) -> None:
    """Print the cost of each statement in microseconds."""
    for name, (statement, per, setup) in table.items():
        timer = timeit.Timer(statement, setup)
        number = 1 if per > 1 else 500 if "sleep" in statement else 100000
        rounds: List[float] = [t / number / per * 1e6 for t in timer.repeat(ROUNDS, number)]
        print("%-36s %9.3f %9.3f us" % (name, min(rounds), statistics.median(rounds)), flush=True)


def main() -> None:
    """Measure both in processes of their own."""
    if CHILD in sys.argv:
        sys.path.insert(0, SOURCE)
        measure(AGENT if "agent" in sys.argv else NOTHING)
        return
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    print("%-36s %9s %12s" % ("", "least", "median"))
    env = environment(STALLSPAN_SOCKET="/nonexistent/socket")
    print(run(sys.executable, "-m", "tests.cost", CHILD, env=env, cwd=here).stdout, end="")
    if os.access(PROGRAM, os.X_OK):
        with agent() as socket:
            env = environment(STALLSPAN_SOCKET=socket)
            print(run(sys.executable, "-m", "tests.cost", CHILD, "agent", env=env, cwd=here).stdout, end="")


if __name__ == "__main__":
    main()
