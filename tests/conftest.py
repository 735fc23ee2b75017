"""What every test gets: the binary, a store of its own, and a clear word when the machine does not let it run."""

import importlib.util
import os
from pathlib import Path

import pytest
from support import browser, container
from support.cli import Rankscope
from support.mlflow_server import MlflowServer
from support.nvml import Nvml
from support.proxy import Proxy
from support.stacks import installed

REPO = Path(__file__).resolve().parent.parent


def need(reason):
    """Skips with the reason, also a whole file; in CI, where the machine must offer everything, fails with it."""
    if reason is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must be able to run this test: {reason}", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def need_packages(*names):
    """What the environment of the tests installs."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    need(f"needs {', '.join(missing)}" if missing else None)


# A file is one process's from its first test to its last. With the long ones first none is left at the end; what
# needs the CPUs most comes after what depends on getting one.
LONG = (
    "test_ray",
    "test_diagnose_causes",
    "test_ranks_pods",
    "test_mlflow_lost",
    "test_report",
    "test_mlflow_ranks",
    "test_mlflow_training",
    "test_crash",
    "test_mlflow_adoption",
    "test_mlflow_crowd",
    "test_mlflow_install",
    "test_tracking",
    "test_hostile",
)


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


@pytest.fixture(scope="session")
def rankscope():
    """The built binary; RANKSCOPE_BIN overrides which."""
    asked = os.environ.get("RANKSCOPE_BIN")
    candidates = (
        [Path(asked)]
        if asked
        else [REPO / "target" / profile / "rankscope" for profile in ("debug", "release")]
    )
    for path in candidates:
        if path.is_file():
            return Rankscope(path.resolve())
    pytest.fail(f"no rankscope at {', '.join(map(str, candidates))}: run `cargo build`", pytrace=False)


@pytest.fixture(scope="module")
def chromium():
    need(browser.unavailable_reason())
    with browser.chromium() as started:
        yield started


@pytest.fixture(scope="module")
def sampler():
    with installed() as sampler:
        yield sampler


@pytest.fixture
def root():
    need(None if os.geteuid() == 0 else "needs root")


@pytest.fixture
def v1_host():
    """Real cgroup v1 containers can be made here."""
    need(container.unavailable_reason())
    container.sweep()


@pytest.fixture
def fuse_host(root):
    need(None if os.path.exists("/dev/fuse") else "needs /dev/fuse")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def default_store(store, monkeypatch):
    """For commands that name none."""
    monkeypatch.setenv("RANKSCOPE_STORE", str(store))


@pytest.fixture
def nvml(rankscope, tmp_path):
    """Makes a driver: `nvml(scenario)`."""
    library = rankscope.path.parent / "libfake_nvml.so"
    need(None if library.is_file() else f"no {library}: run `cargo build --package fake-nvml`")

    def make(scenario, **options):
        return Nvml(library, tmp_path / f"nvml-{len(list(tmp_path.iterdir()))}", scenario, **options)

    return make


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A real MLflow server, one for all tests of a process: each looks at runs of its own, and leaves it alive."""
    need_packages("mlflow")
    with MlflowServer(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def proxy(server):
    with Proxy(server) as proxy:
        yield proxy


@pytest.fixture
def environment(server):
    """Of a job that delivers there, with time enough at its end."""
    return {**os.environ, "MLFLOW_TRACKING_URI": server.uri, "RANKSCOPE_GRACE": "60"}


@pytest.fixture(autouse=True)
def no_inherited_job(monkeypatch):
    """The tests' own environment must not look like a launcher's."""
    for name in list(os.environ):
        if name.startswith(("RANKSCOPE_", "MLFLOW_", "SLURM_", "TORCHELASTIC_", "OMPI_", "PMI")):
            monkeypatch.delenv(name)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "RAY_JOB_ID", "NODE_NAME", "K8S_NODE_NAME"):
        monkeypatch.delenv(name, raising=False)
