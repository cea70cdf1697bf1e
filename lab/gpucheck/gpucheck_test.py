"""What is judged, skipped and ended, without a GPU and without the stand-in. fake_test.go runs it."""

import contextlib
import glob
import json
import os
import re
import tempfile
import time
import types
import unittest
from unittest import mock

import busy
import cost
import facts
import load
import main
import nvml
import setting
import training
import work_duty
import work_load

ROOT = os.path.dirname(os.path.dirname(setting.HERE))


def part_of(ok=None, wanted=True, skipped=False):
    return {"ok": ok, "wanted": wanted, "skipped": skipped, "why": "", "aims": []}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="gpu-check-test-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def setting(self, **env):
        args = types.SimpleNamespace(stallspan="stallspan", out=self.folder, root=ROOT, fake=False, nvml="")
        with mock.patch.dict(os.environ, env):
            made = setting.Setting(args, self.folder, self.folder)
        made.deadline = time.monotonic() + 60
        self.addCleanup(made.let_go)
        self.addCleanup(made.clean_up)
        return made


class Judged(Case):
    def test_a_part_that_was_skipped_is_not_ok(self):
        parts = {"facts": part_of(ok=True), "busy": part_of(skipped=True), "cost": part_of(wanted=False, skipped=True)}
        self.assertFalse(main.verdict({"fake": False, "parts": parts}))
        self.assertTrue(main.verdict({"fake": True, "parts": parts}))
        parts["busy"] = part_of(ok=True)
        self.assertTrue(main.verdict({"fake": False, "parts": parts}))
        parts["busy"] = part_of()  # the check ended before it
        self.assertFalse(main.verdict({"fake": True, "parts": parts}))

    def test_times_end_within_eight_minutes(self):
        with open(os.path.join(ROOT, "hack/gpu-check.sh")) as file:
            kill, end = map(int, re.search(r"kill-after=(\d+) (\d+)", file.read()).groups())
        self.assertLess(end + kill, 480)
        self.assertLessEqual(main.TOGETHER + 10, end)
        self.assertGreaterEqual({name: most for name, _, most in main.PARTS}["facts"], 120)


class Torch(Case):
    def ask(self, made, answer):
        part = {}
        with mock.patch.object(made, "run", answer):
            facts.ask_torch(made, part)
        return part

    def test_one_that_does_not_answer_is_not_one_without_a_gpu(self):
        made = self.setting()

        def late(argv, limit):
            raise setting.TimeUp(f"python3 did not end within {limit} s")

        self.ask(made, late)
        for run in (busy.run, training.run, load.run, cost.run):
            with self.assertRaisesRegex(setting.Skip, "did not end within"):
                run(made, {"aims": []})
        self.ask(made, lambda argv, limit: '{"sees_gpu": false}')
        with self.assertRaisesRegex(setting.Skip, "PyTorch does not see a GPU"):
            made.need_torch()
        self.ask(made, lambda argv, limit: '{"sees_gpu": true}')
        made.need_torch()

    def test_what_took_too_long_says_how_long_it_had(self):
        with self.assertRaisesRegex(setting.TimeUp, "within 2 s"):
            made = self.setting()
            made.deadline = time.monotonic() + 4.2
            made.run(["sleep", "30"], 60)


class Started(Case):
    def test_an_empty_list_of_gpus_is_none(self):
        self.assertEqual(self.setting(CUDA_VISIBLE_DEVICES="").device(), "0")
        made = self.setting(CUDA_VISIBLE_DEVICES="2,3")
        self.assertEqual(made.device(), "2")
        made.gpu = "GPU-1"
        self.assertEqual(made.device(), "GPU-1")

    def test_a_session_is_held_until_let_go(self):
        made = self.setting()
        with open(os.path.join(self.folder, "nvml.py"), "w") as file:
            file.write("import sys\nprint('{\"gpus\": 1}', flush=True)\nsys.stdin.read()\n")
        with mock.patch.object(setting, "HERE", self.folder):
            self.assertEqual(made.hold(), {"gpus": 1})
        holder = made.holder
        made.clean_up()  # a part is over
        self.assertIsNone(holder.poll())
        made.let_go()
        self.assertIsNotNone(holder.returncode)

    def test_a_session_that_is_held_has_every_gpu_set_up(self):
        opened = []

        def count(into):
            into._obj.value = 3

        def handle(index, into):
            opened.append(index.value)
            return 15 if index.value == 1 else 0

        library = types.SimpleNamespace(nvmlDeviceGetCount_v2=count, nvmlDeviceGetHandleByIndex_v2=handle)
        self.assertEqual(nvml.open_all(library), 2)
        self.assertEqual(opened, [0, 1, 2])

    def test_a_recording_is_not_beside_an_earlier_one(self):
        made = self.setting()
        for name in ("", ".1", ".2"):
            open(made.recording + name, "w").close()

        def run(argv, limit):
            self.assertEqual(glob.glob(made.recording + "*"), [])
            with open(argv[argv.index("--report") + 1], "w") as file:
                file.write("{}")

        with mock.patch.object(made, "run", run):
            made.watched("training", ["true"], 10, record=True)


