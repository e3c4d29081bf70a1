"""Fills docs/shard-format.md with Hugging Face transformers: python bench/fill_with_transformers.py PLAN MODEL OUT [--dtype bfloat16] [--device cuda]
PLAN: made by `forewarn plan CONFIG --export PLAN`; OUT: read by `forewarn extract CONFIG --from OUT`. Needs torch, transformers, safetensors."""
import argparse, hashlib, json
from pathlib import Path
import torch, transformers
from safetensors import safe_open
from safetensors.torch import save_file

p = argparse.ArgumentParser(description=__doc__)
for name in ("plan", "model", "out"): p.add_argument(name, type=Path)
p.add_argument("--dtype", default="float32"), p.add_argument("--device", default="cpu")
a = p.parse_args()
decoder = transformers.AutoModelForCausalLM.from_pretrained(a.model, dtype=getattr(torch, a.dtype)).to(a.device).eval().get_decoder()
plan, seen = json.loads((a.plan / "plan.json").read_text()), {}
first = lambda value: (value[0] if isinstance(value, tuple) else value)[0]
def on_output(tap): return lambda module, args, output: seen.__setitem__(tap, first(output))
def on_input(tap): return lambda module, args, kwargs: seen.__setitem__(tap, first(args or kwargs["hidden_states"]))
decoder.layers[0].register_forward_pre_hook(on_input("embed"), with_kwargs=True)
decoder.norm.register_forward_hook(on_output("final_norm"))
for i, block in enumerate(decoder.layers):  # the output of a block is the stream before any final norm, also in the last one
    block.register_forward_hook(on_output(f"resid_post.{i}"))
    if f"resid_mid.{i}" in plan["taps"]:  # what the norm before the MLP reads (Gemma calls it pre_feedforward_layernorm; parallel blocks have none)
        norm = getattr(block, "pre_feedforward_layernorm", None) or block.post_attention_layernorm
        norm.register_forward_pre_hook(on_input(f"resid_mid.{i}"), with_kwargs=True)
def ema(x):  # exponential average: a token weighs half of the one eight tokens later
    w = 0.5 ** (torch.arange(len(x) - 1, -1, -1, dtype=torch.float64, device=x.device) / 8)
    return ((w / w.sum()).to(x.dtype)[:, None] * x).sum(0)
POOL = {"ema": ema, "mean": lambda x: x.mean(0), "max": lambda x: x.amax(0), "last": lambda x: x[-1], "none": lambda x: x[-1]}
a.out.mkdir(parents=True, exist_ok=True)
for name in (f"shard-{shard['index']:05d}.safetensors" for shard in plan["shards"]):
    with safe_open(a.plan / "plan" / name, "pt") as file:
        ids, lengths, sequences = file.get_tensor("ids"), file.get_tensor("lengths"), json.loads(file.metadata()["sequences"])
    rows, states, skipped = [], {tap: [] for tap in plan["taps"]}, []
    for own, sequence in zip(ids.split(lengths.tolist()), sequences):
        if not sequence["captures"]: continue
        try:
            with torch.inference_mode(): decoder(own[None, : max(c["end"] for c in sequence["captures"])].long().to(a.device), use_cache=False)
        except torch.OutOfMemoryError as error:
            skipped.append([sequence["episode"], sequence["turn"], str(error).split("\n")[0]]); continue
        for c in sequence["captures"]:
            rows.append([sequence["episode"], c["turn"], c["position"]])
            for tap in plan["taps"]: states[tap].append(POOL[c["pooling"]](seen[tap][c["start"] : c["end"]].float()).cpu())
    metadata = {"rows": json.dumps(rows), "skipped": json.dumps(skipped), "ids_sha256": hashlib.sha256(ids.numpy().astype("<i4").tobytes()).hexdigest(),
                "engine": f"transformers {transformers.__version__}, torch {torch.__version__}, {a.model.name}, {a.dtype}"}
    save_file({tap: torch.stack(list_) if list_ else torch.empty(0, decoder.config.hidden_size) for tap, list_ in states.items()}, a.out / name, metadata)
    print(name, f"{len(rows)} rows, {len(skipped)} sequences skipped", flush=True)
