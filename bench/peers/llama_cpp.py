#!/usr/bin/env python3
"""Holmes beside llama.cpp on one machine: the same file, the same threads, alternating rounds, medians.

  bench/peers/llama_cpp.py --model FILE.gguf --llama FOLDER [--holmes build/release/src/app/holmes] [--rounds 5] [--chats 8,16]

FOLDER holds llama-bench and llama-server. Both servers answer the same client (`holmes bench --url`). Prints a table, and JSON with --json.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run_json(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def holmes_offline(args):
    rows = run_json([args.holmes, "bench", args.model, "--threads", str(args.threads), "--max-batch", "1", "--rounds", "3", "--json"])
    speed = {row["name"]: row["tokens_per_s"] for row in rows}
    return {"prefill 512": speed["prefill 512 tokens"], "decode, batch 1": speed["decode, batch 1"]}


def llama_offline(args):
    rows = run_json([os.path.join(args.llama, "llama-bench"), "-m", args.model, "-t", str(args.threads), "-p", "512", "-n", "128", "-r", "3",
                     "--repack", "1", "-o", "json"])
    return {"prefill 512" if row["n_prompt"] else "decode, batch 1": row["avg_ts"] for row in rows}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def server(command, port, ready):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{ready}", timeout=2) as answer:
                    if answer.status == 200:
                        break
            except OSError:
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{command[0]} did not start; run it by hand: {' '.join(command)}")
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def chats(args, url, count, seed):
    rows = run_json([args.holmes, "bench", "--url", url, "--url-model", "model", "--requests", str(4 * count), "--concurrency", str(count),
                     "--prompt-words", "100", "--prompt-seed", str(seed), "--output-tokens", "96", "--json"])
    by_name = {row["name"]: row for row in rows}
    if by_name["requests"]["failed"]:
        sys.exit(f"{by_name['requests']['failed']} requests to {url} failed")
    return {f"{count} chats, tokens/s": by_name["throughput"]["tokens_per_s"], f"{count} chats, TTFT p50 ms": by_name["ttft_ms"]["p50"]}


def servers(args, count):
    """One server at a time, so that neither takes the other's cores."""
    port = free_port()
    with server([args.holmes, "serve", args.model, "--port", str(port), "--model-name", "model", "--threads", str(args.threads)], port, "/ready") as url:
        chats(args, url, count, 1)  # warm; prompts that neither server has seen are measured
        ours = chats(args, url, count, 2)
    port = free_port()
    with server([os.path.join(args.llama, "llama-server"), "-m", args.model, "-t", str(args.threads), "-np", str(count), "-c", str(1024 * count),
                 "--port", str(port), "--repack"], port, "/health") as url:
        chats(args, url, count, 1)
        theirs = chats(args, url, count, 2)
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--holmes", default=os.path.join(ROOT, "build/release/src/app/holmes"))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--chats", default="8")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    ours, theirs = {}, {}

    def add(to, values):
        for name, value in values.items():
            to.setdefault(name, []).append(value)

    for _ in range(args.rounds):
        add(ours, holmes_offline(args))
        add(theirs, llama_offline(args))
        for count in filter(None, args.chats.split(",")):
            a, b = servers(args, int(count))
            add(ours, a)
            add(theirs, b)
    rows = []
    for name in ours:
        a, b = statistics.median(ours[name]), statistics.median(theirs[name])
        rows.append({"name": name, "holmes": a, "llama.cpp": b, "ratio": a / b, "holmes_all": ours[name], "llama.cpp_all": theirs[name]})
    if args.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        spread = f"{min(row['holmes_all']):.0f} to {max(row['holmes_all']):.0f} | {min(row['llama.cpp_all']):.0f} to {max(row['llama.cpp_all']):.0f}"
        print(f"{row['name']:24s} {row['holmes']:9.1f} {row['llama.cpp']:9.1f}   {row['ratio']:.2f}   ({spread})")


if __name__ == "__main__":
    main()
