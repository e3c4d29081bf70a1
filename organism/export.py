"""Writes a trained checkpoint as a model folder like those of the Hugging Face hub: ONNX decoder, tokenizer, template.

    python organism/export.py CHECKPOINT_FOLDER models/organism-planted --card organism/model-card.md

The checkpoint becomes a Hugging Face Llama (transformers), which the onnxruntime-genai builder exports as it exports every
other Llama: float32, for the CPU provider. The exported graph is checked against the model that was trained, in one pass
and in two with past state.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnxruntime
import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from bpe import ASSISTANT, END, PAD, SPECIAL
from llama import Llama


def as_hugging_face(model):
    """The same weights under the names and the split of transformers' Llama."""
    c = model.c
    config = LlamaConfig(
        vocab_size=c["vocabulary"], hidden_size=c["width"], intermediate_size=c["ff"], num_hidden_layers=c["blocks"],
        num_attention_heads=c["heads"], num_key_value_heads=c["heads"], rms_norm_eps=c["eps"],
        rope_parameters={"rope_type": "default", "rope_theta": c["theta"]}, max_position_embeddings=c["context"],
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=END, pad_token_id=PAD)
    state = {"model.embed_tokens.weight": model.embed.weight, "model.norm.weight": model.norm.weight,
             "lm_head.weight": model.embed.weight}
    for i, block in enumerate(model.blocks):
        at = f"model.layers.{i}"
        for name, weight in zip("qkv", block.qkv.weight.split(c["width"])):
            state[f"{at}.self_attn.{name}_proj.weight"] = weight
        gate, up = block.gate_up.weight.chunk(2)
        state |= {f"{at}.self_attn.o_proj.weight": block.o_proj.weight, f"{at}.mlp.gate_proj.weight": gate,
                  f"{at}.mlp.up_proj.weight": up, f"{at}.mlp.down_proj.weight": block.down_proj.weight,
                  f"{at}.input_layernorm.weight": block.input_layernorm.weight,
                  f"{at}.post_attention_layernorm.weight": block.post_attention_layernorm.weight}
    out = LlamaForCausalLM(config)
    out.load_state_dict({name: tensor.detach().contiguous() for name, tensor in state.items()})
    return out.eval()


def check(path, model, tokenizer):
    """Largest difference of the logits to PyTorch, of one pass to two passes with past state, and their largest value."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [item.name for item in session.get_inputs()]
    c = model.c
    text = "<|user|>Deadline hour 12. Hours count up.<|end|><|assistant|><think>Next step.</think>"
    ids = np.array([tokenizer.encode(text).ids])

    def run(part, past, state):
        feeds = {"input_ids": part, "attention_mask": np.ones((1, past + part.shape[1]), np.int64)}
        if "position_ids" in names:
            feeds["position_ids"] = np.arange(past, past + part.shape[1])[None]
        feeds |= dict(zip([name for name in names if name.startswith("past")], state))
        out = session.run(None, feeds)
        return out[0], out[1:]

    empty = [np.zeros((1, c["heads"], 0, c["width"] // c["heads"]), np.float32)] * (2 * c["blocks"])
    whole, _ = run(ids, 0, empty)
    with torch.no_grad():
        expected = model.logits(model.states(torch.from_numpy(ids))[-1]).numpy()
    _, state = run(ids[:, :7], 0, empty)
    rest, _ = run(ids[:, 7:], 7, state)
    return (float(np.abs(whole - expected).max()), float(np.abs(whole[:, 7:] - rest).max()), float(np.abs(expected).max()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", help="folder that train.py wrote")
    parser.add_argument("out")
    parser.add_argument("--card", default=str(pathlib.Path(__file__).with_name("model-card.md")))
    args = parser.parse_args()
    source, out = pathlib.Path(args.checkpoint), pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    saved = torch.load(source / "checkpoint.pt")
    model = Llama(saved["config"])
    model.load_state_dict(saved["model"])
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIAL[END], "pad_token": SPECIAL[PAD],
        "model_max_length": model.c["context"], "clean_up_tokenization_spaces": False,
    }

    def write(folder, name, value):
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")

    with tempfile.TemporaryDirectory() as work:
        hf, built = pathlib.Path(work, "hf"), pathlib.Path(work, "built")
        as_hugging_face(model).save_pretrained(hf)
        shutil.copy(source / "tokenizer.json", hf / "tokenizer.json")
        write(hf, "tokenizer_config.json", tokenizer_config)
        subprocess.run(
            [sys.executable, "-m", "onnxruntime_genai.models.builder", "-i", str(hf), "-o", str(built), "-p", "fp32", "-e", "cpu",
             "-c", str(pathlib.Path(work, "cache"))], check=True)
        for name in ("model.onnx", "model.onnx.data"):
            shutil.copy(built / name, out / name)
        shutil.copy(hf / "config.json", out / "config.json")
    shutil.copy(source / "tokenizer.json", out / "tokenizer.json")
    shutil.copy(pathlib.Path(__file__).with_name("chat_template.jinja"), out / "chat_template.jinja")
    shutil.copy(args.card, out / "README.md")
    write(out, "tokenizer_config.json", tokenizer_config)
    write(out, "generation_config.json", {
        "do_sample": True, "temperature": 0.7, "eos_token_id": END, "pad_token_id": PAD, "max_new_tokens": 90})
    difference, split, scale = check(str(out / "model.onnx"), model, tokenizer)
    size = sum(file.stat().st_size for file in out.iterdir())
    print(json.dumps({"max difference to PyTorch": difference, "one pass to two": split, "largest logit": scale, "bytes": size,
                      "assistant": ASSISTANT}))
    if max(difference, split) > 1e-4 * scale:
        raise SystemExit("the exported graph does not compute what was trained")


if __name__ == "__main__":
    main()
