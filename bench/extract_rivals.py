"""What people write with Hugging Face transformers, for bench/extract.ts: python bench/extract_rivals.py JOB.json

JOB: {"engine": "perTurn" | "onePass", "plan": exported plan, "model": folder, "taps": [...], "threads": 1, "out": stem}.
perTurn: one forward pass per turn, output_hidden_states=True. onePass: one per episode where that is exact, that is where a turn's
tokens are the beginning of a later turn's; else as many as it takes. Both run the block stack alone (no product with the vocabulary).
"""
import json, resource, sys, time
from pathlib import Path

import numpy as np, torch, transformers
from safetensors import safe_open
from safetensors.numpy import save_file

job = json.loads(Path(sys.argv[1]).read_text())
torch.set_num_threads(job["threads"])
model = transformers.AutoModel.from_pretrained(job["model"], dtype=torch.float32).eval()
blocks = model.config.num_hidden_layers


def index(tap):  # hidden_states[i + 1] is the output of block i; the last one comes behind the final norm
    return 0 if tap == "embed" else blocks if tap == "final_norm" else int(tap.removeprefix("resid_post.")) + 1


sequences = []
for shard in json.loads((Path(job["plan"]) / "plan.json").read_text())["shards"]:
    with safe_open(Path(job["plan"]) / "plan" / f"shard-{shard['index']:05d}.safetensors", "np") as file:
        ids, at = file.get_tensor("ids"), 0
        for length, rest in zip(file.get_tensor("lengths"), json.loads(file.metadata()["sequences"])):
            if rest["captures"]:
                end = max(c["end"] for c in rest["captures"])
                tokens = sorted({t for c in rest["captures"] for t in range(c["start"], c["end"])})
                sequences.append({"episode": rest["episode"], "turn": rest["turn"], "ids": ids[at : at + end], "tokens": tokens})
            at += length


def passes():
    if job["engine"] == "perTurn":
        return [(s, [s]) for s in sequences]
    found = []
    for s in sorted(sequences, key=lambda s: -len(s["ids"])):
        for leader, readers in found:
            if leader["episode"] == s["episode"] and np.array_equal(leader["ids"][: len(s["ids"])], s["ids"]):
                readers.append(s)
                break
        else:
            found.append((s, [s]))
    return found


rows, tokens = {}, 0
with torch.inference_mode():
    model(torch.ones(1, 8, dtype=torch.long), output_hidden_states=True, use_cache=False)
    cpu, started = time.process_time(), time.perf_counter()
    for leader, readers in passes():
        hidden = model(torch.from_numpy(leader["ids"].astype(np.int64))[None], output_hidden_states=True, use_cache=False).hidden_states
        tokens += len(leader["ids"])
        for s in readers:
            for token in s["tokens"]:
                rows[f"{s['episode']} {s['turn']} {token}"] = [hidden[index(tap)][0, token].numpy().copy() for tap in job["taps"]]
        del hidden
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
save_file({tap: np.stack([row[k] for row in rows.values()]) for k, tap in enumerate(job["taps"])}, f"{job['out']}.safetensors", {"rows": json.dumps(list(rows))})
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
Path(f"{job['out']}.json").write_text(json.dumps({"seconds": seconds, "cpuSeconds": cpu, "computedTokens": tokens, "peakBytes": peak}))
