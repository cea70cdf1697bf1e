"""Stands in for the one function of Hydra that DLIO uses: it reads the workload's YAML and the changes to it."""

import os
import sys

from omegaconf import OmegaConf


def main(config_path, **_):
    def decorate(function):
        def run():
            options = dict(argument.lstrip("+").split("=", 1) for argument in sys.argv[1:])
            folder = os.path.join(os.path.dirname(function.__globals__["__file__"]), config_path, "workload")
            workload = OmegaConf.load(os.path.join(folder, options.pop("workload") + ".yaml"))
            changes = OmegaConf.from_dotlist([f"{name}={value}" for name, value in options.items()])
            function(OmegaConf.merge({"workload": workload}, changes))

        return run

    return decorate
