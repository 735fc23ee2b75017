"""Hugging Face Transformers: a recorder for each rank's training, which knows step, epoch and phase.

    trainer = Trainer(..., callbacks=[rankscope.transformers.Callback()])

See docs/frameworks.md.
"""

from __future__ import annotations

from typing import Any

import rankscope

try:
    from transformers import TrainerCallback
except ImportError:
    TrainerCallback = object

__all__ = ["Callback"]


class Callback(TrainerCallback):  # type: ignore[misc]
    """`options` are those of `rankscope.start`."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._recorder: rankscope.Recorder | None = None

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Before the run is made, so that MLflow marks it as this job's, and the other ranks find it.
        self._start(args)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Once more, for a second `train()`.
        if self._recorder is None:
            self._start(args)

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        rankscope.mark(epoch=int(state.epoch or 0))

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        rankscope.mark(step=state.global_step, phase="train")

    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        rankscope.mark(phase="evaluate")

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        rankscope.mark(phase="")

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.stop()

    def _start(self, args: Any) -> None:
        place = {"rank": args.process_index, "world_size": args.world_size}
        self._recorder = rankscope.start(**{**place, **self._options})
