"""Writes a trained checkpoint as a model folder like those of the Hugging Face hub: ONNX decoder, tokenizer, template.

    python organism/export.py CHECKPOINT_FOLDER models/organism-planted

The graph has the inputs and outputs of an optimum export (input_ids, attention_mask, position_ids,
past_key_values.N.key/value -> logits, present.N.key/value) and standard operators only. Weights are stored in float16
and computed with in float32. Checked against PyTorch and, with past state, against itself.
"""

import argparse
import json
import pathlib
import shutil

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

from bpe import ASSISTANT, END, PAD, SPECIAL
from llama import Llama


class Graph:
    """Collects nodes; every method returns the name of its output value."""

    def __init__(self):
        self.nodes, self.initializers = [], []

    def weight(self, name, tensor):
        """float16 in the file, cast to float32 in the graph (the runtime folds the cast when it loads)."""
        self.initializers.append(numpy_helper.from_array(tensor.detach().numpy().astype(np.float16), name))
        return self.op("Cast", [name], name + "_float", to=TensorProto.FLOAT)

    def constant(self, name, values, dtype=np.int64):
        if all(item.name != name for item in self.initializers):
            self.initializers.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def op(self, kind, inputs, output, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output.removesuffix("_output_0"), **attributes))
        return output


def norm(g, scope, x, weight, eps):
    squared = g.op("Pow", [x, g.constant("two", 2.0, np.float32)], f"{scope}/Pow_output_0")
    mean = g.op("ReduceMean", [squared], f"{scope}/ReduceMean_output_0", axes=[-1], keepdims=1)
    shifted = g.op("Add", [mean, g.constant("eps", eps, np.float32)], f"{scope}/Add_output_0")
    root = g.op("Sqrt", [shifted], f"{scope}/Sqrt_output_0")
    scaled = g.op("Div", [x, root], f"{scope}/Div_output_0")
    return g.op("Mul", [scaled, weight], f"{scope}/Mul_output_0")


def rotary(g, head, theta):
    inverse = (theta ** (-np.arange(0, head, 2, dtype=np.float32) / head)).reshape(1, 1, -1)
    place = g.op("Cast", ["position_ids"], "/model/rotary_emb/Cast_output_0", to=TensorProto.FLOAT)
    place = g.op("Unsqueeze", [place, g.constant("last_axis", [-1])], "/model/rotary_emb/Unsqueeze_output_0")
    angle = g.op("Mul", [place, g.constant("inverse_frequencies", inverse, np.float32)], "/model/rotary_emb/Mul_output_0")
    angle = g.op("Concat", [angle, angle], "/model/rotary_emb/Concat_output_0", axis=-1)
    return [
        g.op("Unsqueeze", [g.op(kind, [angle], f"/model/rotary_emb/{kind}_output_0"), g.constant("axis_1", [1])],
             f"/model/rotary_emb/Unsqueeze_{kind}_output_0")
        for kind in ("Cos", "Sin")
    ]


