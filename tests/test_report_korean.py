"""The Korean page of `rankscope report` and `postmortem --html`: nothing on it is left in English."""

import re

import pytest
from support import browser, made_store

# Names and terms that Korean engineers read and write as they are.
TERMS = re.compile(
    r"""`[^`]*`|/\S*|<\S+>|--[\w-]+|\b[\w<>…]*[_./=:()@*+-]+\w[\w<>…()*./=:-]*|"""
    r"""\b(GPU|CPU|OOM|RSS|PSS|MIG|RDMA|NVML|NVLink|PCIe|RAID|I/O|UTC|MLflow|Python|NumPy|JavaScript|Linux|Kubernetes|"""
    r"""Docker|InfiniBand|RoCE|Shift|Home|End|English|rankscope|rank|cgroup|kubelet|cpuset|affinity|overlay|root|pid|"""
    r"""sysfs|tmpfs|mmap|read|write|stderr|anon|shmem|file|collective|request|limit|emptyDir|medium|Memory|device|"""
    r"""mapper|loop|power|brake|gradient|accumulation|checkpointing|liveness|probe|scancel|kubectl|delete|describe|pod|"""
    r"""loss|killer|MemTotal|statvfs|waitid|shm|train|ECC|ID|Xid|bytes|swap|psutil|used|df|SIG[A-Z]+|MiB|GiB|TiB|KiB|MB|GB|kB|W|s|h|min|d|v1|v2|x)\b""",
    re.ASCII,
)


def english_left(page):
    """Words on the page that are neither Korean nor terms, beside each text that has them. Code, names
    and the sentences of a diagnosis aside."""
    texts = page.evaluate(
        """() => {
            document.querySelectorAll("details").forEach((d) => (d.open = true));
            const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            const skipped = "script, noscript, code, h1, #language, .meta, #chart-metric-0 h3, #slow [lang=en]";
            const all = [];
            const text = (node) => node.parentElement.closest(skipped) || all.push(node.data);
            while (walk.nextNode()) text(walk.currentNode);
            const labelled = [...document.querySelectorAll("[aria-label]")];
            return all.concat(labelled.map((e) => e.getAttribute("aria-label")));
        }"""
    )
    left = {text: re.findall(r"[A-Za-z]+", TERMS.sub(" ", text)) for text in texts}
    return {text: words for text, words in left.items() if words}


EVENTS = [
    (
        "near_limit",
        made_store.START + 5000,
        {"level": "/k/p", "held_bytes": 1e9, "limit_bytes": 2e9, "seconds_left": 9},
    ),
    ("calm_again", made_store.START + 5500, {"level": "/k/p", "held_bytes": 1e9, "limit_bytes": 2e9}),
    (
        "limit_events",
        made_store.START + 6000,
        {"level": "/k/p", "max": 3, "high": 2, "oom": 1, "oom_kill": 1},
    ),
    ("memory_stall", made_store.START + 6500, {"level": "/k/p", "cause": "memory.high"}),
    ("memory_stall", made_store.START + 7000, {"level": "/k/p"}),
    ("gpu_xid", made_store.START + 7500, {"gpu": "0", "detail": "GPU 0: the driver reports Xid 79"}),
    ("phase", made_store.START + 8000, {"begin": "train", "end": None, "pid": 1}),
]


def test_a_page_with_all_parts(chromium, rankscope, tmp_path):
    """A made job of several ranks, others missing, that has everything a page can show but a run on a server."""
    names = {"events": EVENTS, "missing": [("node_load_1m", "absent", "/proc/loadavg: no such file")]}
    ranks = made_store.job(
        rankscope, tmp_path / "job", tmp_path / "schema", ranks=2, windows=400, names=names
    )
    ranks[1].path.unlink()
    rankscope.run("report", tmp_path / "job", "-o", tmp_path / "report.html", check=0)
    with browser.Opened(chromium, (tmp_path / "report.html").as_uri(), locale="ko-KR") as shown:
        parts = {"verdict", "events", "measured", "missing", "node", "chart-memory", "chart-gpu_power"}
        assert parts <= set(shown.page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)"))
        assert english_left(shown.page) == {}
        sentence = shown.page.locator(".sentence span")
        assert sentence.get_attribute("lang") == "ko"
        korean = sentence.text_content()
        shown.page.locator("#language").click()
        assert sentence.get_attribute("lang") == "en"
        assert "completed at" in sentence.text_content()
        shown.page.locator("#language").click()
        assert sentence.text_content() == korean
        assert not shown.complaints


@pytest.mark.parametrize(
    "script",
    ["sleep 2; exit 3", "sleep 2; kill -9 $$", "sleep 2; kill -TERM $PPID; sleep 20", "sleep 2; exit 137"],
    ids=["code", "SIGKILL", "asked", "137"],
)
def test_the_end_of_a_real_job(chromium, rankscope, tmp_path, script):
    rankscope.run("run", "--store", tmp_path / "s", "--", "sh", "-c", script)
    rankscope.run("postmortem", tmp_path / "s", "--html", tmp_path / "end.html", check=0)
    with browser.Opened(chromium, (tmp_path / "end.html").as_uri(), locale="ko-KR") as shown:
        assert shown.page.locator("#missing tr").count() > 0
        assert english_left(shown.page) == {}
        assert not shown.complaints
