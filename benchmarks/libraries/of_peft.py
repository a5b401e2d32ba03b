"""Adapters of peft on a small language model."""

import peft
import torch
import transformers
from tools import fill, fn, ints


def adapted(options: peft.PeftConfig) -> list[torch.Tensor]:
    config = transformers.LlamaConfig(vocab_size=40, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2)  # fmt: skip
    model = peft.get_peft_model(transformers.LlamaForCausalLM(config), options)
    fill(model)
    ids = ints(40, 2, 9)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
    losses = []
    for _ in range(3):
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    trained = [p.detach().clone() for p in model.parameters() if p.requires_grad]
    if hasattr(model, "merge_and_unload"):
        losses.append(model.merge_and_unload()(ids).logits.detach())
    return [*losses, *trained]


TARGETS = {"target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
KINDS = {
    "lora": lambda: peft.LoraConfig(r=4, lora_alpha=8, **TARGETS),
    "dora": lambda: peft.LoraConfig(r=4, use_dora=True, **TARGETS),
    "rslora": lambda: peft.LoraConfig(r=4, use_rslora=True, **TARGETS),
    "loha": lambda: peft.LoHaConfig(r=4, **TARGETS),
    "lokr": lambda: peft.LoKrConfig(r=4, **TARGETS),
    "ia3": lambda: peft.IA3Config(feedforward_modules=[], **TARGETS),
    "vera": lambda: peft.VeraConfig(r=4, **TARGETS),
    "oft": lambda: peft.OFTConfig(r=0, oft_block_size=4, **TARGETS),
}
for name, options in KINDS.items():
    fn(f"peft_{name}", lambda options=options: adapted(options()))
