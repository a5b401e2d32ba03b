"""Who computes an op on arrays of a class: one table for each op, and one way into it.

    attach(matmul, np.ndarray, kernel)                  always
    attach(matmul, np.ndarray, kernel, when=large)      where ``when(*arguments)`` says so; else what was there before

- A *primitive's* kernel takes what its meaning takes, arrays for tensors, and gives arrays of its own.
- A *composite's* kernel is a *fused* one: it computes forward in one go and says what to keep, and has a backward of
  its own.

      @attach(layer_norm, np.ndarray, when=fits)
      def fused(input, normalized_shape, weight, bias, eps):
          return out, (scaled, root)

      @fused.backward
      def _(g, kept, needs):
          return gradients of input, weight and bias

  (``fused.alone`` may be another kernel that gives the result alone, for calls that are not recorded.)

  It runs where nothing but arrays of its class is involved: no transform, no mode. There, and in derivatives of
  derivatives, the composite is what its function says, so these are right whatever the kernel does.

  A trace runs a function without data. It records a fused call as one call of the program, and its backward as another,
  if the kernel says what it gives, the spec of the result, and of what is kept the specs or the names of parameters:

      @attach(layer_norm, np.ndarray, when=fits, infer=lambda input, *rest: (input, (input, root_of(input))))

  Then ``when`` asks for dtypes, shapes and plain arguments only, and arrays that are no parameters are contiguous.
  A kernel that writes (an optimizer's step) is recorded as the pure function of what it would have written; with
  `Fused.many` it also does the steps of many parameters at once. Another
  without ``infer`` is recorded as the composition, and replays a step bit for bit only if the kernel rounds as it does.

`genesis.testing.check_kernel` compares a kernel with the meaning.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from genesis.base.quiet import silent
from genesis.core.call import computing
from genesis.core.call.fused import FUSED, Fused, Infer, Kernel, When, attach_fused
from genesis.core.call.op import REGISTRY, Op


def op_named(name: str) -> Op | None:
    """The op of a call in a program: one of the registry, or a fused kernel; None if there is none."""
    return REGISTRY.get(name) or FUSED.get(name)


def attach(
    op: Any,
    arrays: type,
    kernel: Kernel | None = None,
    *,
    when: When | None = None,
    infer: Infer | None = None,
    quiet: bool = False,
) -> Any:
    """Let ``kernel`` compute an op on arrays of a class, wherever the op is called from; without ``kernel`` this is a
    decorator.

    Args:
        op: the op, its public function, or its name
        arrays: the class of the arrays, ``np.ndarray`` or a device's
        when: called with the kernel's arguments, tells whether this kernel takes them; then it must be right for them
        infer: of a composite's kernel: from the specs of the arguments, the spec of the result and those of what is
            kept, or the names of parameters that are, or "out" for the result; with it programs have the call as one
        quiet: of a composite's kernel: it and its backward give no warnings of NumPy's, so that they are called
            `directly` (0.5 us less than `quietly`)
    """
    target: Op = REGISTRY[op] if isinstance(op, str) else getattr(op, "op", op)
    if kernel is None:
        return lambda kernel: attach(target, arrays, kernel, when=when, infer=infer, quiet=quiet)
    if target.kind.composed:
        before = target.kernels.get(arrays)
        return attach_fused(target, arrays, Fused(target, arrays, kernel, when, infer, before, quiet))
    chosen = (
        kernel
        if when is None
        else _either(kernel, when, target.kernel if arrays is np.ndarray else target.kernels.get(arrays))
    )
    target.kernels[arrays] = chosen
    target.on_devices.clear()
    if arrays is np.ndarray:
        target.kernel = chosen
        for rebind in target.shortcuts:
            rebind(chosen)
    return kernel


def on_host(op: Op) -> Kernel:
    """What an op gives on NumPy arrays (for tensors), promotion and conversions included: what a device's
    kernel has to give.

    >>> import genesis, numpy as np
    >>> on_host(genesis.add.op)(np.ones(2, np.float32), np.arange(2))
    array([1., 2.], dtype=float32)
    """
    if op.kind.aligned:
        return partial(computing.compute_elementwise, op)
    return lambda *arrays: computing.compute(op, arrays)


def _either(kernel: Kernel, when: When, otherwise: Kernel | None) -> Kernel:
    """Where ``when`` declines, what was attached before; there the meaning is the first."""

    def chosen(*arguments: Any) -> Any:
        if when(*arguments):
            return kernel(*arguments)
        return NotImplemented if otherwise is None else otherwise(*arguments)

    def silenced() -> Kernel:
        return _either(silent(kernel), when, None if otherwise is None else silent(otherwise))

    chosen.silenced = silenced  # type: ignore[attr-defined]
    return chosen
