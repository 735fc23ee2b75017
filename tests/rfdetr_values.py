"""Holds `rankscope advise` against RF-DETR's own TrainConfig, value by value (`make test-rfdetr`).

The class of the released package runs as it is, with pydantic and PyYAML; only torch, which it needs for names, is a
stand-in. What it refuses must be an error of ours, and nothing else may be one, but for what is listed here.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import yaml
from pydantic import ValidationError
from rfdetr_catalogue import OF_TRAIN, fields, source

VERSIONS = ("1.9.4", "1.10.1", "1.11.2")
VALUES = (
    """
0|1|2|7|-1|300|0.5|1.0|1.5|-0.5|1e-4|.5|1e400|99999999999999999999|true|false|yes|off|null|""|"4"|"4.0"|"4.5"|"1e-4"|"true"
" 4 "|1_000|017|auto|step|cosine|torch.optim.lr_scheduler.StepLR|map|coco|webdataset|bf16|fp8|per-sample|tqdm|kornia
vernier|hello|[]|[1]|[1.5]|[a]|[a, 1]|["1"]|{}|{a: 1}|.inf|.nan
""".strip()
    .replace("\n", "|")
    .split("|")
)
# Both sides of each rule about two keys.
PAIRS = (
    ("eval_ema_only: true", "use_ema: false"),
    ("eval_ema_only: true", "eval_base_model: true"),
    ("eval_ema_only: false", "eval_base_model: true"),
    ("amp_dtype: fp8", "batch_size: auto"),
    ("amp_dtype: fp8", "batch_size: 4"),
    ("compute_val_loss: false", "lr_scheduler: torch.optim.lr_scheduler.ReduceLROnPlateau"),
    ("compute_val_loss: auto", "lr_scheduler: torch.optim.lr_scheduler.ReduceLROnPlateau"),
    ("epoch: 3", "seed: 1"),
)
# Refused by what comes after TrainConfig: DataLoader takes no negative number of processes.
LATER = {("num_workers", "-1")}
# Accepted or not by what torch has, or by keys within them: the catalogue doesn't say.
NOT_SAID = {"optimizer", "optimizer_kwargs", "lr_scheduler_kwargs", "devices"}


def stand_in_for_torch():
    names = ("torch", "torch.optim", "torch.optim.lr_scheduler")
    torch, optim, schedulers = (types.ModuleType(name) for name in names)
    sys.modules.update(zip(names, (torch, optim, schedulers), strict=True))
    nothing = types.SimpleNamespace(is_available=lambda: False)
    torch.cuda, torch.backends = nothing, types.SimpleNamespace(mps=nothing)
    torch.optim, optim.lr_scheduler = optim, schedulers
    torch.device = type("device", (), {})
    optim.Optimizer = type("Optimizer", (), {})
    optim.AdamW = type("AdamW", (optim.Optimizer,), {})
    schedulers.LRScheduler = type("LRScheduler", (), {})
    schedulers.ReduceLROnPlateau = type("ReduceLROnPlateau", (), {})


def train_config(version, folder):
    place = folder / version / "config.py"
    place.write_text(source(version, folder)["config.py"])
    spec = importlib.util.spec_from_file_location(f"config_{version.replace('.', '_')}", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.SegmentationTrainConfig


def takes(config, text):
    """The trainer takes the file for what it says."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            config(**yaml.safe_load(text))
        except (ValidationError, ValueError, TypeError):
            return False
    return not any("Falling back" in str(warning.message) for warning in said)


def errors(binary, version, text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        command = [binary, "advise", file.name, "--json", "--trainer", "rfdetr", "--trainer-version", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), f"{text}\n{done.stderr}"
    found = json.loads(done.stdout)["findings"]
    return [finding["rule"] for finding in found if finding["severity"] == "error"]


def cases(config_source):
    for key in sorted(fields(config_source).keys() - NOT_SAID - OF_TRAIN):
        for value in VALUES:
            if (key, value) not in LATER:
                yield f"{key}: {value}\n"
    for pair in PAIRS:
        yield "\n".join(pair) + "\n"


def main():
    folder, binary = Path(sys.argv[1]), sys.argv[2]
    stand_in_for_torch()
    wrong = 0
    for version in VERSIONS:
        config = train_config(version, folder)
        texts = list(cases(source(version, folder)["config.py"]))
        files = [text if text.startswith("dataset_dir:") else f"dataset_dir: d\n{text}" for text in texts]
        with ThreadPoolExecutor(4) as pool:
            ours = list(pool.map(errors, repeat(binary), repeat(version), files))
        theirs = [takes(config, file) for file in files]
        answers = zip(texts, ours, theirs, strict=True)
        differ = [(text, rules) for text, rules, taken in answers if taken == bool(rules)]
        refused = theirs.count(False)
        print(f"rfdetr {version}: {len(texts)} files, {refused} refused by it, {len(differ)} differences")
        for text, rules in differ:
            print(
                f"  {text.strip()!r}: {f'{rules} from us alone' if rules else 'refused by the trainer alone'}"
            )
        wrong += len(differ)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
