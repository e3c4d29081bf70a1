"""Turns a Llama-architecture graph of this repository (models/) into a folder that transformers reads: python bench/onnx_to_transformers.py MODEL OUT

Weights are found by name, as models/fixture and the onnxruntime-genai builder write them (q, k and v packed or apart), and transposed where
the graph multiplies from the right. Needs onnx, torch, transformers. A weight that is missing, left over or of another shape is an error.
"""
import argparse, re, shutil
from pathlib import Path

import numpy as np
import onnx, torch, transformers

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("model", type=Path)
p.add_argument("out", type=Path)
a = p.parse_args()
config = transformers.AutoConfig.from_pretrained(a.model)
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
wanted = model.state_dict()
graph = onnx.load(a.model / "model.onnx").graph  # external weights are read with it
given = {}
for tensor in graph.initializer:
    name = tensor.name.strip("/").replace("/", ".").replace(".attn.", ".self_attn.")
    name = re.sub(r"layers\.\d+\.final_norm_layernorm", "norm", name.replace(".MatMul.weight", ".weight"))
    name = re.sub(r"^(model\.)?embed(_tokens)?\.weight$", "model.embed_tokens.weight", name)
    packed = name.endswith("qkv_proj.weight")
    if name not in wanted and not packed:
        continue
    value = torch.from_numpy(onnx.numpy_helper.to_array(tensor, base_dir=str(a.model)).astype(np.float32))
    if packed:
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        sizes = [head * n for n in (config.num_attention_heads, config.num_key_value_heads, config.num_key_value_heads)]
        for part, weight in zip("qkv", value.T.split(sizes)):
            given[name.replace("qkv_proj", f"{part}_proj")] = weight.contiguous()
        continue
    given[name] = value.T.contiguous() if value.ndim == 2 and "embed" not in name else value
if config.tie_word_embeddings and "lm_head.weight" in given:
    given.setdefault("model.embed_tokens.weight", given["lm_head.weight"])  # one matrix serves both
tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
missing = set(wanted) - set(given) - tied
if missing:
    raise SystemExit(f"{a.model}: expected a weight for each of {len(wanted)} parameters, got none for {sorted(missing)[0]} and {len(missing) - 1} more")
model.load_state_dict(given, strict=not tied)
model.save_pretrained(a.out)
for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
    if (a.model / name).exists():
        shutil.copy(a.model / name, a.out)
print(a.out, f"{sum(value.numel() for value in given.values()):,} parameters")
