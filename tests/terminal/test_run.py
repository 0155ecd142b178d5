"""holmes run in a real terminal (a pseudo one): editing, history, Ctrl-C, Ctrl-D; and through a pipe.

HOLMES_TEST_MODEL names the model file, HOLMES_TEST_BINARY the program, as for tests/http.
"""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import termios
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_S = 120


@pytest.fixture(scope="module")
def command():
    binary = os.environ.get("HOLMES_TEST_BINARY", str(ROOT / "build/release/src/app/holmes"))
    model = os.environ.get("HOLMES_TEST_MODEL", "")
    if not os.path.exists(binary):
        pytest.skip(f"{binary} is not built")
    if not os.path.exists(model):
        pytest.skip("HOLMES_TEST_MODEL names no model file")
    return [binary, "run", model, "--context", "1024"]


def environment(home):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOLMES_", "XDG_", "LC_")) and name != "LANG"}
    return kept | {"HOME": str(home), "TERM": "xterm"}


class Terminal:
    def __init__(self, command, home):
        self.output = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell starts background jobs with it ignored
            os.execve(command[0], command, environment(home))

    def expect(self, text):
        """Waits until `text` has come since the last expect; returns what came before it."""
        end = time.monotonic() + LIMIT_S
        while text not in self.output:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, f"{text!r} did not come: {self.output!r}"
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                piece = b""
            assert piece, f"the program ended before {text!r}: {self.output!r}"
            self.output += piece.decode("utf-8", "replace")
        before, _, self.output = self.output.partition(text)
        return before

    def type(self, text):
        """Types at the prompt. libedit shows the prompt a moment before it takes the keys from the terminal's own line editing: that is waited for."""
        end = time.monotonic() + LIMIT_S
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "the program reads no keys"
            time.sleep(0.005)
        os.write(self.fd, text.encode())

    def interrupt(self):
        """Ctrl-C while an answer comes."""
        os.write(self.fd, b"\x03")

    def end(self):
        """The exit code once the program has ended."""
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("the program does not end")


def test_a_conversation_with_history(command, tmp_path):
    terminal = Terminal(command + ["--temperature", "0", "--max-tokens", "16"], tmp_path)
    terminal.expect("/exit or Ctrl-D leaves")
    terminal.expect("> ")
    terminal.type("What is the capital of France?\r")
    terminal.expect("The capital of France is Paris.")
    terminal.expect("> ")
    terminal.type("/claer\r")
    terminal.expect("did you mean /clear?")
    terminal.expect("> ")
    terminal.type("/clear\r")
    terminal.expect("forgotten")
    terminal.expect("> ")
    terminal.type("/exit\r")
    assert terminal.end() == 0

    again = Terminal(command + ["--temperature", "0", "--max-tokens", "16"], tmp_path)
    again.expect("> ")
    again.type("\x1b[A" * 4)  # up: the first line of the session before
    again.expect("What is the capital of France?")
    again.type("\r")
    again.expect("The capital of France is Paris.")
    again.expect("> ")
    again.type("\x04")
    assert again.end() == 0


def test_ctrl_c_stops_the_answer_and_nothing_else(command, tmp_path):
    terminal = Terminal(command + ["--temperature", "0"], tmp_path)
    terminal.expect("> ")
    terminal.type("Count from one to one thousand, one number per line.\r")
    terminal.expect("thousand, one number per line.")
    terminal.expect("\n")
    while len(terminal.output.strip()) < 20:
        terminal.output += os.read(terminal.fd, 65536).decode("utf-8", "replace")
    terminal.interrupt()
    terminal.expect("> ")
    terminal.type("half a line\x03")
    terminal.expect("> ")
    terminal.type("/exit\r")
    assert terminal.end() == 0


def test_letters_beyond_ascii_can_be_typed(command, tmp_path):
    terminal = Terminal(command + ["--max-tokens", "1"], tmp_path)
    terminal.expect("> ")
    terminal.type("/héllo中\r")
    terminal.expect("There is no /héllo中")
    terminal.expect("> ")
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_pipe_is_one_message(command, tmp_path):
    run = subprocess.run(
        command + ["--temperature", "0", "--max-tokens", "16"],
        input="What is the capital\nof France?\n", capture_output=True, text=True, env=environment(tmp_path), timeout=LIMIT_S,
    )
    assert run.returncode == 0
    assert "Paris" in run.stdout
    assert not (tmp_path / ".local").exists()


@pytest.mark.parametrize("text", ["", "\n"])
def test_an_empty_pipe_is_an_error(command, tmp_path, text):
    run = subprocess.run(command, input=text, capture_output=True, text=True, env=environment(tmp_path), timeout=LIMIT_S)
    assert run.returncode == 2
    assert run.stderr == "holmes: the prompt is empty\n"


def test_what_is_wrong_with_a_model_is_one_line(command, tmp_path):
    model = pathlib.Path(command[2]).read_bytes()
    (tmp_path / "cut.gguf").write_bytes(model[: len(model) // 2])
    (tmp_path / "version.gguf").write_bytes(model[:4] + b"\x63\0\0\0" + model[8:4096])
    flipped = bytearray(model[: 1 << 20])
    flipped[8] ^= 0x80
    (tmp_path / "flipped.gguf").write_bytes(flipped)
    (tmp_path / "closed.gguf").write_bytes(model[:4096])
    (tmp_path / "closed.gguf").chmod(0)
    names = ["missing.gguf", "cut.gguf", "version.gguf", "flipped.gguf"] + ([] if os.geteuid() == 0 else ["closed.gguf"])
    for name in names:
        run = subprocess.run(
            [command[0], "serve", str(tmp_path / name), "--port", "0"], capture_output=True, text=True, env=environment(tmp_path), timeout=LIMIT_S
        )
        # Beside the log, which says that the port is taken before the model is read.
        lines = [line for line in run.stderr.splitlines() if line.startswith("holmes: ") and not line.startswith("holmes: loading")]
        logged = [line for line in run.stderr.splitlines() if not line.startswith("holmes: ")]
        assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info ", line) for line in logged), (name, run.stderr)
        assert run.returncode == 1, (name, run.stderr)
        assert len(lines) == 1 and lines[0].startswith("holmes: ") and name in lines[0], (name, run.stderr)
