#!/usr/bin/env python3
"""Adds a driver's library to a container that asks for one, as the runtime of the NVIDIA Container Toolkit does.

    nvidia.py LIBRARY ARGUMENT OF runc...
"""

import json
import sys

library, arguments = sys.argv[1], sys.argv[2:]
bundle = next((arguments[i + 1] for i, a in enumerate(arguments) if a in ("--bundle", "-b")), ".")
path = bundle + "/config.json"
with open(path, encoding="utf-8") as file:
    spec = json.load(file)
environment = dict(pair.split("=", 1) for pair in spec["process"].get("env", []) if "=" in pair)
wanted = environment.get("NVIDIA_VISIBLE_DEVICES", "void") not in ("", "void", "none")
if wanted and "utility" in environment.get("NVIDIA_DRIVER_CAPABILITIES", "utility"):
    spec["mounts"].append({
        "destination": "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "source": library, "type": "bind",
        "options": ["bind", "ro", "nosuid", "nodev"]})
    with open(path, "w", encoding="utf-8") as file:
        json.dump(spec, file)
