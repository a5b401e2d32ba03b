"""Words of random streams in LLVM code: Philox4x64-10 (J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
2011), with the keys, counters and order of `genesis.core.graph.generator`; and numbers in [0, 1) of them, or what is kept of
a dropout.
"""

from __future__ import annotations

from genesis.kernels.llvm import loops

ROUNDS = 10
MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B  # by which the key's two words grow with each round
WORDS = 4  # of a block
MANY = 16  # blocks that are made before their words become numbers
_DIGITS = {"float": 24, "double": 53}
UNIFORM, KEPT = ("first", "last", "key", "low", "high", "count"), ("p", "factor")


def uniform(kind: str, drops: bool) -> str:
    """The code of ``uniform(out, first, last, key, low, high, count)``: numbers in [0, 1) of the first digits of words, from
    block ``first`` to ``last`` of ``count`` words. With ``drops`` there are the bits of two float32 numbers more, ``p`` and
    ``factor``: 0 where a number is less than the one, else the other.
    """
    sizes = ", ".join([f"i64 %{name}" for name in (*UNIFORM, *(KEPT if drops else ()))])
    digits, size = _DIGITS[kind], "i64" if kind == "double" else "i32"
    scale = f"0x{1023 - digits:03X}0000000000000"  # 2^-digits
    number = [f"  %number = fmul {kind} %whole, {scale}"]
    before = []
    if drops:
        before = [
            f"  %{name}.bits = trunc i64 %{name} to i32\n  %{name}.f = bitcast i32 %{name}.bits to float"
            for name in KEPT
        ]
        number = [
            f"  %drawn = fmul {kind} %whole, {scale}",
            "  %stays = fcmp oge float %drawn, %p.f",
            "  %number = select i1 %stays, float %factor.f, float 0.0",
        ]
    return "\n".join(
        [
            blocks(),
            f"define void @uniform(ptr %out, {sizes}) #0 {{",
            "entry:",
            f"  %words = alloca [{MANY * WORDS} x i64], align 64",
            *before,
            "  %some = icmp slt i64 %first, %last",
            "  br i1 %some, label %piece, label %done",
            "piece:",
            "  %number_of = phi i64 [ %first, %entry ], [ %following, %next ]",
            f"  %following.all = add i64 %number_of, {MANY}",
            "  %fits = icmp slt i64 %following.all, %last",
            "  %following = select i1 %fits, i64 %following.all, i64 %last",
            "  %blocks = sub i64 %following, %number_of",
            "  call void @blocks_of_words(ptr %words, i64 %key, i64 %low, i64 %high, i64 %number_of, i64 %blocks)",
            f"  %begin = mul i64 %number_of, {WORDS}",
            f"  %end.all = mul i64 %following, {WORDS}",
            "  %is_last = icmp slt i64 %count, %end.all",
            "  %end = select i1 %is_last, i64 %count, i64 %end.all",
            "  br label %each",
            "each:",
            "  %i = phi i64 [ %begin, %piece ], [ %after, %each ]",
            "  %at = sub i64 %i, %begin",
            "  %word_at = getelementptr i64, ptr %words, i64 %at",
            "  %word = load i64, ptr %word_at, align 8",
            f"  %first_digits = lshr i64 %word, {64 - digits}",
            f"  %whole.bits = {'add i64 %first_digits, 0' if size == 'i64' else 'trunc i64 %first_digits to i32'}",
            f"  %whole = uitofp {size} %whole.bits to {kind}",
            *number,
            f"  %to = getelementptr {kind}, ptr %out, i64 %i",
            f"  store {kind} %number, ptr %to, align 4",
            "  %after = add i64 %i, 1",
            "  %more = icmp slt i64 %after, %end",
            "  br i1 %more, label %each, label %next",
            "next:",
            "  %again = icmp slt i64 %following, %last",
            "  br i1 %again, label %piece, label %done",
            "done:",
            "  ret void",
            "}",
            loops.attributes(),
        ]
    )


def blocks() -> str:
    """The code of ``void blocks_of_words(ptr to, i64 key, i64 low, i64 high, i64 first, i64 count)``: writes the words of so
    many blocks, from number ``first`` on behind the position that has the words ``low`` and ``high``.
    """
    lines = [
        "define internal void @blocks_of_words(ptr %to, i64 %key, i64 %low, i64 %high, i64 %first, i64 %count) noinline #0 {",
        "begin:",
        "  %low.wide = zext i64 %low to i128",
        "  %high.wide = zext i64 %high to i128",
        "  %high.up = shl i128 %high.wide, 64",
        "  %position = or i128 %high.up, %low.wide",
        "  %next = add i128 %position, 1",
        "  br label %block",
        "block:",
        "  %i = phi i64 [ 0, %begin ], [ %after, %block ]",
        "  %number = add i64 %first, %i",
        "  %number.wide = zext i64 %number to i128",
        "  %counter = add i128 %next, %number.wide",
        "  %a0 = trunc i128 %counter to i64",
        "  %b0.wide = lshr i128 %counter, 64",
        "  %b0 = trunc i128 %b0.wide to i64",
    ]
    a, b, c, d = "%a0", "%b0", "0", "0"
    for r in range(ROUNDS):
        for name, factor, x in (("p", MULTIPLIERS[0], a), ("q", MULTIPLIERS[1], c)):
            lines += [
                f"  %{name}{r}.wide = zext i64 {x} to i128",
                f"  %{name}{r}.product = mul i128 %{name}{r}.wide, {factor}",
                f"  %{name}{r}.low = trunc i128 %{name}{r}.product to i64",
                f"  %{name}{r}.up = lshr i128 %{name}{r}.product, 64",
                f"  %{name}{r}.high = trunc i128 %{name}{r}.up to i64",
            ]
        lines += [
            f"  %k{r} = add i64 %key, {_signed(r * STEPS[0])}",
            f"  %x{r} = xor i64 %q{r}.high, {b}",
            f"  %a{r + 1} = xor i64 %x{r}, %k{r}",
            f"  %y{r} = xor i64 %p{r}.high, {d}",
            f"  %c{r + 1} = xor i64 %y{r}, {_signed(r * STEPS[1])}",
        ]
        a, b, c, d = f"%a{r + 1}", f"%q{r}.low", f"%c{r + 1}", f"%p{r}.low"
    lines += [
        f"  %at = mul i64 %i, {WORDS}",
        "  %to0 = getelementptr i64, ptr %to, i64 %at",
        f"  store i64 {a}, ptr %to0",
    ]
    for k, word in enumerate((b, c, d), 1):
        lines += [f"  %to{k} = getelementptr i64, ptr %to0, i64 {k}", f"  store i64 {word}, ptr %to{k}"]
    return "\n".join(
        [
            *lines,
            "  %after = add i64 %i, 1",
            "  %more = icmp slt i64 %after, %count",
            "  br i1 %more, label %block, label %done",
            "done:",
            "  ret void",
            "}",
        ]
    )


def _signed(word: int) -> int:
    """The bits of a word as LLVM prints integers."""
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >> 63 else word
