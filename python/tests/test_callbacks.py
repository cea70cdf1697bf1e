"""The callbacks, with stand-ins for the frameworks: Debian has none of them.

The stand-ins have the base class, and the test makes the calls in the order in which the framework's documentation
has them. So this checks the callbacks, and not that the frameworks call them.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import types
import unittest
from typing import Any, Dict, List, Optional
from unittest import mock

from .support import Case, Server, body_of
from .test_client import good


class Base:
    """A base class of callbacks without any method that does something."""


def module(name: str, **content: Any) -> types.ModuleType:
    """Return a module with this content."""
    m = types.ModuleType(name)
    m.__dict__.update(content)
    return m


class Frameworks(Case):
    def setUp(self) -> None:
        super().setUp()
        self.server: Server = self.serve(good)

    def load(self, name: str, stand_ins: Dict[str, Optional[types.ModuleType]]) -> Any:
        """Import a module of ours where the framework is a stand-in."""
        patch = mock.patch.dict(sys.modules, stand_ins)
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(lambda: sys.modules.pop(name, None))
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    def bodies(self, count: int) -> List[Dict[str, Any]]:
        """Return what was sent."""
        return [body_of(r) for r in self.server.take(count)]

    def test_nothing_is_imported_before_it_is_needed(self) -> None:
        import subprocess

        from .support import environment
        code = ("import stallspan, sys; print([m for m in sys.modules if m.split('.')[0] in "
                "('lightning', 'pytorch_lightning', 'transformers', 'keras', 'tensorflow', 'ray', "
                "'torch', 'opentelemetry')])")
        done = subprocess.run([sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout, "[]\n")

    def test_lightning(self) -> None:
        for name in ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks"):
            parts = name.split(".")
            stand_ins: Dict[str, Optional[types.ModuleType]] = {"lightning": None}
            for n in range(1, len(parts)):
                stand_ins[".".join(parts[:n])] = module(".".join(parts[:n]))
            stand_ins[name] = module(name, Callback=Base)
            ours = self.load("stallspan.lightning", stand_ins)
            trainer = types.SimpleNamespace(local_rank=0, current_epoch=0)
            callback = ours.StallspanCallback(run="r")
            for trainer.current_epoch in range(2):
                callback.on_train_epoch_start(trainer, None)
                callback.on_train_epoch_end(trainer, None)
            callback.on_train_epoch_start(trainer, None)
            self.assertIsNone(pickle.loads(pickle.dumps(callback._epochs))._window)
            callback.on_exception(trainer, None, ValueError())
            callback.teardown(trainer, None, "fit")
            self.assertEqual(self.bodies(6), [
                {"kind": "epoch", "epoch": 0, "run": "r"}, {}, {"kind": "epoch", "epoch": 1, "run": "r"}, {},
                {"kind": "epoch", "epoch": 1, "run": "r"}, {"failed": True}])
            callback.on_train_epoch_start(types.SimpleNamespace(local_rank=1, current_epoch=5), None)
            self.assertIsNone(callback._epochs._window)

    def test_hugging_face(self) -> None:
        ours = self.load("stallspan.huggingface", {"transformers": module("transformers", TrainerCallback=Base)})
        callback = ours.StallspanCallback()
        state = types.SimpleNamespace(is_local_process_zero=True, epoch=None)
        for state.epoch in (None, 0.9998, 2.0):
            callback.on_epoch_begin(None, state, None, model=None)
            callback.on_epoch_end(None, state, None)
        callback.on_epoch_begin(None, state, None)
        callback.on_train_end(None, state, None)
        self.assertEqual([b.get("epoch") for b in self.bodies(8)][::2], [0, 1, 2, 2])

    def test_keras(self) -> None:
        for name in ("keras.callbacks", "tensorflow.keras.callbacks"):
            parts = name.split(".")
            stand_ins: Dict[str, Optional[types.ModuleType]] = {"keras": None, "keras.callbacks": None}
            for n in range(1, len(parts)):
                stand_ins[".".join(parts[:n])] = module(".".join(parts[:n]))
            stand_ins[name] = module(name, Callback=Base)
            ours = self.load("stallspan.keras", stand_ins)
            callback = ours.StallspanCallback()
            callback.on_epoch_begin(0)
            callback.on_epoch_end(0, {"loss": 1})
            callback.on_epoch_begin(1)
            callback.on_train_end()
            self.assertEqual([b.get("epoch") for b in self.bodies(4)][::2], [1, 2])

    def test_ray(self) -> None:
        rank = types.SimpleNamespace(value=0)
        train = module("ray.train", get_context=lambda: types.SimpleNamespace(get_local_rank=lambda: rank.value))
        ours = self.load("stallspan.ray", {"ray": module("ray", train=train), "ray.train": train})
        self.assertEqual(list(ours.epochs(range(2))), [0, 1])
        self.assertEqual([b.get("epoch") for b in self.bodies(4)][::2], [0, 1])
        rank.value = 1
        self.assertEqual(list(ours.epochs(range(2))), [0, 1])
        self.assertEqual(self.server.requests, [])


if __name__ == "__main__":
    unittest.main()