class Measured(Case):
    def test_the_gpu_rests_inside_the_window(self):
        seen = []

        @contextlib.contextmanager
        def window(**_):
            seen.append("begin")
            yield
            seen.append("end")

        gpu = types.SimpleNamespace(work=lambda seconds: seen.append("work") or seconds)
        with mock.patch.object(work_duty.announce, "window", window), mock.patch.object(
            work_duty.time, "sleep", lambda seconds: seen.append(seconds)
        ):
            work_duty.combination(gpu, "", 0.5, 0.01, 0.02, {})
        self.assertEqual(seen[:3], ["begin", work_duty.REST, "work"])
        self.assertEqual(seen[-2:], [work_duty.REST, "end"])
        self.assertGreater(work_duty.REST, 1 / 6)  # between two of the driver's samples

    def test_windows_are_shorter_where_pytorch_was_slow(self):
        args = types.SimpleNamespace(limit=164, seconds=5.0, duties=[0] * 5, periods=[0] * 4)
        self.assertEqual(work_duty.fitting(args, 10), 5.0)
        shorter = work_duty.fitting(args, 60)
        self.assertLess(60 + 20 * (shorter + 2 * work_duty.REST), 164)
        self.assertGreater(shorter, 3)
        self.assertEqual(work_duty.fitting(args, 160), 1.0)

    def judged_load(self, cold, warm):
        made, part = self.setting(), {"aims": []}
        made.fake, made.need_torch = False, lambda: None
        window = {"source": "announced", "verdict": "cpu_bound", "load": {"size": 1 << 30, "page_cache_hit_ratio": 0.0}}

        def watched(*_, **__):
            with open(os.path.join(self.folder, "load-truth.json"), "w") as file:
                json.dump({"size": 1 << 30, "reader": "own", "took_s": {"cold": cold, "warm": warm}}, file)
            return {"windows": [{**window, "model": "cold"}, {**window, "model": "warm"}]}

        with mock.patch.object(made, "watched", watched), mock.patch.object(load.files, "on_disk", lambda _: True):
            load.run(made, part)
        return part, next(a for a in part["aims"] if "loaded cold by own" in a["what"])

    def test_a_disk_as_fast_as_memory_is_not_judged(self):
        part, aim = self.judged_load(1.2, 1.0)
        self.assertIsNone(aim["ok"])
        self.assertIn("cold 1.20 s, warm 1.00 s", part["why_not"])
        part, aim = self.judged_load(3.0, 1.0)
        self.assertIs(aim["ok"], False)

    def test_a_model_is_read_without_the_library(self):
        reader = work_load.loader(1 << 20, os.path.join(self.folder, "m"), "fake")
        self.assertIn("of our own", reader.name)
        with mock.patch.dict("sys.modules", {"safetensors": None}), mock.patch.object(work_load, "Own") as own:
            work_load.loader(1 << 20, os.path.join(self.folder, "m"), "")
        self.assertIn("safetensors", own.call_args[0][2])

    def test_a_model_is_read_by_the_library(self):
        torch = types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=lambda: None))
        library = types.ModuleType("safetensors")
        library.__version__ = "9"
        library.torch = types.ModuleType("safetensors.torch")

        def load_file(path, device):
            self.assertEqual(device, "cuda")
            with open(path, "rb") as file:
                return {name: size for name, _, _, size in work_load.tensors(file)}

        library.torch.load_file = load_file
        modules = {"safetensors": library, "safetensors.torch": library.torch, "torch": torch}
        with mock.patch.dict("sys.modules", modules):
            reader = work_load.loader(1 << 20, os.path.join(self.folder, "m"), "")
        self.assertEqual(reader.name, "safetensors 9")
        self.assertEqual(os.listdir(self.folder), [])


class Asked(Case):
    def plans(self, prefix):
        with open(os.path.join(ROOT, "internal/source/gpu/table.go")) as file:
            return re.findall(r'\{\w+, "' + prefix + r'\w+",\s+(\d+),([^{}]*)\}', file.read())

    def test_the_fields_and_metrics_are_the_agents(self):
        fields = self.plans("NVML_FI_")
        self.assertEqual([int(number) for number, _ in fields], list(nvml.FIELDS))
        self.assertEqual([int(number) for number, row in fields if "allLinks" in row], list(nvml.LINKS))
        metrics = self.plans("NVML_GPM_METRIC_")
        self.assertEqual([int(number) for number, _ in metrics], list(nvml.METRICS))

    def test_a_call_that_is_not_timed_is_told(self):
        part = {"aims": [], "calls": {"nvmlA": {"calls": 3}, "nvmlB": {"calls": 2}, "nvmlInit_v2": {"calls": 1}}}
        process = types.SimpleNamespace(stdin=open(os.devnull, "w"))
        self.addCleanup(process.stdin.close)
        timed = '{"nvmlA x": {"code": 0, "calls": 5, "median_us": 1, "p99_us": 2}, "nvmlB": {"code": 3, "calls": 5}}'
        made = self.setting()
        with mock.patch.object(made, "run", lambda argv, limit: timed), mock.patch.object(cost, "ask"):
            cost.single_calls(made, part, process)
        self.assertEqual(part["calls_not_timed"], ["nvmlB"])
        self.assertIs(part["aims"][-1]["ok"], False)


if __name__ == "__main__":
    unittest.main()
