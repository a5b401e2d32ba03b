"""Leaves that stop requiring grad and begin again."""

import genesis


def test_results_from_before_still_lead_there():
    w = genesis.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 3)
    before = w * 2
    w.requires_grad_(False)
    assert w.grad is None
    w.requires_grad_(True)
    (before + w * 5).sum().backward()
    assert w.grad.tolist() == [21.0] * 3


def test_what_comes_while_it_has_stopped_goes_nowhere():
    w = genesis.ones(3, requires_grad=True)
    first, second = w * 2, w * 7
    second.sum().backward()
    w.requires_grad_(False)
    first.sum().backward()
    assert w.grad.tolist() == [7.0] * 3
    w.requires_grad_(True)
    assert w.grad.tolist() == [7.0] * 3


def test_other_memory_has_another_node():
    w = genesis.ones(3, requires_grad=True)
    w.register_hook(lambda g: g * 2)
    w.requires_grad_(False)
    w.data = genesis.ones(4, dtype=genesis.float64)
    w.requires_grad_(True)
    (w * 5).sum().backward()
    assert w.grad.tolist() == [10.0] * 4 and w.grad.dtype is genesis.float64


def test_what_programs_put_on_a_parameter_is_all_that_its_dictionary_has():
    """Libraries that place parameters elsewhere write ``type(p)(p.to(device), **p.__dict__)``."""
    p = genesis.nn.Parameter(genesis.ones(2))
    assert p.__dict__ == {}
    (p * 2).sum().backward()
    p.grad = None
    p.requires_grad_(False)
    assert p.__dict__ == {}
    p.requires_grad_()
    p.kept = 1
    assert p.__dict__ == {"kept": 1}
