"""What a core can multiply and add in a second: float32 numbers, and pairs of bfloat16 numbers where it has an instruction.

    python benchmarks/peaks.py

The best of many short runs of `genesis.kernels.llvm.rates`, which also says whether products of bfloat16 numbers are
computed in pairs here.
"""

from __future__ import annotations

from genesis.kernels.llvm import native, rates

ROUNDS, RUNS = 100_000, 30


def main() -> None:
    host = native.host()
    for kind, feature in rates.FEATURES.items():
        if host is None or not host.has(feature):
            print(f"{kind}: this processor has no {feature}, or there is no llvmlite")
        else:
            print(f"{kind}: {rates.rate(kind, ROUNDS, RUNS):.0f} GFLOP/s of one core, {host.cpu}")
    print(f"products of bfloat16 numbers are computed in {'pairs' if rates.pairs_pay() else 'float32'}")


if __name__ == "__main__":
    main()
