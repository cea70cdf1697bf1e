"""The recording of the training (without one, of the load) gives the same windows when it is replayed."""

import json
import os

from setting import Skip, aim

MOST = 1_000_000  # bytes


def run(setting, part):
    if not setting.recorded or not os.path.exists(setting.recording):
        raise Skip("no part that is recorded was run to its end")
    part["bytes"] = os.path.getsize(setting.recording)
    part["of"] = "load" if setting.fake else "training"
    replayed = json.loads(setting.run([setting.stallspan, "replay", "--json", setting.recording], 30))
    live = {window["id"]: window for window in setting.recorded["windows"]}
    again = {window["id"]: window for window in replayed["windows"]}
    part["verdicts"] = {name: [live[name].get("verdict"), again.get(name, {}).get("verdict")] for name in live}
    same = [name for name in live if live[name].get("verdict") == again.get(name, {}).get("verdict")]
    whole = [name for name in live if live[name] == again.get(name)]
    part["windows_that_differ"] = {
        name: sorted(key for key in live[name] if live[name][key] != again.get(name, {}).get(key))
        for name in live
        if name not in whole
    }
    aim(part, "size of the recording", f"{part['bytes'] / 1000:.0f} kB", f"{MOST // 1000} kB", part["bytes"] < MOST)
    aim(
        part,
        "windows with the same verdict when replayed",
        f"{len(same)} of {len(live)}",
        "all",
        bool(live) and len(same) == len(live),
    )
    aim(
        part,
        "windows with the same numbers throughout",
        f"{len(whole)} of {len(live)}",
        "all",
        bool(live) and len(whole) == len(live),
    )
