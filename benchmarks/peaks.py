"""What a core can multiply and add in a second: float32 numbers, and pairs of bfloat16 numbers where it has units for them;
and what it reads, of sizes that are in its caches, or are not.

    python benchmarks/peaks.py

The best of many short runs of `genesis.kernels.llvm.rates`, which also says by which unit products of bfloat16 numbers
are computed here.
"""

from __future__ import annotations

from genesis.kernels.llvm import loops, native, rates, units

ROUNDS, RUNS = 100_000, 30
MIB = 1, 8, 64


def main() -> None:
    host, lanes = native.host(), loops.width() // 4
    if host is None or not loops.available():
        print("there is no llvmlite, or the processor does not multiply and add in one")
        return
    here = units.of_pairs(lanes)
    for name, unit in units.UNITS.items():
        if name == units.FLOAT32 or name in here:
            print(f"{name}: {rates.rate(name, ROUNDS, RUNS):.0f} GFLOP/s of one core, {host.cpu}")
        else:
            print(f"{name}: this processor has no {unit.feature}, or a process may not use it")
    for mib in MIB:
        seconds = rates.reading(mib << 20, 10 * RUNS)
        print(f"{mib} MiB are read in {seconds * 1e6:.0f} us, {(mib << 20) / seconds / 1e9:.0f} GB/s by one core")
    print(f"products of bfloat16 numbers are computed by {rates.unit_of_pairs(lanes) or 'float32 numbers'}")


if __name__ == "__main__":
    main()
