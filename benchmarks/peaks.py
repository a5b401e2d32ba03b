"""What a core can multiply and add in a second: float32 numbers, and pairs of bfloat16 numbers where it has an instruction;
and what it reads, of sizes that are in its caches, or are not.

    python benchmarks/peaks.py

The best of many short runs of `genesis.kernels.llvm.rates`, which also says whether products of bfloat16 numbers are
computed in pairs here.
"""

from __future__ import annotations

from genesis.kernels.llvm import native, rates

ROUNDS, RUNS = 100_000, 30
MIB = 1, 8, 64


def main() -> None:
    host = native.host()
    for kind, feature in rates.FEATURES.items():
        if host is None or not host.has(feature):
            print(f"{kind}: this processor has no {feature}, or there is no llvmlite")
        else:
            print(f"{kind}: {rates.rate(kind, ROUNDS, RUNS):.0f} GFLOP/s of one core, {host.cpu}")
    for mib in MIB if host is not None else ():
        seconds = rates.reading(mib << 20, 10 * RUNS)
        print(f"{mib} MiB are read in {seconds * 1e6:.0f} us, {(mib << 20) / seconds / 1e9:.0f} GB/s by one core")
    print(f"products of bfloat16 numbers are computed in {'pairs' if rates.pairs_pay() else 'float32'}")


if __name__ == "__main__":
    main()
