"""A process that compiles: it reads what a kernel is made of, and writes its machine code, until its input ends."""

from __future__ import annotations

import os
import pickle
import sys

from genesis.cuda.launch import triton


def main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write to it, as the compiler's own libraries might
    while True:
        try:
            asked = pickle.load(sys.stdin.buffer)
        except (EOFError, OSError):
            return
        try:
            answer = triton.compiled(*asked)
        except Exception:  # whoever wants it next compiles it again, and sees why it cannot be
            answer = None
        pickle.dump(answer, out)
        out.flush()
