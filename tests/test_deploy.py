"""deploy/: manifests against the published schemas, without a cluster and offline; the batch script with a stand-in
for srun."""

import json
import os
import re
import subprocess

import pytest
from conftest import REPO, need, need_packages
from support.cli import Rankscope

DEPLOY = REPO / "deploy"
MANIFESTS = sorted(DEPLOY.glob("*.yaml"))
VERSION = "1.32"


@pytest.fixture(scope="module")
def validate():
    need_packages("kubernetes_validate")
    import kubernetes_validate as schemas

    return lambda resource: schemas.validate(resource, VERSION, strict=True)


def documents(path):
    need_packages("yaml")
    import yaml

    return list(yaml.safe_load_all(path.read_text()))


def pods(document):
    """Name → spec of each pod that the document makes."""
    spec = document["spec"]
    if document["kind"] == "Pod":
        return {"pod": spec}
    if document["kind"] == "Job":
        return {"pod": spec["template"]["spec"]}
    if document["kind"] == "RayJob":
        cluster = spec["rayClusterSpec"]
        groups = {group["groupName"]: group for group in cluster["workerGroupSpecs"]}
        every = {"head": cluster["headGroupSpec"], **groups}
        return {name: group["template"]["spec"] for name, group in every.items()}
    return {}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_are_valid(path, validate):
    for document in documents(path):
        if document["kind"] != "RayJob":
            validate(document)
            continue
        import jsonschema

        schema = json.loads((REPO / "fixtures/schemas/rayjob-v1.json").read_text())
        jsonschema.validate(document, schema)
        for name, spec in pods(document).items():
            validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})


def test_a_misspelt_field_is_found(validate):
    import jsonschema
    import kubernetes_validate

    [job] = documents(DEPLOY / "job.yaml")
    job["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        validate(job)
    [ray_job] = documents(DEPLOY / "rayjob.yaml")
    ray_job["spec"]["rayClusterSpec"]["workerGroupSpec"] = []
    schema = json.loads((REPO / "fixtures/schemas/rayjob-v1.json").read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(ray_job, schema)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_recorders_know_their_node_and_have_a_volume(path):
    for document in documents(path):
        for name, spec in pods(document).items():
            if name == "head":
                continue
            containers = [*spec.get("initContainers", []), *spec["containers"]]
            [recorder] = [one for one in containers if "volumeMounts" in one]
            env = {one["name"]: one for one in recorder["env"]}
            assert env["NODE_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"
            mounts = {one["name"]: one["mountPath"] for one in recorder["volumeMounts"]}
            assert mounts["rankscope"] == "/rankscope"
            assert {one["name"] for one in spec["volumes"]} >= mounts.keys()


def test_commands_are_ours(rankscope):
    """Options that manifests and the batch script give are options of the command."""
    for path in DEPLOY.iterdir():
        for command, options in re.findall(r"rankscope (run|watch)((?: +--[a-z-]+)*)", path.read_text()):
            known = rankscope.run(command, "--help", check=0).stdout
            assert all(option in known for option in options.split() if option != "--"), (path, options)


SRUN = """#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
for rank in 0 1; do SLURM_PROCID=$rank SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 "$@" || exit; done
"""


def test_the_batch_script(rankscope: Rankscope, tmp_path):
    need(None if os.path.exists("/bin/bash") else "needs bash")
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "srun").write_text(SRUN)
    (commands / "srun").chmod(0o755)
    (commands / "rankscope").symlink_to(rankscope.path)
    (tmp_path / "train.py").write_text("print('trained')")
    script = (DEPLOY / "train.sbatch").read_text()
    # No server here.
    script = re.sub(r"export MLFLOW_TRACKING_URI=.*\n", "", script)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}", "SLURM_TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("trained") == 2
    found = sorted(path.name for path in (tmp_path / "rankscope").rglob("*.sqlite"))
    assert found == ["rank_00.sqlite", "rank_01.sqlite"]
