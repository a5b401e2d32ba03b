"""Several ranks: every collective against NumPy, and what is said when ranks disagree, end or hang."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ranks import job, needs_mpi, passes

pytestmark = needs_mpi
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_every_collective(ranks):
    passes(ranks, "collectives.py")


SAID = {
    "shape": (r"at call 2: rank 0: all_reduce f32\[128\] wrong.py:\d+, rank 1: all_reduce f32\[256\] wrong.py:\d+\n",),
    "dtype": (r"rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: all_reduce i32\[2\] wrong.py",),
    "combination": (r"rank 0: all_reduce f32\[2\] sum wrong.py:\d+, rank 1: all_reduce f32\[2\] max wrong.py",),
    "root": (r"rank 0: broadcast f32\[2\] from 0", r"rank 1: broadcast f32\[2\] from 1"),
    "call": (r"rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: barrier wrong.py:\d+",),
    "later": (r"mismatch at call 4: rank 0: all_reduce f32\[4\] wrong.py:\d+, rank 1: all_reduce f32\[5\] wrong.py",),
    "ahead": (r"mismatch at call 4: rank 0: all_reduce f32\[4\] wrong.py:\d+, rank 1: all_reduce f32\[5\] wrong.py",),
    "order": (
        r"mismatch at call 2: rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: broadcast f32\[2\] from 0 wrong.py",
    ),
    "exception": (
        r"KeyError: 'no such thing'",
        r"rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: ended by KeyError: 'no such",
    ),
    "exit": (r"rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: the end of the group",),
    "hang": (r"all_reduce waited \d+ s at call 2: .* rank 1: wrong.py:\d+, after barrier wrong.py:\d+ \(call 1\)",),
    "stopped": (r"all_reduce waited \d+ s at call 3: .* rank 1: does not answer; \d+ s ago it had begun call \d\n",),
    "inside": (
        r"all_reduce waited \d+ s at call 3: .* rank 1: does not answer; \d+ s ago it had begun call \d of step 12\n",
    ),
    "absent": (r"Timeout \(0:00:01", r"in init_process_group\n.*wrong.py\", line \d+ in <module>"),
    "slow": (r"init_process_group: waited \d+ s, and rank 1 did not come",),
    "receives": (
        r"(recv|all_reduce) waited \d+ s at call 2: rank 0: all_reduce f32\[2\] wrong.py:\d+, rank 1: recv f32\[2\] from 0 wrong.py",
    ),
    "size": (r"recv: rank 1 sent 12 bytes, the tensor has 16",),
    "larger": (r"recv: MPI says:",),
}
QUICK = ("shape", "exception", "hang")  # the others take their seconds in the slow suite


@pytest.mark.parametrize("case", [pytest.param(c, marks=() if c in QUICK else pytest.mark.slow) for c in SAID])
def test_ranks_that_disagree_are_named(case):
    done = job(2, "wrong.py", case)
    assert done.returncode not in (0, 7)
    for pattern in SAID[case]:
        assert re.search(pattern, done.stderr), done.stdout + done.stderr


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_all():
    assert job(2, "wrong.py", "killed").returncode != 0


@pytest.mark.slow
def test_a_rank_that_is_late_is_waited_for():
    done = job(2, "wrong.py", "late")
    assert done.returncode == 0 and done.stdout.count("is done") == 2


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_collectives_with_gradients(ranks):
    passes(ranks, "functional.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_batch_norm_over_all_ranks(ranks):
    passes(ranks, "sync_norm.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_an_optimizer_in_parts(ranks):
    passes(ranks, "zero.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_ranks_that_have_more_steps_than_others(ranks):
    passes(ranks, "joined.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)])
def test_sharded_modules(ranks):
    passes(ranks, "sharded.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_programs_that_shard_modules(ranks):
    passes(ranks, "sharded_programs.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_states_of_sharded_modules(ranks, tmp_path):
    passes(ranks, "sharded_states.py", str(tmp_path))


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_shards_of_which_there_are_replicas(ranks, tmp_path):
    passes(ranks, "hybrid.py", str(tmp_path))


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_sharded_modules_that_begin_on_the_meta_device(ranks):
    passes(ranks, "meta.py")


@pytest.mark.parametrize(
    "ranks", [1, 2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_layers_that_are_divided_among_ranks(ranks, tmp_path):
    passes(ranks, "tensor_parallel.py", str(tmp_path))


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_functions_of_tensors_that_ranks_have_together(ranks, tmp_path):
    passes(ranks, "dtensors.py", str(tmp_path))


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_a_transformer_that_is_divided_among_ranks(ranks):
    passes(ranks, "tensor_transformer.py")


def test_ranks_together_have_the_memory_that_one_lacks():
    done = job(2, str(EXAMPLES / "sharded_training.py"))
    assert done.returncode == 0, done.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) == 2 and losses[1] < losses[0]
    assert re.search(r"2 ranks trained 2,101,248 parameters with at most [23]\d MB each", done.stdout), done.stdout


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_one_file_for_any_number_of_ranks(ranks):
    done = job(ranks, str(EXAMPLES / "digits_ranks.py"))
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"epoch 10 .* accuracy (\S+)%", done.stdout)[1]) > 90
    weights = re.findall(rf"rank (\d) of {ranks} has weights of norm (\d+\.\d{{4}})", done.stdout)
    assert sorted(rank for rank, _ in weights) == [str(rank) for rank in range(ranks)]
    assert len({norm for _, norm in weights}) == 1


@pytest.mark.slow
def test_a_language_model_learns_the_same_in_two_ranks(tmp_path):
    """The batches have the same rows, so the losses are those of one rank; a step is drawn."""
    script, picture = str(EXAMPLES / "gpt_ranks.py"), tmp_path / "step.svg"
    alone = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    done = job(2, script, str(picture))
    assert done.returncode == 0, done.stderr
    two, one = ([float(loss) for loss in re.findall(r"epoch \d  loss (\S+)", out)] for out in (done.stdout, alone))
    assert len(one) == 5 and two == pytest.approx(one, abs=0.01)
    assert re.search(r"^the old tree.{60}$", done.stdout, re.M)
    texts = [each.text for each in ElementTree.parse(picture).iter() if each.tag.endswith(("text", "title"))]
    assert {"rank 0", "rank 1"} <= set(texts) and any([text.startswith("transfers, ") for text in texts])


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_sharded_modules_in_other_forms(ranks):
    passes(ranks, "wrapped.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_data_parallel_training(ranks):
    passes(ranks, "data_parallel.py")


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_compiled_modules_whose_gradients_are_combined(ranks):
    passes(ranks, "compiled_modules.py")


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_modules_on_gpus(ranks):
    passes(ranks, "training_on_devices.py")


def test_tensors_on_gpus():
    passes(2, "on_devices.py")
