"""Imports, for as long as it runs: a large program of which nothing is compiled yet."""

import importlib
import sys
import tempfile
from pathlib import Path

from job import Job

sys.dont_write_bytecode = True
job = Job("startup_import", "import")
lines = int(job.vary(400))
FUNCTION = """
def f{n}(a, b={n}, *rest, **named):
    table = {{k: (v, [v * {n}, b]) for k, v in enumerate(rest)}}
    return [table.get(i, a)[0] if i % 3 else named.get(str(i)) for i in range(b)]
"""
MODULE = "".join(FUNCTION.format(n=n) for n in range(lines))
with tempfile.TemporaryDirectory() as directory:
    package = Path(directory) / "library"
    package.mkdir()
    (package / "__init__.py").write_text("")
    sys.path.insert(0, directory)
    number = 0
    while job.running():
        (package / f"part_{number}.py").write_text(MODULE)
        importlib.invalidate_caches()
        with job.part("import"):
            importlib.import_module(f"library.part_{number}")
        number += 1
job.facts["modules"] = number
job.end()