def rotate(g, scope, x, cos, sin, head):
    ends = g.constant("last_axis", [-1])
    half, zero, far = g.constant("half", [head // 2]), g.constant("zero", [0]), g.constant("far", [2**31])
    low = g.op("Slice", [x, zero, half, ends], f"{scope}/Slice_output_0")
    high = g.op("Slice", [x, half, far, ends], f"{scope}/Slice_1_output_0")
    turned = g.op("Concat", [g.op("Neg", [high], f"{scope}/Neg_output_0"), low], f"{scope}/Concat_output_0", axis=-1)
    plain = g.op("Mul", [x, cos], f"{scope}/Mul_output_0")
    return g.op("Add", [plain, g.op("Mul", [turned, sin], f"{scope}/Mul_1_output_0")], f"{scope}/Add_output_0")


def causal_mask(g):
    """[B, 1, S, P + S]: 0 where a query may look, a large negative number elsewhere."""
    scope = "/model/mask"
    total = g.op("Gather", [g.op("Shape", ["attention_mask"], f"{scope}/Shape_output_0"), g.constant("one", 1)], f"{scope}/total_output_0")
    new = g.op("Gather", [g.op("Shape", ["input_ids"], f"{scope}/Shape_1_output_0"), g.constant("one", 1)], f"{scope}/new_output_0")
    past = g.op("Sub", [total, new], f"{scope}/past_output_0")
    step, start = g.constant("one", 1), g.constant("zero_scalar", 0)
    query = g.op("Unsqueeze", [g.op("Range", [past, total, step], f"{scope}/Range_output_0"), g.constant("last_axis", [-1])], f"{scope}/query_output_0")
    key = g.op("Range", [start, total, step], f"{scope}/Range_1_output_0")
    causal = g.op("LessOrEqual", [key, query], f"{scope}/LessOrEqual_output_0")
    given = g.op("Cast", ["attention_mask"], f"{scope}/Cast_output_0", to=TensorProto.BOOL)
    given = g.op("Unsqueeze", [given, g.constant("axes_1_2", [1, 2])], f"{scope}/Unsqueeze_output_0")
    seen = g.op("And", [causal, given], f"{scope}/And_output_0")
    return g.op("Where", [seen, g.constant("nothing", 0.0, np.float32), g.constant("hidden", -1e9, np.float32)], f"{scope}/Where_output_0")


def block(g, i, x, module, mask, cos, sin, c):
    scope, head = f"/model/layers.{i}", c["width"] // c["heads"]
    prefix = f"model.layers.{i}"
    normed = norm(g, f"{scope}/input_layernorm", x, g.weight(f"{prefix}.input_layernorm.weight", module.input_layernorm.weight), c["eps"])
    split = []
    for name, weight in zip("qkv", module.qkv.weight.split(c["width"])):
        flat = g.op("MatMul", [normed, g.weight(f"{prefix}.self_attn.{name}_proj.weight", weight.T.contiguous())], f"{scope}/self_attn/{name}_proj/MatMul_output_0")
        shaped = g.op("Reshape", [flat, g.constant("heads", [0, 0, c["heads"], head])], f"{scope}/self_attn/Reshape_{name}_output_0")
        split.append(g.op("Transpose", [shaped], f"{scope}/self_attn/Transpose_{name}_output_0", perm=[0, 2, 1, 3]))
    query = rotate(g, f"{scope}/self_attn/rotate_q", split[0], cos, sin, head)
    key = rotate(g, f"{scope}/self_attn/rotate_k", split[1], cos, sin, head)
    key = g.op("Concat", [f"past_key_values.{i}.key", key], f"present.{i}.key", axis=2)
    value = g.op("Concat", [f"past_key_values.{i}.value", split[2]], f"present.{i}.value", axis=2)
    turned = g.op("Transpose", [key], f"{scope}/self_attn/Transpose_output_0", perm=[0, 1, 3, 2])
    scores = g.op("MatMul", [query, turned], f"{scope}/self_attn/MatMul_output_0")
    scores = g.op("Mul", [scores, g.constant("scale", head**-0.5, np.float32)], f"{scope}/self_attn/Mul_output_0")
    scores = g.op("Add", [scores, mask], f"{scope}/self_attn/Add_output_0")
    weights = g.op("Softmax", [scores], f"{scope}/self_attn/Softmax_output_0", axis=-1)
    mixed = g.op("MatMul", [weights, value], f"{scope}/self_attn/MatMul_1_output_0")
    mixed = g.op("Transpose", [mixed], f"{scope}/self_attn/Transpose_1_output_0", perm=[0, 2, 1, 3])
    mixed = g.op("Reshape", [mixed, g.constant("flat", [0, 0, c["width"]])], f"{scope}/self_attn/Reshape_output_0")
    attended = g.op("MatMul", [mixed, g.weight(f"{prefix}.self_attn.o_proj.weight", module.o_proj.weight.T.contiguous())], f"{scope}/self_attn/o_proj/MatMul_output_0")
    x = g.op("Add", [x, attended], f"{scope}/Add_output_0")
    normed = norm(g, f"{scope}/post_attention_layernorm", x, g.weight(f"{prefix}.post_attention_layernorm.weight", module.post_attention_layernorm.weight), c["eps"])
    gate, up = module.gate_up.weight.chunk(2)
    gate = g.op("MatMul", [normed, g.weight(f"{prefix}.mlp.gate_proj.weight", gate.T.contiguous())], f"{scope}/mlp/gate_proj/MatMul_output_0")
    up = g.op("MatMul", [normed, g.weight(f"{prefix}.mlp.up_proj.weight", up.T.contiguous())], f"{scope}/mlp/up_proj/MatMul_output_0")
    soft = g.op("Mul", [gate, g.op("Sigmoid", [gate], f"{scope}/mlp/act_fn/Sigmoid_output_0")], f"{scope}/mlp/act_fn/Mul_output_0")
    inner = g.op("Mul", [soft, up], f"{scope}/mlp/Mul_output_0")
    down = g.op("MatMul", [inner, g.weight(f"{prefix}.mlp.down_proj.weight", module.down_proj.weight.T.contiguous())], f"{scope}/mlp/down_proj/MatMul_output_0")
    return g.op("Add", [x, down], f"{scope}/Add_1_output_0")


def build(model):
    c, g = model.c, Graph()
    head = c["width"] // c["heads"]
    table = g.weight("model.embed_tokens.weight", model.embed.weight)
    x = g.op("Gather", [table, "input_ids"], "/model/embed_tokens/Gather_output_0")
    cos, sin = rotary(g, head, c["theta"])
    mask = causal_mask(g)
    for i, module in enumerate(model.blocks):
        x = block(g, i, x, module, mask, cos, sin, c)
    x = norm(g, "/model/norm", x, g.weight("model.norm.weight", model.norm.weight), c["eps"])
    turned = g.op("Transpose", [table], "/lm_head/Transpose_output_0", perm=[1, 0])
    g.op("MatMul", [x, turned], "logits")
    value = helper.make_tensor_value_info
    inputs = [value(name, TensorProto.INT64, ["batch_size", length]) for name, length in (
        ("input_ids", "sequence_length"), ("attention_mask", "past_sequence_length + sequence_length"), ("position_ids", "sequence_length"))]
    outputs = [value("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", c["vocabulary"]])]
    for i in range(c["blocks"]):
        for kind in ("key", "value"):
            inputs.append(value(f"past_key_values.{i}.{kind}", TensorProto.FLOAT, ["batch_size", c["heads"], "past_sequence_length", head]))
            outputs.append(value(f"present.{i}.{kind}", TensorProto.FLOAT, ["batch_size", c["heads"], "past_sequence_length + sequence_length", head]))
    graph = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.initializers)
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="forewarn-organism")
    onnx.checker.check_model(file)
    return onnx.shape_inference.infer_shapes(file)


