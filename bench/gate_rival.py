"""onnxruntime-genai on the same model: one JSON line in ({"ids": [...], "tokens": n}), one out ({"seconds": s}).

    python bench/gate_rival.py MODEL_FOLDER THREADS
"""

import json
import sys
import time

import onnxruntime_genai as og

folder, threads = sys.argv[1], int(sys.argv[2])
config = og.Config(folder)
config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
model = og.Model(config)
print(json.dumps({"version": og.__version__}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    total = len(request["ids"]) + request["tokens"]
    params = og.GeneratorParams(model)
    # Greedy, and never ended by the model: as many tokens as ours.
    params.set_search_options(do_sample=False, max_length=total, min_length=total)
    start = time.perf_counter()
    generator = og.Generator(model, params)
    generator.append_tokens(request["ids"])
    while not generator.is_done():
        generator.generate_next_token()
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "tokens": len(generator.get_sequence(0)) - len(request["ids"])}), flush=True)
    del generator
