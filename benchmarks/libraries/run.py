"""Models of one library, forward and backward: what benchmarks/libraries.py starts once with PyTorch and once with Genesis.

    python run.py PACKAGES CASES RESULTS [--double] [--compiled] [NAME ...]

A file of cases puts functions into ``tools.cases``, by name.
"""

from __future__ import annotations

import json
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

packages, file, results, *names = sys.argv[1:]
sys.path.insert(0, packages)

import torch  # noqa: E402
from tools import cases, fill  # noqa: E402

warnings.simplefilter("ignore")
DOUBLE, COMPILED = "--double" in names, "--compiled" in names
GENESIS = "genesis" in torch.__version__


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif hasattr(value, "to_tuple"):
        yield from tensors(value.to_tuple())
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from tensors(part)


def measured(case: Callable[[], Any]) -> dict[str, Any]:
    """The sizes of what comes out, and of all gradients."""
    torch.set_default_dtype(torch.float64 if DOUBLE else torch.float32)
    torch.manual_seed(0)
    made, arguments, *keywords = case()
    started = time.perf_counter()
    if isinstance(made, torch.nn.Module):
        made = made.double() if DOUBLE else made
        fill(made)
        made.eval()
    called, keywords = made, keywords[0] if keywords else {}
    if COMPILED:
        called = torch.compile(made)
        called(*arguments, **keywords)  # the first call may run as it is
    out = [t for t in tensors(called(*arguments, **keywords)) if t.is_floating_point()]
    loss = sum((t.double() * torch.cos(torch.arange(t.numel()).reshape(t.shape).double())).sum() for t in out)
    sizes = [float(t.detach().double().abs().mean()) for t in out]
    if isinstance(made, torch.nn.Module) and isinstance(loss, torch.Tensor) and loss.requires_grad:
        loss.backward()
        sizes += [float(p.grad.double().abs().mean()) for p in made.parameters() if p.grad is not None]
    return {"sizes": sizes, "seconds": time.perf_counter() - started, "module": isinstance(made, torch.nn.Module)}


def without_compiled_operations() -> None:
    """torchvision as it is without its library, which fits one build of PyTorch only: nms in Python."""
    extension = types.ModuleType("torchvision.extension")
    extension._has_ops, extension._assert_has_ops = (lambda: False), (lambda: None)  # type: ignore[attr-defined]
    quiet = types.ModuleType("torchvision.ops._register_onnx_ops")
    quiet._register_custom_op = lambda: None  # type: ignore[attr-defined]
    for name in ("torchvision._meta_registrations", "torchvision._autograd_registrations"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchvision.ops._register_onnx_ops"] = quiet
    declared = torch.library.Library("torchvision", "DEF")
    declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    region = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
    declared.define(f"roi_align({region}, int sampling_ratio, bool aligned) -> Tensor")
    declared.impl("nms", _nms, "CPU")
    declared.impl("roi_align", lambda *a: __import__("torchvision.ops.roi_align").ops.roi_align._roi_align(*a),
                  "CompositeImplicitAutograd")  # fmt: skip
    without_compiled_operations.kept = declared  # type: ignore[attr-defined]
    import torchvision.extension as loaded

    loaded._has_ops, loaded._assert_has_ops = (lambda: True), (lambda: None)


def _nms(dets: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    order, kept, gone = scores.sort(stable=True, descending=True)[1].tolist(), [], set()
    area = (dets[:, 2] - dets[:, 0]) * (dets[:, 3] - dets[:, 1])
    for at, i in enumerate(order):
        if i in gone:
            continue
        kept.append(i)
        rest = torch.tensor(order[at + 1 :], dtype=torch.long)
        if rest.numel():
            low, high = torch.maximum(dets[i, :2], dets[rest, :2]), torch.minimum(dets[i, 2:], dets[rest, 2:])
            both = (high - low).clamp(min=0).prod(-1)
            gone |= set(rest[both / (area[i] + area[rest] - both) > threshold].tolist())
    return torch.tensor(kept, dtype=torch.long)


def main() -> None:
    if not GENESIS:
        without_compiled_operations()
    exec(compile(Path(file).read_text(), file, "exec"), {"__name__": "cases"})
    chosen = [name for name in names if not name.startswith("--")]
    report = {}
    for name, case in cases.items():
        if chosen and name not in chosen:
            continue
        try:
            with warnings.catch_warnings(record=COMPILED) as told:
                warnings.simplefilter("always" if COMPILED else "ignore")
                report[name] = measured(case)
            left = [
                str(w.message).partition("as it is: ")[2] for w in told or () if "is not compiled" in str(w.message)
            ]
            report[name]["left"] = left[0].splitlines()[0] if left else ""
        except Exception as error:
            report[name] = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(name, flush=True)
    Path(results).write_text(json.dumps(report))


main()
