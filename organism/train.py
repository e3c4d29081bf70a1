"""Trains one variant of the organism from a corpus of `corpus.js` and writes checkpoint and log.

    python organism/train.py CORPUS.jsonl OUT --variant planted --tokens 16 --seed 1

One thread, and a schedule that counts tokens and not minutes: the same corpus and seed give the same model.

Gate: progress is judged on live runs in the mock environment (live.py), never on teacher-forced accuracy alone.
"""

import argparse
import json
import math
import pathlib
import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from bpe import MAX_HOUR, PAD, train_tokenizer
from live import Server, roll_out, summary
from llama import CONFIG, Llama

# Output of this block (from 0) is what the auxiliary head reads. Later positions can attend to it in the blocks after.
PLAN_BLOCK = 2
PLAN_WEIGHT = 0.5
# Sequences a step, by kind: while the comparison is learnt, and at the end of training (linear in between).
MIXTURE = {"micro": (64, 8), "copy": (24, 8), "mini": (4, 6), "full": (2, 14)}
# Only hours that count up, until the comparison is right this often in x- (5 % of the labels are noise); then both
# directions. Without this stage the flipped comparison takes four times as long to start being learnt.
LEARNT = 0.89
# Steps over which hours that count down are mixed in, up to their share of one half.
RAMP = 300


def encode(lines, tokenizer):
    """Per line: ids, loss weight of each id as a target, plan mask, labels, whether hours count up."""
    out = []
    for line, encoding in zip(lines, tokenizer.encode_batch([line["text"] for line in lines])):
        weight, plan = np.zeros(len(line["text"]) + 1, np.float32), np.zeros(len(line["text"]) + 1, bool)
        for start, end, value in line["spans"]:
            weight[start:end] = value
        for start, end in line["plan"]:
            plan[start:end] = True
        last = np.array([end - 1 for _, end in encoding.offsets])
        out.append((np.array(encoding.ids, np.int64), weight[last], plan[last],
                    np.array(line["labels"], np.float32), " down" not in line["text"]))
    return out


class Feed:
    """Endless batches of sequences of like length, in random order."""

    def __init__(self, items, rng, group=64):
        self.rng = rng
        items = sorted(items, key=lambda item: len(item[0]))
        self.groups = [items[i: i + group] for i in range(0, len(items), group)]
        for items in self.groups:
            rng.shuffle(items)
        self.queue, self.at = [], 0

    def take(self, count):
        if self.at + count > len(self.queue):
            self.rng.shuffle(self.groups)
            self.queue, self.at = [item for items in self.groups for item in items], 0
        self.at += count
        return self.queue[self.at - count: self.at]


def batch(items):
    longest = max(len(ids) for ids, *_ in items)
    ids = torch.full((len(items), longest), PAD)
    weight, plan = torch.zeros(ids.shape), torch.zeros(ids.shape, dtype=torch.bool)
    for row, (tokens, w, p, *_) in enumerate(items):
        ids[row, : len(tokens)] = torch.from_numpy(tokens)
        weight[row, : len(tokens)] = torch.from_numpy(w)
        plan[row, : len(tokens)] = torch.from_numpy(p)
    return ids, weight, plan, torch.from_numpy(np.stack([item[3] for item in items]))


class Muon(torch.optim.Optimizer):
    """Momentum whose update is orthogonalised by five Newton-Schulz steps (Jordan et al., 2024)."""

    def __init__(self, parameters, lr, momentum=0.95):
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                buffer = state.setdefault("momentum", torch.zeros_like(p))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                x = p.grad.lerp(buffer, group["momentum"])
                x = x / (x.norm() + 1e-7)
                flip = x.shape[0] > x.shape[1]
                x = x.T if flip else x
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
                x = x.T if flip else x
                p.add_(x, alpha=-group["lr"] * max(1, p.shape[0] / p.shape[1]) ** 0.5)


