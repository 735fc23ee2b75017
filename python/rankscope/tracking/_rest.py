"""A small client of an MLflow server's REST interface, for where MLflow is not installed.

Only integers as step and time and only finite values are sent: the server stores a half-read batch silently and
answers 200. No credential is in any text.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import getpass
import http.client
import json
import math
import os
import random
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import IO, Any

from rankscope._recorder import _warn
from rankscope.tracking._keys import valid
from rankscope.tracking._store import MAX_METRICS, MAX_PARAMS, MAX_TAGS, batches

API = "/api/2.0/mlflow"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
INT64 = 2**63
# Servers cut longer values off without a word.
MAX_PARAM = 500
MAX_TAG = 5000
# 400 with this text is a pool of connections that is in use, not a mistake of ours.
POOL = "QueuePool limit"
TRANSIENT = (408, 429, 500, 502, 503, 504)
TRIES = 5


class TrackingError(RuntimeError):
    """The MLflow server refused, or can't be reached."""

    def __init__(self, text: str, code: int | None = None, error_code: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.error_code = error_code

    @property
    def is_transient(self) -> bool:
        return self.code is None or self.code in TRANSIENT or POOL in str(self)


class RestStore:
    def __init__(self, uri: str) -> None:
        self.uri = uri
        parts = urllib.parse.urlsplit(uri.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            what = f"a `{parts.scheme}:` address" if parts.scheme else "not an address" if uri else "not set"
            raise TrackingError(
                f"MLFLOW_TRACKING_URI is {what}; without MLflow it must be http(s): "
                "set it, or `pip install mlflow-skinny`"
            )
        self._server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
        self._headers = _headers(parts)
        self._opener = urllib.request.build_opener(
            _NoRedirect, urllib.request.HTTPSHandler(context=_tls(os.environ))
        )
        self._timeout = float(os.environ.get("MLFLOW_HTTP_REQUEST_TIMEOUT") or 120)
        self._artifact_roots: dict[str, str] = {}

    def create_run(
        self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]
    ) -> tuple[str, str]:
        all_tags = {**_own_tags(), **tags}
        body = {
            "experiment_id": self._experiment(experiment),
            "start_time": time.time_ns() // 1_000_000,
            "run_name": run_name or "",
            "tags": [_pair(key, value, MAX_TAG) for key, value in all_tags.items()],
        }
        # A second try might make a second run.
        info = self._call("POST", "runs/create", body, tries=1)["run"]["info"]
        return info["run_id"], info["experiment_id"]

    def begin_run(self, experiment: str | None, run_name: str | None, tags: Mapping[str, str]) -> str:
        return self.create_run(experiment, run_name, tags)[0]

    def _experiment(self, name: str | None) -> str:
        name = name or os.environ.get("MLFLOW_EXPERIMENT_NAME")
        if not name:
            return os.environ.get("MLFLOW_EXPERIMENT_ID") or "0"
        for _ in range(2):
            try:
                query = urllib.parse.urlencode({"experiment_name": name})
                found = self._call("GET", f"experiments/get-by-name?{query}")
                return str(found["experiment"]["experiment_id"])
            except TrackingError as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
            try:
                return str(self._call("POST", "experiments/create", {"name": name})["experiment_id"])
            except TrackingError as error:
                # Another process was faster.
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
        raise TrackingError(f"experiment {name} can be neither found nor made")

    def end_run(self, run_id: str, status: str) -> None:
        now = time.time_ns() // 1_000_000
        self._call("POST", "runs/update", {"run_id": run_id, "status": status, "end_time": now})

    def log_metrics(self, run_id: str, metrics: Mapping[str, float], step: int, unix_ms: int) -> None:
        if not -INT64 <= step < INT64:
            raise ValueError(f"step {step} does not fit into 64 bits")
        odd = [key for key, value in metrics.items() if not math.isfinite(value)]
        for key in odd:
            _warn(f"{key} was not finite: such values are not sent without MLflow installed")
        points = [
            {"key": valid(key), "value": value, "timestamp": unix_ms, "step": step}
            for key, value in metrics.items()
            if math.isfinite(value)
        ]
        for part in batches(points, MAX_METRICS):
            self._call("POST", "runs/log-batch", {"run_id": run_id, "metrics": part})

    def log_params(self, run_id: str, params: Mapping[str, str]) -> None:
        pairs = [_pair(key, value, MAX_PARAM) for key, value in params.items()]
        for part in batches(pairs, MAX_PARAMS):
            self._call("POST", "runs/log-batch", {"run_id": run_id, "params": part})

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        pairs = [_pair(key, value, MAX_TAG) for key, value in tags.items()]
        for part in batches(pairs, MAX_TAGS):
            self._call("POST", "runs/log-batch", {"run_id": run_id, "tags": part})

    def tags(self, run_id: str) -> dict[str, str]:
        data = self._run(run_id)["data"]
        return {tag["key"]: tag.get("value", "") for tag in data.get("tags", [])}

    def delete_tag(self, run_id: str, key: str) -> None:
        self._call("POST", "runs/delete-tag", {"run_id": run_id, "key": valid(key)})

    def _run(self, run_id: str) -> Any:
        return self._call("GET", f"runs/get?{urllib.parse.urlencode({'run_id': run_id})}")["run"]

    def log_artifact(self, run_id: str, path: str, to: str | None) -> None:
        target = urllib.parse.quote(f"{self._artifact_root(run_id)}/{_join(to, os.path.basename(path))}")
        size = str(os.path.getsize(path))
        headers = {"Content-Type": "application/octet-stream", "Content-Length": size}
        _retry(lambda: self._upload(f"{ARTIFACTS}/{target}", path, headers))

    def _upload(self, target: str, path: str, headers: Mapping[str, str]) -> None:
        with open(path, "rb") as file:
            self._send("PUT", target, file, headers)

    def log_artifacts(self, run_id: str, path: str, to: str | None) -> None:
        for folder, _, files in os.walk(path):
            below = os.path.relpath(folder, path)
            for name in files:
                self.log_artifact(run_id, os.path.join(folder, name), _join(to, below) or None)

    def _artifact_root(self, run_id: str) -> str:
        if run_id not in self._artifact_roots:
            parts = urllib.parse.urlsplit(self._run(run_id)["info"].get("artifact_uri", ""))
            if parts.scheme != "mlflow-artifacts":
                raise TrackingError(
                    f"artifacts of this run lie under `{parts.scheme}:`, where only MLflow can write: "
                    "`pip install mlflow-skinny`"
                )
            self._artifact_roots[run_id] = parts.path.strip("/")
        return self._artifact_roots[run_id]

    def flush(self) -> None:
        pass

    def _call(self, method: str, path: str, body: object = None, tries: int = TRIES) -> Any:
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Content-Type": "application/json"}
        text = _retry(lambda: self._send(method, f"{API}/{path}", data, headers), tries)
        try:
            return json.loads(text or b"{}")
        except ValueError:
            raise TrackingError(
                f"{self._server} answers with something else than JSON: {_start(text)}"
            ) from None

    def _send(
        self, method: str, target: str, data: bytes | IO[bytes] | None, headers: Mapping[str, str]
    ) -> bytes:
        request = urllib.request.Request(
            self._server + target, data, {**self._headers, **headers}, method=method
        )
        where = f"{self._server}{target.partition('?')[0]}"
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                text: bytes = answer.read()
                return text
        except urllib.error.HTTPError as error:
            raise _refused(where, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            raise TrackingError(f"{where}: {reason}") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirected POST would lose its body."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _retry(attempt: Any, tries: int = TRIES) -> bytes:
    for n in range(1, tries + 1):
        try:
            text: bytes = attempt()
            return text
        except TrackingError as error:
            if n == tries or not error.is_transient:
                raise
            time.sleep(2 ** (n - 2) * random.uniform(0.5, 1.0))
    raise AssertionError("at least one try")


def _refused(where: str, error: urllib.error.HTTPError) -> TrackingError:
    text = error.read(20_000)
    if 300 <= error.code < 400:
        place = error.headers.get("Location", "").partition("?")[0]
        return TrackingError(
            f"{where} redirects to {place}: set MLFLOW_TRACKING_URI to that server", error.code
        )
    try:
        told = json.loads(text)
        return TrackingError(f"{where}: {told['message']}", error.code, told.get("error_code", ""))
    except (ValueError, TypeError, KeyError):
        return TrackingError(f"{where}: HTTP {error.code}: {_start(text)}", error.code)


def _start(text: bytes) -> str:
    return " ".join(text[:300].decode(errors="replace").split())


def _join(*parts: str | None) -> str:
    return "/".join(part.strip("/") for part in parts if part and part != ".")


def _pair(key: str, value: str, longest: int) -> dict[str, str]:
    if len(value) > longest:
        _warn(f"the value of {key} was longer than {longest} characters: its end is cut off")
    return {"key": valid(key), "value": value[:longest]}


def _own_tags() -> dict[str, str]:
    """As MLflow's: who made the run, and what stands in MLFLOW_RUN_CONTEXT."""
    tags = {"mlflow.source.name": sys.argv[0] if sys.argv else "", "mlflow.source.type": "LOCAL"}
    # A container's user often has no name.
    with contextlib.suppress(OSError, KeyError, ImportError):
        tags["mlflow.user"] = getpass.getuser()
    try:
        context = json.loads(os.environ.get("MLFLOW_RUN_CONTEXT") or "{}")
        tags.update({str(key): str(value) for key, value in context.items()})
    except (ValueError, AttributeError):
        _warn("MLFLOW_RUN_CONTEXT is not a JSON object: its tags are not set")
    return tags


def _headers(parts: urllib.parse.SplitResult) -> dict[str, str]:
    headers = {"User-Agent": "rankscope"}
    if workspace := os.environ.get("MLFLOW_WORKSPACE"):
        headers["X-MLFLOW-WORKSPACE"] = workspace
    user, password = _credentials()
    if parts.username is not None:
        user = urllib.parse.unquote(parts.username)
        password = urllib.parse.unquote(parts.password or "")
    if user and password:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    elif token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _credentials() -> tuple[str | None, str | None]:
    file = configparser.ConfigParser(interpolation=None)
    try:
        file.read(os.path.expanduser("~/.mlflow/credentials"))
    except configparser.Error:
        _warn("~/.mlflow/credentials can't be read")

    def either(name: str) -> str | None:
        return os.environ.get(name) or file.get("mlflow", name.lower(), fallback=None)

    return either("MLFLOW_TRACKING_USERNAME"), either("MLFLOW_TRACKING_PASSWORD")


def _tls(environ: Mapping[str, str]) -> ssl.SSLContext:
    insecure = environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1")
    bundle = environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH")
    if insecure and bundle:
        raise TrackingError(
            "MLFLOW_TRACKING_INSECURE_TLS and MLFLOW_TRACKING_SERVER_CERT_PATH are both set: unset one of them"
        )
    bundle = bundle or environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE")
    if bundle and os.path.isdir(bundle):
        context = ssl.create_default_context(capath=bundle)
    else:
        context = ssl.create_default_context(cafile=bundle or None)
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if client := environ.get("MLFLOW_TRACKING_CLIENT_CERT_PATH"):
        context.load_cert_chain(client)
    return context
