"""Lightning: a recorder for each rank's training, which knows step, epoch and phase.

    trainer = Trainer(logger=MLFlowLogger(...), callbacks=[rankscope.lightning.Callback()])

See docs/frameworks.md.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import rankscope

__all__ = ["Callback"]


def _base() -> Any:
    """Of the package that the training uses: `pytorch_lightning` is the same code under another name, and a class of
    the one is none of the other's callbacks."""
    for name in ("lightning.pytorch", "pytorch_lightning"):
        if name in sys.modules:
            return sys.modules[name].Callback
    for name in ("lightning.pytorch", "pytorch_lightning"):
        try:
            return importlib.import_module(name).Callback
        except ImportError:
            continue
    return object


class Callback(_base()):  # type: ignore[misc]
    """`options` are those of `rankscope.start`."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self._options = options
        self._recorder: rankscope.Recorder | None = None

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        logger = next((one for one in trainer.loggers if hasattr(one, "run_id")), None)
        told = None
        if logger is not None and trainer.global_rank == 0:
            told = (logger.run_id, getattr(logger, "_tracking_uri", None))
        # Only rank 0 makes a run. Every rank calls this.
        told = trainer.strategy.broadcast(told, src=0)
        run_id, tracking_uri = told or (None, None)
        self._recorder = rankscope.start(
            run_id,
            tracking_uri,
            **{"rank": trainer.global_rank, "world_size": trainer.world_size, **self._options},
        )

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        rankscope.mark(epoch=trainer.current_epoch, phase="train")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        rankscope.mark(step=trainer.global_step, phase="train")

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        rankscope.mark(phase="validation")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        rankscope.mark(phase="")

    def on_save_checkpoint(self, trainer: Any, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        # Of its end nobody tells; the next batch begins another phase.
        rankscope.mark(phase="checkpoint")

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._stop(exception)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        self._stop(None)

    def _stop(self, error: BaseException | None) -> None:
        if self._recorder is not None:
            self._recorder.__exit__(None, error, None)
