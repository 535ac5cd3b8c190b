#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Carry logs out with the allocators of PyTorch and CuPy.

    peers_python.py --peer torch --peer cupy --peer nothing FILE...

FILE is a log as cucoremr-bench replays it, also compressed: a recorded trace,
or one that the bench wrote of a sequence that it made up itself, which then is
the same one:

    cucoremr-bench mix --stack device_pool --log mix.csv

What is timed includes Python: about a microsecond for each call, while the
allocators' own C++ takes a third of that. "nothing" tells how much of it the
loop is; it is not taken off. For what the allocators cost a C++ program, they
have to be called from C++. Memory figures do not depend on the language.

Nothing is written to the blocks, so that every free is finished at once. The
JSON has the form that cucoremr-bench's has. PyTorch's own environment counts,
such as PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.

Exit status: 0 fine, 1 an operation or a file failed, 2 wrong usage, 3 a peer's
package or its device is not there.
"""
import argparse
import csv
import gzip
import json
import os
import statistics
import sys
import time

MISSING = 3


class Missing(Exception):
    """A peer that cannot be had here."""


class Log:
    """A log's operations: (allocate, block, bytes, stream)."""

    def __init__(self, path, scale):
        self.name = os.path.basename(path).split(".")[0]
        self.operations = []
        self.peak = 0
        self.streams = []
        self.left = []
        self._read(path, scale)

    def _rows(self, path):
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        opener = gzip.open if packed else open
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield {key.strip(): (value or "").strip()
                       for key, value in row.items() if key}

    def _stream(self, text):
        handle = 0 if text in ("", "(nil)") else int(text, 0)
        if handle not in self.streams:
            self.streams.append(handle)
        return self.streams.index(handle)

    def _read(self, path, scale):
        live = {}
        total = 0
        for number, row in enumerate(self._rows(path), 2):
            try:
                action = row["Action"]
                pointer = row["Pointer"].lower()
                stream = self._stream(row.get("Stream", ""))
                if action == "allocate":
                    size = int(row["Size"]) * scale
                    block = len(self.operations)
                    live[pointer] = (block, size, stream)
                    total += size
                    self.peak = max(self.peak, total)
                    self.operations.append((True, block, size, stream))
                elif action in ("free", "deallocate"):
                    block, size, _ = live.pop(pointer)
                    total -= size
                    self.operations.append((False, block, size, stream))
            except (KeyError, ValueError) as problem:
                raise SystemExit(f"peers_python: {path}: row {number}: "
                                 f"cannot be right: {problem}") from None
        self.left = list(live.values())


class Nothing:
    """What the loop itself costs."""
    name = "nothing (Python)"
    device = "none"

    def begin(self, streams):
        """Get ready for so many streams; drop all memory that is held."""

    def allocate(self, size, stream):
        return size

    def free(self, block, stream):
        pass

    def reserved(self):
        """Most bytes that were taken from the driver since begin()."""
        return None


class Torch:
    """PyTorch's caching allocator, through torch.cuda."""
    name = "torch caching allocator (Python)"

    def __init__(self):
        try:
            import torch
        except ImportError as problem:
            raise Missing(f"torch: {problem}") from None
        if not torch.cuda.is_available():
            raise Missing("torch: it finds no CUDA device")
        torch.cuda.init()
        self.cuda = torch.cuda
        self.device = torch.cuda.get_device_name()
        self.streams = []

    def begin(self, streams):
        self.cuda.synchronize()
        self.cuda.empty_cache()
        self.cuda.reset_peak_memory_stats()
        self.streams = [self.cuda.Stream() for _ in range(streams)]

    def allocate(self, size, stream):
        return self.cuda.caching_allocator_alloc(
            size, stream=self.streams[stream])

    def free(self, block, stream):
        self.cuda.caching_allocator_delete(block)

    def reserved(self):
        return self.cuda.max_memory_reserved()


