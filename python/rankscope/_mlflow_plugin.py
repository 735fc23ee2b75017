"""What MLflow loads by itself when it is imported (entry point `mlflow.run_context_provider`), so that
RANKSCOPE_MLFLOW_INSTALL needs no line of code. It sets no tags."""

from __future__ import annotations

import os
import warnings


class Provider:
    def __init__(self) -> None:
        asked = os.environ.get("RANKSCOPE_MLFLOW_INSTALL", "0")
        if asked in ("", "0"):
            return
        try:
            from rankscope import mlflow

            mlflow.install(compat=asked == "compat")
        except Exception as error:  # `import mlflow` must not fail because of us.
            warnings.warn(f"RANKSCOPE_MLFLOW_INSTALL: {error}; MLflow records as before", stacklevel=2)

    def in_context(self) -> bool:
        return False

    def tags(self) -> dict[str, str]:
        return {}
