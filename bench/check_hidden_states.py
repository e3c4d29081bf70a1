"""Hidden states of random turns of a run against one plain forward pass of the same ids in Python's onnxruntime.

    python bench/check_hidden_states.py RUN_FOLDER MODEL_FOLDER [--turns 10] [--seed 1] [--threads 2]

Needs numpy, onnx, onnxruntime, safetensors. Taps are found by the names that the onnxruntime-genai builder gives
(residual of block i = 4th output of the next block's input norm), not by forewarn's tracer, so the two are independent.
"""
import argparse, json, random
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from safetensors import safe_open

arguments = argparse.ArgumentParser()
arguments.add_argument("run", type=Path)
arguments.add_argument("model", type=Path)
arguments.add_argument("--turns", type=int, default=10)
arguments.add_argument("--seed", type=int, default=1)
arguments.add_argument("--threads", type=int, default=2)
a = arguments.parse_args()

config = json.loads((a.model / "config.json").read_text())
blocks = config["num_hidden_layers"]
graph = onnx.load(a.model / "model.onnx", load_external_data=False)
names = {"embed": [n.output[0] for n in graph.graph.node if n.name.startswith("/model/embed_tokens/")][-1]}
for i in range(blocks - 1):
    names[f"resid_post.{i}"] = f"/model/layers.{i + 1}/input_layernorm/output_3"
for node in graph.graph.node:
    if node.name.startswith(f"/model/layers.{blocks}/final_norm_layernorm"):
        while len(node.output) < 4:
            node.output.append("")
        node.output[3] = "residual_before_final_norm"
        names[f"resid_post.{blocks - 1}"] = "residual_before_final_norm"
for name in names.values():
    graph.graph.output.append(onnx.ValueInfoProto(name=name))
edited = a.run / "check.onnx"
onnx.save(graph, edited)
options = ort.SessionOptions()
options.intra_op_num_threads = a.threads
options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(a.model))
session = ort.InferenceSession(edited.read_bytes(), options, providers=["CPUExecutionProvider"])
edited.unlink()
heads, width = config["num_key_value_heads"], config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]

plan = json.loads((a.run / "plan.json").read_text())
rows = {}
for shard in sorted((a.run / "activations").glob("*.safetensors")):
    with safe_open(shard, "np") as file:
        for at, (episode, turn, position) in enumerate(json.loads(file.metadata()["rows"])):
            rows[(episode, turn, position)] = (shard, at)
        taps = [tap for tap in file.keys() if tap in names]
sequences = []
for info in plan["shards"]:
    with safe_open(a.run / "plan" / f"shard-{info['index']:05d}.safetensors", "np") as file:
        ids, lengths = file.get_tensor("ids"), file.get_tensor("lengths")
        at = 0
        for length, rest in zip(lengths, json.loads(file.metadata()["sequences"])):
            sequences.append((ids[at : at + length], rest))
            at += length
worst = {}
random.seed(a.seed)
chosen = random.sample([s for s in sequences if s[1]["captures"]], a.turns)
for ids, rest in chosen:
    end = max(c["end"] for c in rest["captures"])
    feed = {"input_ids": ids[None, :end].astype(np.int64), "attention_mask": np.ones((1, end), np.int64)}
    for i in range(blocks):
        for kind in ("key", "value"):
            feed[f"past_key_values.{i}.{kind}"] = np.zeros((1, heads, 0, width), np.float32)
    outputs = dict(zip(taps, session.run([names[tap] for tap in taps], feed)))
    for capture in rest["captures"]:
        if capture["end"] - capture["start"] != 1:
            continue
        shard, at = rows[(rest["episode"], capture["turn"], capture["position"])]
        with safe_open(shard, "np") as file:
            for tap in taps:
                ours = file.get_slice(tap)[at : at + 1][0].astype(np.float32)
                theirs = outputs[tap][0, capture["start"]]
                difference = float(np.abs(ours - theirs).max())
                scale = float(np.abs(theirs).max())
                wrong = float(np.abs(ours - outputs[tap][0, capture["start"] - 1]).max())
                before = worst.get(tap, (-1.0, 0.0, np.inf))
                worst[tap] = (max(before[0], difference), max(before[1], scale), min(before[2], wrong))
print(f"{len(chosen)} turns, tokens {sorted(int(max(c['end'] for c in r['captures'])) for _, r in chosen)}")
for tap, (difference, scale, wrong) in sorted(worst.items()):
    print(
        f"{tap}: max abs difference {difference:.2e} where values reach {scale:.1f} (relative {difference / max(scale, 1e-9):.1e});"
        f" the token before would differ by at least {wrong:.2g}"
    )