class Cupy:
    """A CuPy memory pool over cudaMalloc."""
    name = "cupy pool (Python)"

    def __init__(self):
        try:
            import cupy
        except ImportError as problem:
            raise Missing(f"cupy: {problem}") from None
        try:
            properties = cupy.cuda.runtime.getDeviceProperties(0)
        except cupy.cuda.runtime.CUDARuntimeError as problem:
            raise Missing(f"cupy: {problem}") from None
        self.cupy = cupy
        self.device = properties["name"].decode()
        self.pool = None
        self.streams = []

    def begin(self, streams):
        self.cupy.cuda.runtime.deviceSynchronize()
        if self.pool is not None:
            self.pool.free_all_blocks()
        self.pool = self.cupy.cuda.MemoryPool()
        self.streams = [self.cupy.cuda.Stream(non_blocking=True)
                        for _ in range(streams)]

    def allocate(self, size, stream):
        with self.streams[stream]:
            return self.pool.malloc(size)

    def free(self, block, stream):
        block.mem.free()

    def reserved(self):
        # A pool that is not trimmed only grows.
        return self.pool.total_bytes()


PEERS = {"torch": Torch, "cupy": Cupy, "nothing": Nothing}


def carry_out(peer, log):
    """One pass; nanoseconds."""
    blocks = {}
    allocate = peer.allocate
    free = peer.free
    before = time.perf_counter_ns()
    for is_allocation, block, size, stream in log.operations:
        if is_allocation:
            blocks[block] = allocate(size, stream)
        else:
            free(blocks.pop(block), stream)
    passed = time.perf_counter_ns() - before
    for block, _, stream in log.left:
        free(blocks.pop(block), stream)
    return passed


def measure(peer, log, repeat):
    """A fresh pass for memory, then timed ones that find it warm."""
    result = {"scenario": "replay", "stack": peer.name, "trace": log.name,
              "label": log.name, "threads": 1, "streams": len(log.streams),
              "operations": len(log.operations), "failures": 0,
              "failure": None, "repetitions": repeat,
              "peak_live_bytes": log.peak, "peak_reserved_bytes": None,
              "grown_ratio": None, "pass_ns_per_op": None}
    try:
        peer.begin(len(log.streams))
        carry_out(peer, log)
        result["peak_reserved_bytes"] = peer.reserved()
        times = [carry_out(peer, log) / max(1, len(log.operations))
                 for _ in range(repeat)]
    except (RuntimeError, MemoryError) as problem:
        result.update(failures=1, repetitions=0,
                      failure=str(problem).split("\n", maxsplit=1)[0])
        return result
    result["pass_ns_per_op"] = {"median": statistics.median(times),
                                "min": min(times), "max": max(times)}
    if result["peak_reserved_bytes"] is not None and log.peak > 0:
        result["grown_ratio"] = result["peak_reserved_bytes"] / log.peak
    return result


def show(result):
    """One line for people."""
    if result["failures"]:
        print(f"{result['trace']:24} {result['stack']:34} FAILED: "
              f"{result['failure']}")
        return
    grown = result["grown_ratio"]
    print(f"{result['trace']:24} {result['stack']:34} "
          f"{result['pass_ns_per_op']['median']:10.1f} ns/op, with Python"
          + (f"   grown {grown:.3f}" if grown is not None else ""))


def arguments():
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--peer", action="append", choices=sorted(PEERS),
                        required=True)
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--scale", type=int, default=1, metavar="N",
                        help="take all sizes N times")
    parser.add_argument("--json", metavar="OUT")
    asked = parser.parse_args()
    if asked.repeat < 1 or asked.scale < 1:
        parser.error("--repeat and --scale are at least 1")
    return asked


def main():
    """Run all; the exit status."""
    asked = arguments()
    try:
        peers = [PEERS[name]() for name in asked.peer]
    except Missing as problem:
        print(f"peers_python: {problem}", file=sys.stderr)
        return MISSING
    results = []
    for path in asked.files:
        try:
            log = Log(path, asked.scale)
        except OSError as problem:
            print(f"peers_python: {problem}", file=sys.stderr)
            return 1
        for peer in peers:
            results.append(measure(peer, log, asked.repeat))
            show(results[-1])
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"device": peers[0].device, "driver": "cuda",
                       "simulated": False, "python": sys.version.split()[0],
                       "results": results}, file, indent=2)
    return 1 if any(result["failures"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
