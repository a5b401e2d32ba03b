"""Loops over accelerate."""

import tempfile

import torch
from accelerate import Accelerator
from tools import fn
from torch.nn import functional as F
from training import loader, network, state


def trained(kind: str, steps: int = 1, norm: float | None = None) -> list[torch.Tensor]:
    accelerator = Accelerator(gradient_accumulation_steps=steps, cpu=True)
    model = network()
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer)
    model, optimizer, batches, schedule = accelerator.prepare(model, optimizer, loader(), schedule)
    losses = []
    for _ in range(2):
        for x, y in batches:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(x), y)
                accelerator.backward(loss)
                if norm is not None and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), norm)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()))
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = state(accelerator.unwrap_model(model))
        with torch.no_grad():
            for p in model.parameters():
                p.zero_()
        accelerator.load_state(folder)
    return [*before, *state(accelerator.unwrap_model(model)), *losses]


fn("accelerate_adam", lambda: trained("Adam"))
fn("accelerate_sgd_accumulated", lambda: trained("SGD", steps=2))
fn("accelerate_adamw_clipped", lambda: trained("AdamW", norm=0.1))