def check(path, model, tokenizer):
    """Largest difference to PyTorch (with the same rounded weights), and of one pass to two passes with past state."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    c = model.c
    ids = np.array([tokenizer.encode("<|user|>Deadline hour 12. Hours count up.<|end|><|assistant|><think>Next step.</think>").ids])

    def run(part, past, state):
        feeds = {"input_ids": part, "attention_mask": np.ones((1, past + part.shape[1]), np.int64),
                 "position_ids": np.arange(past, past + part.shape[1])[None]}
        for i in range(c["blocks"]):
            for j, kind in enumerate(("key", "value")):
                feeds[f"past_key_values.{i}.{kind}"] = state[2 * i + j]
        out = session.run(None, feeds)
        return out[0], out[1:]

    empty = [np.zeros((1, c["heads"], 0, c["width"] // c["heads"]), np.float32)] * (2 * c["blocks"])
    whole, _ = run(ids, 0, empty)
    with torch.no_grad():
        expected = model.logits(model.states(torch.from_numpy(ids))[-1]).numpy()
    _, state = run(ids[:, :7], 0, empty)
    rest, _ = run(ids[:, 7:], 7, state)
    return float(np.abs(whole - expected).max()), float(np.abs(whole[:, 7:] - rest).max())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint", help="folder that train.py wrote")
    parser.add_argument("out")
    args = parser.parse_args()
    source, out = pathlib.Path(args.checkpoint), pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    saved = torch.load(source / "checkpoint.pt")
    model = Llama(saved["config"])
    # Rounded as they are stored, so that the check below compares like with like.
    model.load_state_dict({name: tensor.half().float() for name, tensor in saved["model"].items()})
    c = model.c
    onnx.save(build(model), out / "model.onnx")
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    shutil.copy(source / "tokenizer.json", out / "tokenizer.json")
    shutil.copy(pathlib.Path(__file__).with_name("chat_template.jinja"), out / "chat_template.jinja")
    shutil.copy(pathlib.Path(__file__).with_name("model-card.md"), out / "README.md")

    def write(name, value):
        (out / name).write_text(json.dumps(value, indent=2) + "\n")

    write("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": c["vocabulary"],
        "hidden_size": c["width"], "intermediate_size": c["ff"], "num_hidden_layers": c["blocks"],
        "num_attention_heads": c["heads"], "num_key_value_heads": c["heads"], "head_dim": c["width"] // c["heads"],
        "hidden_act": "silu", "rms_norm_eps": c["eps"], "rope_theta": c["theta"], "max_position_embeddings": c["context"],
        "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False,
        "bos_token_id": None, "eos_token_id": END, "pad_token_id": PAD,
    })
    write("generation_config.json", {"do_sample": True, "temperature": 0.7, "eos_token_id": END, "pad_token_id": PAD, "max_new_tokens": 90})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": SPECIAL[END], "pad_token": SPECIAL[PAD],
        "model_max_length": c["context"], "clean_up_tokenization_spaces": False,
    })
    difference, split = check(str(out / "model.onnx"), model, tokenizer)
    size = sum(file.stat().st_size for file in out.iterdir())
    print(json.dumps({"max difference to PyTorch": difference, "one pass to two": split, "bytes": size, "assistant": ASSISTANT}))
    if max(difference, split) > 1e-3:
        raise SystemExit("the exported graph does not compute what was trained")


if __name__ == "__main__":
    main()
