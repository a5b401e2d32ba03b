"""The mean of all ranks, sent as it is or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from genesis.base import dtypes
from genesis.distributed.futures import Future
from genesis.distributed.grad_bucket import GradBucket
from genesis.distributed.groups import group_of
from genesis.distributed.reductions import all_reduce

Hook = Callable[[Any, GradBucket], Any]


def _mean(name: str, process_group: Any, x: Any) -> Future:
    """The mean of a tensor over the ranks, in place."""
    group = group_of(name, process_group)
    work: Any = all_reduce(x.div_(group.size()), group=group, async_op=True)
    future: Future = work.get_future()
    return future.then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """What is done without a hook."""
    return _mean("allreduce_hook", process_group, bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean of gradients in float16: half as much is sent."""
    return fp16_compress_wrapper(allreduce_hook)(process_group, bucket)  # type: ignore[no-any-return]


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The mean of gradients in bfloat16: half as much is sent."""
    return bf16_compress_wrapper(allreduce_hook)(process_group, bucket)  # type: ignore[no-any-return]


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees gradients in float16."""
    return _in(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that sees gradients in bfloat16."""
    return _in(dtypes.bfloat16, hook)


def _in(dtype: Any, hook: Hook) -> Hook:
    def narrowed(state: Any, bucket: GradBucket) -> Any:
        whole: Any = bucket.buffer()
        bucket.set_buffer(whole.to(dtype))
        return hook(state, bucket).then(lambda done: whole.copy_(done.value()))

    return narrowed


__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]
