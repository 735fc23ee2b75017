"""Who may not read whose stacks: each rule of the kernel, named, and what can be read all the same."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import REPO

SUPPORT = REPO / "tests/support"
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def refusal(sampler, process, before, **options):
    stacks = sampler.read(1, process.pid, before=before, **options)
    assert stacks.samples == []
    [refused] = stacks.refused
    assert "py-spy" not in json.dumps(refused)
    assert str(process.pid) in " ".join(refused["remedies"]) or not refused["remedies"]
    return refused


def test_refused_for_another_user(sampler, root):
    with sampler.target("each_at_its_place") as process:
        refused = refusal(sampler, process, NOBODY)
    assert refused["rule"] == "uid"
    assert "uid 65534" in refused["detail"]
    assert "uid 0" in refused["detail"]


def test_refused_for_a_process_that_is_not_dumpable(sampler, root):
    with sampler.target("unreadable", before=NOBODY) as process:
        refused = refusal(sampler, process, NOBODY)
        assert refused["rule"] == "non_dumpable"
        # The capability helps, as is said there.
        assert sampler.read(1.5, process.pid).functions(main=True)["hot"]


def test_refused_for_capabilities_that_we_have_not(sampler, root):
    with sampler.target("each_at_its_place") as process:
        assert refusal(sampler, process, WITHOUT_CAPABILITIES)["rule"] == "capability"


def test_a_sibling_without_capabilities_is_read(sampler, root):
    with sampler.target("each_at_its_place", before=NOBODY) as process:
        stacks = sampler.read(1.5, process.pid, before=NOBODY)
    assert stacks.functions(main=True)["hot"]


@pytest.fixture(scope="module")
def built(sampler):
    def build(name, *options):
        made = sampler.path.parent / name
        subprocess.run(["cc", *options, "-O1", "-o", made, SUPPORT / f"{name}.c"], check=True)
        return made

    return build


@pytest.mark.parametrize("scope", [1, 2])
def test_refused_by_yama(sampler, built, root, scope):
    library = built("yama", "-shared", "-fPIC")
    file = sampler.path.parent / "scope"
    file.write_text(f"{scope}\n")
    variables = {"LD_PRELOAD": str(library), "YAMA_SCOPE_FILE": str(file)}
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "ml", "POD_NAME": "train-0"}
    preload = [*NOBODY, "env", *(f"{k}={v}" for k, v in (variables | pod).items())]
    with sampler.target("each_at_its_place", before=NOBODY) as process:
        refused = refusal(sampler, process, preload)
    assert refused["rule"] == "ptrace_scope"
    assert f"ptrace_scope is {scope}" in refused["detail"]
    remedies = "\n".join(refused["remedies"])
    assert ("rankscope run" in remedies) == (scope == 1)
    assert "kubectl debug train-0 -n ml " in remedies
    assert "--profile=general" in remedies
    assert f"-- rankscope diagnose --pid {process.pid}`" in remedies
    assert "kubectl logs train-0 -n ml -c " in remedies


def test_read_without_the_system_call(sampler, built):
    """Old filters of container runtimes know no process_vm_readv: /proc/<pid>/mem does as well."""
    filtered = built("filtered", "-DCALL=__NR_process_vm_readv", "-DERROR=ENOSYS")
    with sampler.target("each_at_its_place") as process:
        stacks = sampler.read(2, process.pid, before=[filtered])
    assert stacks.refused == []
    assert stacks.functions(main=True)["hot"] > 3


def test_the_library_of_a_thread_that_runs_is_refused_by_a_filter(sampler, built):
    """As containers' default profiles do: said by its rule, and the Python frames are there as before."""
    filtered = built("filtered", "-DCALL=__NR_perf_event_open", "-DERROR=EPERM")
    with sampler.target("compresses") as process:
        stacks = sampler.read(3, process.pid, before=[filtered])
    assert "perf_event_open is refused" in stacks.native_refused
    assert re.search("perf_event_paranoid is|a seccomp filter", stacks.native_refused), stacks.native_refused
    assert stacks.functions(main=True)["compresses"] == len(stacks.of(main=True)) > 3


def test_threads_of_another_pid_namespace(sampler, root):
    with sampler.target("each_at_its_place", before=["unshare", "--pid", "--fork"]) as parent:
        [pid] = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        stacks = sampler.read(2, pid)
        tasks = {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()}
        os.kill(int(pid), 9)
    assert {sample["tid"] for sample in stacks.samples} == tasks
    assert stacks.functions(main=True, tid=int(pid))["hot"]
