"""Snapshots as one file of `genesis.save`, and back: ``torch.distributed.checkpoint.format_utils``. One process calls them."""

from __future__ import annotations

import os
from pathlib import Path

from genesis.base.late import Late
from genesis.distributed.checkpoint.loading import whole
from genesis.distributed.checkpoint.saving import save

_files = Late("genesis.io.files")
__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]) -> None:
    """Write what a snapshot holds, whole tensors, to one file.

    Raises:
        RuntimeError: there is no snapshot, or it is torn, or of another version

    >>> import genesis, tempfile
    >>> from genesis.distributed.checkpoint import save
    >>> folder = tempfile.mkdtemp()
    >>> _ = save({"model": {"weight": genesis.ones(2)}, "step": 3}, checkpoint_id=f"{folder}/a")
    >>> dcp_to_torch_save(f"{folder}/a", f"{folder}/a.pt")
    >>> genesis.load(f"{folder}/a.pt")
    {'model': {'weight': tensor([1., 1.])}, 'step': 3}
    """
    _files.save(whole(Path(dcp_checkpoint_dir)), torch_save_path)


def torch_save_to_dcp(torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]) -> None:
    """Make a snapshot of what a file of `genesis.save` or of PyTorch holds: any number of ranks loads it.

    Raises:
        RuntimeError: it could not be written
    """
    save(_files.load(torch_save_path), checkpoint_id=dcp_checkpoint_dir, no_dist=True)
