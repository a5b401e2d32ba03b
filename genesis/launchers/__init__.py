"""Ranks on the machines of a cluster: within an allocation of Slurm, or of a Ray cluster.

`slurm`   batch files, and jobs inside of an allocation     `ray`   jobs on the nodes of a Ray cluster
`ray_node`   what starts MPI's process on a node of it

Both find out which machines there are and then do what ``genesis run`` does: MPI's own launcher starts the ranks, by ``srun``
or by Ray where it would take ssh. So ranks, messages, restarts and the last screen are the same everywhere.

>>> from genesis.launchers import slurm
>>> print(slurm.batch("train.py", "--epochs", 3, nodes=2, ranks_per_node=4, minutes=60).splitlines()[1])
#SBATCH --nodes=2
"""

from __future__ import annotations
