"""The notebook, and the scripts for Slurm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unittest
from typing import Dict, List

from .support import EXAMPLES, PATIENT, PROGRAM, agent, environment, folder, get, has_torch, needs_program, run


class Notebook(unittest.TestCase):
    def setUp(self) -> None:
        with open(os.path.join(EXAMPLES, "notebook.ipynb")) as file:
            self.notebook = json.load(file)

    def test_it_has_no_output(self) -> None:
        self.assertEqual((self.notebook["nbformat"], self.notebook["nbformat_minor"]), (4, 4))
        for cell in self.notebook["cells"]:
            self.assertIn(cell["cell_type"], ("markdown", "code"))
            self.assertFalse(cell.get("outputs"))

    @needs_program
    @unittest.skipUnless(has_torch(), "PyTorch and torchvision are missing")
    def test_its_cells_run(self) -> None:
        cells = ["".join(c["source"]) for c in self.notebook["cells"] if c["cell_type"] == "code"]
        with folder() as home, agent() as socket:
            shutil.copytree(os.path.join(EXAMPLES, "pytorch"), os.path.join(home, "pytorch"))
            shutil.copy(os.path.join(EXAMPLES, "train.py"), home)  # it is beside the notebook, and not what is meant
            done = run(sys.executable, "-c", PATIENT + "\n".join(cells), cwd=home,
                       env=environment(STALLSPAN_SOCKET=socket))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("2 workers:", done.stdout)
            epochs = [w["epoch"] for w in get(socket, "/v1/windows")["ended"] if w["kind"] == "epoch"]
            self.assertEqual(epochs, [0, 1])


@needs_program
class Slurm(unittest.TestCase):
    def script(self, name: str, env: Dict[str, str]) -> None:
        """Run a script as Slurm does: it must succeed and be silent."""
        done = run(os.path.join(EXAMPLES, "slurm", name), env=env)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)

    def environment(self, home: str, **changes: str) -> Dict[str, str]:
        """Return what Slurm sets, with stand-ins for nvidia-smi and logger before the real ones."""
        tools = os.path.join(home, "bin")
        os.makedirs(tools, exist_ok=True)
        for name, text in (("nvidia-smi", 'echo "0, GPU-a"; echo "1, GPU-b"'),
                           ("logger", 'echo "$@" >>"%s/log"' % home)):
            path = os.path.join(tools, name)
            with open(path, "w") as file:
                file.write("#!/bin/sh\n%s\n" % text)
            os.chmod(path, 0o755)
        return environment(PATH=tools + ":" + os.environ["PATH"], STALLSPAN=PROGRAM, SLURM_JOB_ID="42",
                           SLURM_JOB_USER="ada", SLURM_JOB_PARTITION="gpu", SLURM_JOB_GPUS="0,1",
                           STALLSPAN_JOBS=os.path.join(home, "jobs"), **changes)

    def logged(self, home: str) -> List[str]:
        """Return what was logged."""
        with open(os.path.join(home, "log")) as file:
            return file.read().splitlines()

    def test_a_job(self) -> None:
        with folder() as home, agent() as socket:
            env = self.environment(home, STALLSPAN_SOCKET=socket)
            self.script("prolog.sh", env)
            self.script("prolog.sh", env)  # of a further step
            running = get(socket, "/v1/windows")["running"]
            self.assertEqual([(w["name"], w["scope"]) for w in running], [("job 42", "host")])
            self.script("epilog.sh", env)
            self.script("epilog.sh", env)
            windows = get(socket, "/v1/windows")
            self.assertEqual((len(windows["running"]), len(windows["ended"])), (0, 1))
            self.assertFalse(windows["ended"][0].get("unfinished", False))
            lines = self.logged(home)
            self.assertEqual(len(lines), 1)
            self.assertTrue(lines[0].startswith("-t stallspan job 42 of ada: job 42: "), lines)
            self.assertEqual(os.listdir(os.path.join(home, "jobs")), [])

            env["SLURM_JOB_EXIT_CODE"] = "256"
            self.script("prolog.sh", env)
            self.script("epilog.sh", env)
            self.assertTrue(get(socket, "/v1/windows")["ended"][1]["unfinished"])

    def test_what_it_announces(self) -> None:
        with folder() as home:
            env = self.environment(home)
            program = os.path.join(home, "bin", "stallspan")
            with open(program, "w") as file:
                file.write('#!/bin/sh\nprintf "%%s\\n" "$@" >"%s/arguments"\necho id\n' % home)
            os.chmod(program, 0o755)
            driver = os.path.join(home, "driver")
            for minor, uuid in (("0", "GPU-c"), ("1", "GPU-d"), ("2", "GPU-????????")):
                os.makedirs(os.path.join(driver, uuid))
                with open(os.path.join(driver, uuid, "information"), "w") as file:
                    file.write("GPU UUID: \t %s\nDevice Minor: \t %s\n" % (uuid, minor))
            env.update(STALLSPAN=program)
            # What slurmd sets, and the GPUs that are announced: by nvidia-smi, by the driver, and parts of a GPU.
            for number, changes, gpus, ids in (
                    (42, {"SLURM_JOB_GPUS": "0,1,7"}, "0,1,7", ["GPU-a", "GPU-b"]),
                    (43, {"SLURM_JOB_GPUS": "1,2", "STALLSPAN_DRIVER": driver}, "1,2", ["GPU-d"]),
                    (44, {"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "MIG-x,MIG-y"}, "MIG-x,MIG-y",
                     ["MIG-x", "MIG-y"])):
                self.script("prolog.sh", dict(env, SLURM_JOB_ID=str(number), **changes))
                want = ["mark", "begin", "--kind", "custom", "--name", "job %d" % number, "--pid", "4194304",
                        "--attribute", "slurm.job.id=%d" % number, "--attribute", "slurm.job.user=ada",
                        "--attribute", "slurm.job.partition=gpu", "--attribute", "slurm.job.gpus=" + gpus]
                for uuid in ids:
                    want += ["--gpu", uuid]
                with open(os.path.join(home, "arguments")) as file:
                    self.assertEqual(file.read().splitlines(), want)

    def test_an_agent_that_refuses_the_gpus(self) -> None:
        with folder() as home:
            env = self.environment(home)
            program = os.path.join(home, "bin", "stallspan")
            with open(program, "w") as file:
                file.write('#!/bin/sh\ncase "$*" in *--gpu*) echo no such GPU >&2; exit 1;; esac\necho id\n')
            os.chmod(program, 0o755)
            self.script("prolog.sh", dict(env, STALLSPAN=program))
            with open(os.path.join(home, "jobs", "42")) as file:
                self.assertEqual(file.read(), "id\n")

    def test_nothing_stops_a_job(self) -> None:
        with folder() as home:
            env = self.environment(home, STALLSPAN_SOCKET=os.path.join(home, "absent"))
            for changes in ({}, {"STALLSPAN": "/nonexistent"}, {"SLURM_JOB_ID": ""}, {"SLURM_JOB_ID": "../42"},
                            {"STALLSPAN_JOBS": "/proc/nowhere"}):
                for name in ("prolog.sh", "epilog.sh"):
                    self.script(name, dict(env, **changes))

    @unittest.skipUnless(shutil.which("shellcheck"), "needs shellcheck")
    def test_shellcheck(self) -> None:
        scripts = [os.path.join(EXAMPLES, "slurm", name) for name in ("prolog.sh", "epilog.sh")]
        done = subprocess.run(["shellcheck"] + scripts, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
