"""Compares the activations of two runs of one plan, row by row: python bench/compare_states.py RUN_A/activations RUN_B/activations [--bound 5e-5]

Prints per tap the largest absolute difference, the largest magnitude, their ratio, and the smallest difference of neighbouring
rows (what a wrong row would give). Ends with 1 where the ratio passes the bound. Needs numpy, safetensors.
"""
import argparse, json
from pathlib import Path

import numpy as np
from safetensors import safe_open

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("a", type=Path)
p.add_argument("b", type=Path)
p.add_argument("--bound", type=float, default=5e-5)
a = p.parse_args()


def read(folder):
    rows = {}
    for path in sorted(folder.glob("shard-*.safetensors")):
        with safe_open(path, "np") as shard:
            names = [tuple(row) for row in json.loads(shard.metadata()["rows"])]
            for tap in shard.keys():
                rows.setdefault(tap, {}).update(zip(names, shard.get_tensor(tap).astype(np.float64)))
    return rows


ours, theirs = read(a.a), read(a.b)
if ours.keys() != theirs.keys():
    raise SystemExit(f"expected the same taps, got {sorted(ours)} and {sorted(theirs)}")
worst = 0.0
for tap in sorted(ours):
    if ours[tap].keys() != theirs[tap].keys():
        raise SystemExit(f"{tap}: expected the same rows, got {len(ours[tap])} and {len(theirs[tap])}")
    x, y = (np.stack([table[tap][key] for key in sorted(ours[tap])]) for table in (ours, theirs))
    difference, scale = np.abs(x - y).max(), np.abs(y).max()
    wrong = np.abs(np.diff(y, axis=0)).max(axis=1)
    worst = max(worst, difference / scale)
    print(f"{tap}: {len(x)} rows, max abs difference {difference:.2e} where values reach {scale:.4g} (ratio {difference / scale:.1e}); median difference of unlike rows {np.median(wrong):.2g}")
print(f"largest ratio {worst:.1e}, bound {a.bound:.0e}")
raise SystemExit(int(not worst <= a.bound))