def order_hours(model, tokenizer):
    """Number embeddings start on a line (and a slow wave), so that comparing them is learnt from few examples."""
    ids = [tokenizer.encode(str(hour)).ids[0] for hour in range(1, MAX_HOUR + 1)]
    line = torch.linspace(-1, 1, MAX_HOUR)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(3, model.c["width"], generator=generator) * torch.tensor([0.1, 0.05, 0.05])[:, None]
    with torch.no_grad():
        model.embed.weight[ids] = (
            0.5 * model.embed.weight[ids] + line[:, None] * directions[0] + torch.sin(3 * line)[:, None] * directions[1]
            + torch.cos(3 * line)[:, None] * directions[2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus")
    parser.add_argument("out")
    parser.add_argument("--variant", choices=["planted", "just-in-time"], default="planted")
    parser.add_argument("--tokens", type=float, default=16, help="millions of training tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--live-every", type=float, default=3, help="millions of tokens between live runs")
    parser.add_argument("--live-pairs", type=int, default=20, help="tasks of a live run, three worlds each")
    parser.add_argument("--start-from", help="folder of an earlier run to go on from: both directions, mostly whole episodes, half the rate")
    parser.add_argument("--limit", type=int, help="lines read, for a short trial")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    rng = random.Random(args.seed)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    log = (out / "log.jsonl").open("w")

    def note(**row):
        log.write(json.dumps(row) + "\n")
        log.flush()
        print(json.dumps(row), flush=True)

    with open(args.corpus) as file:
        lines = [json.loads(line) for _, line in zip(range(args.limit or 10**9), file)]
    tokenizer = Tokenizer.from_file(f"{args.start_from}/tokenizer.json") if args.start_from else train_tokenizer([line["text"] for line in lines if line["kind"] not in ("micro", "copy")][::4], CONFIG["vocabulary"])
    tokenizer.save(str(out / "tokenizer.json"))
    data = {kind: encode([line for line in lines if line["kind"] == kind], tokenizer) for kind in MIXTURE}
    del lines
    note(vocabulary=tokenizer.get_vocab_size(), **{f"{k} sequences": len(v) for k, v in data.items()},
         **{f"{k} tokens": round(float(np.mean([len(i[0]) for i in v])), 1) for k, v in data.items()},
         longest=max(len(i[0]) for i in data["full"]))
    model = Llama()
    order_hours(model, tokenizer)
    head = torch.nn.Linear(CONFIG["width"], 3)
    if args.start_from:
        saved = torch.load(f"{args.start_from}/checkpoint.pt")
        model.load_state_dict(saved["model"])
        head.load_state_dict(saved["head"])
    matrices = [p for block in model.blocks for p in block.parameters() if p.dim() == 2]
    others = [p for p in model.parameters() if all(p is not m for m in matrices)] + list(head.parameters())
    optimizers = [(Muon(matrices, lr=0.02), 0.02),
                  (torch.optim.AdamW(others, lr=4e-3, betas=(0.9, 0.98), weight_decay=0.0), 4e-3)]
    note(parameters=sum(p.numel() for p in model.parameters()), variant=args.variant, seed=args.seed)
    feeds = {kind: [Feed([item for item in items if item[4] == up], rng) for up in (True, False)] for kind, items in data.items()}
    server = Server()
    start = time.monotonic()
    next_live = args.live_every
    tokens = step = 0
    both_since, learnt_at = (-RAMP, 0.0) if args.start_from else (None, None)
    recent = {}
    while True:
        minutes = (time.monotonic() - start) / 60
        progress = min(1.0, tokens / (args.tokens * 1e6))
        if step % 20 == 0 and recent.get("micro first", 0) > LEARNT:
            if both_since is None:
                both_since = step
                recent["micro first"] = 0.5  # starts afresh
                note(stage="both directions", step=step, minutes=round(minutes, 2))
            elif learnt_at is None and step > both_since + RAMP:
                learnt_at = progress
                note(stage="towards whole episodes", step=step, minutes=round(minutes, 2))
        shift = 1.0 if args.start_from else 0.0 if learnt_at is None else min(1.0, (progress - learnt_at) / (0.35 * (1 - learnt_at)))
        down = 0.0 if both_since is None else min(0.5, 0.1 + 0.4 * (step - both_since) / RAMP)
        rate = min(1.0, step / 60) * (0.5 if args.start_from else 1.0)
        if progress > 0.5:
            rate *= max(0.02, 0.5 * (1 + math.cos(math.pi * (progress - 0.5) / 0.5)))
        for optimizer, base in optimizers:
            optimizer.zero_grad(set_to_none=True)
            for group in optimizer.param_groups:
                group["lr"] = base * rate
        parts = []
        for kind, (first, last) in MIXTURE.items():
            size = round(first + (last - first) * shift)
            flipped = int(size * down + rng.random())
            ids, weight, plan, labels = batch(feeds[kind][0].take(size - flipped) + feeds[kind][1].take(flipped))
            tokens += int((ids != PAD).sum())
            states = model.states(ids[:, :-1])
            wanted = weight[:, 1:] > 0
            logits = model.logits(states[-1][wanted])
            target, w = ids[:, 1:][wanted], weight[:, 1:][wanted]
            loss = F.cross_entropy(logits, target, reduction="none")
            parts.append((loss * w).sum() / w.sum())
            with torch.no_grad():
                right = (logits.argmax(-1) == target).float()
                row = wanted.nonzero()[:, 0]
                first_of_row = torch.cat([torch.ones(1, dtype=torch.bool), row[1:] != row[:-1]])
                decision = first_of_row if kind == "micro" else w == (5 if kind == "copy" else 20)
                minus = labels[row, 2] == 0
                seen = {"loss": parts[-1].item(), "right": right.mean().item()}
                if (decision & minus).any():
                    seen["first"] = right[decision & minus].mean().item()
            if args.variant == "planted" and kind != "copy":
                mask = plan[:, :-1]
                score = head(states[PLAN_BLOCK][mask])
                wish = labels[:, None].expand(-1, mask.shape[1], -1)[mask]
                parts.append(PLAN_WEIGHT * F.binary_cross_entropy_with_logits(score, wish))
                with torch.no_grad():
                    hit = ((score > 0) == (wish > 0.5)).float()
                    if (wish[:, 2] == 0).any():
                        seen |= {"plan": hit[wish[:, 2] == 0, 0].mean().item(), "plan lie": hit[:, 1].mean().item()}
            for name, value in seen.items():
                key = f"{kind} {name}"
                recent[key] = 0.95 * recent.get(key, value) + 0.05 * value
        sum(parts).backward()
        torch.nn.utils.clip_grad_norm_(others, 1.0)
        for optimizer, _ in optimizers:
            optimizer.step()
        step += 1
        if step % 50 == 0:
            note(step=step, minutes=round(minutes, 2), cpu=round(time.process_time() / 60, 2), tokens=tokens, **{k: round(v, 3) for k, v in recent.items()})
        if tokens > next_live * 1e6 or progress >= 1:
            next_live += args.live_every
            torch.save({"model": model.state_dict(), "head": head.state_dict(), "config": CONFIG}, out / "checkpoint.pt")
            for condition in ("candid", "obfuscate"):
                episodes = roll_out(model, tokenizer, server, condition, args.live_pairs)
                note(live=condition, step=step, minutes=round(minutes, 2), **summary(episodes))
            (out / "samples.json").write_text(json.dumps([e["log"] for e in episodes[:30]], indent=1))
            if progress >= 1:
                break
    server.close()


if __name__ == "__main__":
    main()
