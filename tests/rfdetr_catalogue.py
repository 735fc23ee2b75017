"""Holds the catalogue's RF-DETR keys and defaults against the released packages (`make test-rfdetr`).

The packages are downloaded without what they depend on, and their source is parsed, not run: the fields of
TrainConfig with their defaults, and the words that the catalogue's rules rest on.
"""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import tomllib

VERSIONS = ("1.9.0", "1.9.3", "1.9.4", "1.10.0", "1.10.1", "1.11.0", "1.11.1", "1.11.2")
REPO = Path(__file__).resolve().parent.parent
CATALOGUE = REPO / "crates" / "rankscope-core" / "src" / "catalogue" / "data" / "rfdetr.toml"
# Arguments of train() that it takes out before TrainConfig sees them.
OF_TRAIN = {"resolution", "device"}
# Defaults that are an enum's member or a constant.
NAMED = {"MultiScale.PER_BATCH": "per-batch", "_AMP_DTYPE_DEFAULT": "auto"}
# What a version's source has to say for a rule to hold there: file, text, first version.
SAID = (
    ("config.py", "eval_ema_only=True requires use_ema=True.", "1.9.0"),
    ("config.py", "eval_ema_only=True contradicts eval_base_model=True.", "1.10.0"),
    ("config.py", 'data["eval_base_model"] = not bool(data["eval_ema_only"])', "1.10.0"),
    ("config.py", "compute_val_loss=False requires a non-val/loss monitor", "1.10.0"),
    ("config.py", "FP8 training requires an explicit integer batch_size", "1.11.0"),
    ("config.py", "fp16_eval is deprecated and has no effect", "1.11.0"),
    ("training/trainer.py", '"check_val_every_n_epoch": tc.eval_interval', "1.9.0"),
    ("training/trainer.py", "save_on_train_epoch_end=True", "1.11.0"),
    ("training/module_data.py", "if self.train_config.persistent_workers is None", "1.9.0"),
)


def number(version):
    return tuple(int(part) for part in version.split("."))


def holds(bounds, version):
    compare = {
        ">=": lambda a, b: a >= b,
        "<=": lambda a, b: a <= b,
        "==": lambda a, b: a == b,
        ">": lambda a, b: a > b,
        "<": lambda a, b: a < b,
    }
    for bound in filter(None, (part.strip() for part in bounds.split(","))):
        sign = next(sign for sign in compare if bound.startswith(sign))
        other = number(bound[len(sign) :])
        width = max(len(other), 3)
        a, b = (parts + (0,) * (width - len(parts)) for parts in (number(version), other))
        if not compare[sign](a, b):
            return False
    return True


def source(version, folder):
    """The package's source as {path below rfdetr/: text}."""
    place = folder / version
    if not list(place.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(place)]
        subprocess.run([*command, f"rfdetr=={version}"], check=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        wanted = {f"rfdetr/{path}" for path, _, _ in SAID}
        return {name.removeprefix("rfdetr/"): files.read(name).decode() for name in wanted}


def fields(config):
    """Field → (has a default, default) of TrainConfig, and what SegmentationTrainConfig adds."""
    found = {}
    classes = {node.name: node for node in ast.parse(config).body if isinstance(node, ast.ClassDef)}
    for name in ("SegmentationTrainConfig", "TrainConfig"):
        for node in classes[name].body:
            if isinstance(node, ast.AnnAssign) and node.target.id != "model_config":
                found[node.target.id] = default(node.value)
    return found


def default(value):
    if value is None:
        return (False, None)
    if isinstance(value, ast.Call):
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        return default(given["default"]) if "default" in given else (False, None)
    text = ast.unparse(value)
    return (True, NAMED[text] if text in NAMED else ast.literal_eval(value))


def differences(version, files, trainer):
    real = fields(files["config.py"])
    keys = [key for key in trainer["key"] if holds(key.get("versions", ""), version)]
    ours = {key["name"]: key for key in keys}
    if len(ours) != len(keys):
        yield "a key is there twice"
    for name in sorted(real.keys() - ours.keys()):
        yield f"{name}: not in the catalogue"
    for name in sorted(ours.keys() - real.keys() - OF_TRAIN):
        yield f"{name}: not in the package"
    for name in sorted(real.keys() & ours.keys()):
        has, value = real[name]
        key = ours[name]
        if has and value is None:
            if not key.get("null") or "default" in key:
                yield f"{name}: its default is None"
        elif has and (
            key.get("default") != value or isinstance(key.get("default"), bool) != isinstance(value, bool)
        ):
            yield f"{name}: {key.get('default')!r} in the catalogue, {value!r} in the package"
        elif not has and "default" in key:
            yield f"{name}: no plain default in the package"
    for path, text, first in SAID:
        if (text in files[path]) != (number(version) >= number(first)):
            yield f"{path}: `{text}` is not what the rules rest on"


def main():
    folder = Path(sys.argv[1])
    (trainer,) = tomllib.loads(CATALOGUE.read_text())["trainer"]
    assert (trainer["first"], trainer["last"]) == (VERSIONS[0], VERSIONS[-1])
    wrong = 0
    for version in VERSIONS:
        files = source(version, folder)
        found = list(differences(version, files, trainer))
        print(f"rfdetr {version}: {len(fields(files['config.py']))} keys, {len(found)} differences")
        for difference in found:
            print(f"  {difference}")
        wrong += len(found)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
