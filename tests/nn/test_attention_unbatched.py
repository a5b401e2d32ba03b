"""Attention without a batch is a batch of one."""

from __future__ import annotations

import pytest

import genesis
from genesis import nn


@pytest.mark.parametrize("batch_first", [True, False])
def test_unbatched_attention(batch_first):
    genesis.manual_seed(0)
    attention = nn.MultiheadAttention(4, 2, batch_first=batch_first).double()
    q, kv = genesis.randn(5, 4, dtype=genesis.float64), genesis.randn(3, 4, dtype=genesis.float64)
    mask = genesis.tensor([False, False, True])
    out, weights = attention(q, kv, kv, key_padding_mask=mask)
    at = 0 if batch_first else 1
    expected, batched = attention(
        q.unsqueeze(at), kv.unsqueeze(at), kv.unsqueeze(at), key_padding_mask=mask.unsqueeze(0)
    )
    assert out.shape == (5, 4) and weights.shape == (5, 3)
    assert genesis.allclose(out, expected.squeeze(at)) and genesis.allclose(weights, batched.squeeze(0))
    assert attention(q, q, q, need_weights=False)[1] is None
    many = genesis.randn(2, 5, 4, dtype=genesis.float64)
    found = genesis.vmap(lambda x: attention(x, x, x)[0])(many)
    assert genesis.allclose(found, genesis.stack([attention(x, x, x)[0] for x in many]))


def test_unbatched_attention_is_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    mine, theirs = nn.MultiheadAttention(4, 2), torch.nn.MultiheadAttention(4, 2)
    mine.load_state_dict({name: genesis.tensor(p.detach().numpy()) for name, p in theirs.state_dict().items()})
    x = genesis.randn(5, 4)
    a, b = mine(x, x, x)[0], theirs(*[torch.tensor(x.numpy())] * 3)[0]
    assert genesis.allclose(a, genesis.tensor(b.detach().numpy()), atol=1e-6)
