import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  encodeModel,
  FLOAT,
  INT32,
  INT64,
  intAttribute,
  type OnnxAttribute,
  type OnnxNode,
  type OnnxTensor,
  type OnnxValueInfo,
} from '../../src/model/graph/onnx-schema.ts';

/**
 * A decoder model folder with random weights, as the tests need one: Llama-like, three blocks, d = 32, past state, a
 * byte-level tokenizer and a ChatML-like template with think and tool_call tags. Its answers mean nothing.
 */
export const TINY = {
  blocks: 3,
  width: 32,
  heads: 2,
  kvHeads: 1,
  headDim: 16,
  inner: 64,
  context: 16384,
  epsilon: 1e-5,
  theta: 10000,
} as const;

/** Ids 0–255 are the bytes in the order of the byte-level alphabet; these follow. */
export const MARKERS = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<think>',
  '</think>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
] as const;
const VOCABULARY = 272;

/** Writes config.json, generation_config.json, model.onnx, tokenizer.json, tokenizer_config.json and chat_template.jinja. Same seed, same bytes. */
export async function writeTinyModel(folder: string, seed: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const json = (name: string, value: unknown) =>
    writeFile(path.join(folder, name), `${JSON.stringify(value, null, 1)}\n`);
  await writeFile(path.join(folder, 'model.onnx'), tinyGraph(seed));
  await writeFile(path.join(folder, 'chat_template.jinja'), TEMPLATE);
  await json('config.json', {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    hidden_size: TINY.width,
    intermediate_size: TINY.inner,
    num_hidden_layers: TINY.blocks,
    num_attention_heads: TINY.heads,
    num_key_value_heads: TINY.kvHeads,
    head_dim: TINY.headDim,
    max_position_embeddings: TINY.context,
    rms_norm_eps: TINY.epsilon,
    rope_theta: TINY.theta,
    vocab_size: VOCABULARY,
    bos_token_id: null,
    eos_token_id: 258,
    tie_word_embeddings: false,
  });
  await json('generation_config.json', { eos_token_id: [258, 256], do_sample: true, temperature: 1 });
  await json('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    bos_token: null,
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    add_prefix_space: false,
    clean_up_tokenization_spaces: false,
    model_max_length: TINY.context,
  });
  await json('tokenizer.json', tokenizer());
}

/** Printable stand-ins for the 256 bytes, as byte-level tokenizers write them: printable Latin-1 stays, the rest is moved up. */
function byteAlphabet(): string[] {
  let moved = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(printable ? byte : moved++);
  });
}

function tokenizer(): unknown {
  const vocab = Object.fromEntries(byteAlphabet().map((character, byte) => [character, byte]));
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: MARKERS.map((content, i) => ({
      id: 256 + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: content.startsWith('<|'),
    })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab,
      merges: [],
    },
  };
}

/** Earlier reasoning is dropped, as thinking models do; tools are JSON lines in the system message. */
const TEMPLATE = `{%- set ns = namespace(last_user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last_user = loop.index0 %}{% endif %}{% endfor %}
{%- if tools or messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}
{%- if tools %}
{{- '\\n\\n# Tools\\n' }}
{%- for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}
{{- 'Call a tool as <tool_call>{"name": ..., "arguments": ...}</tool_call>.' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'system' and loop.first %}
{%- elif m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if m.reasoning_content and loop.index0 > ns.last_user %}
{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{%- if m.content %}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}
{%- set f = call.function if call.function else call %}
{{- '\\n<tool_call>\\n{"name": "' + f.name + '", "arguments": ' }}
{%- if f.arguments is string %}{{ f.arguments }}{% else %}{{ f.arguments | tojson }}{% endif %}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;

/** Uniform in (0, 1); the sequence of mulberry32. */
function randomNumbers(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
}

const describe = (name: string, elem_type: number, dims: (string | number)[]): OnnxValueInfo => ({
  name,
  type: {
    tensor_type: {
      elem_type,
      shape: { dim: dims.map((d) => (typeof d === 'string' ? { dim_param: d } : { dim_value: d })) },
    },
  },
});

function tinyGraph(seed: number): Uint8Array {
  const { blocks, width, heads, kvHeads, headDim, inner, context, epsilon, theta } = TINY;
  const random = randomNumbers(seed);
  const node: OnnxNode[] = [];
  const initializer: OnnxTensor[] = [];
  const floats = (name: string, dims: number[], values: Float32Array): string => {
    initializer.push({ name, dims, data_type: FLOAT, raw_data: new Uint8Array(values.buffer) });
    return name;
  };
  const weight = (name: string, dims: number[], scale: number): string => {
    const values = new Float32Array(dims.reduce((a, b) => a * b, 1));
    for (let i = 0; i < values.length; i++) {
      values[i] = scale * Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    }
    return floats(name, dims, values);
  };
  const whole = (name: string, dims: number[], values: number[]): string => {
    initializer.push({
      name,
      dims,
      data_type: INT64,
      raw_data: new Uint8Array(BigInt64Array.from(values, BigInt).buffer),
    });
    return name;
  };
  const add = (op_type: string, input: string[], output: string, more: Partial<OnnxNode> = {}): string => {
    node.push({ op_type, name: output, input, output: [output], ...more });
    return output;
  };
  const norm = (name: string, x: string): string =>
    add('SimplifiedLayerNormalization', [x, floats(`${name}.weight`, [width], new Float32Array(width).fill(1))], name, {
      attribute: [intAttribute('axis', -1), { name: 'epsilon', type: 1, f: epsilon }],
    });
  const project = (name: string, x: string, from: number, to: number): string =>
    add('MatMul', [x, weight(`${name}.weight`, [from, to], 1 / Math.sqrt(from))], name);

  const axis = whole('c.axis1', [1], [1]);
  const one = whole('c.one', [1], [1]);
  const scalarOne = whole('c.index1', [], [1]);
  const toInt32: Partial<OnnxNode> = { attribute: [intAttribute('to', INT32)] };
  add('ReduceSum', ['attention_mask', axis], 'mask.sum', { attribute: [intAttribute('keepdims', 1)] });
  add('Sub', ['mask.sum', one], 'mask.last');
  add('Cast', ['mask.last'], 'mask.seqlens', toInt32);
  add('Shape', ['attention_mask'], 'mask.shape');
  add('Gather', ['mask.shape', scalarOne], 'mask.length');
  add('Cast', ['mask.length'], 'mask.total', toInt32);
  const angle = (f: (x: number) => number): Float32Array =>
    Float32Array.from({ length: (context * headDim) / 2 }, (_, i) => {
      const half = headDim / 2;
      return f(Math.floor(i / half) / theta ** (((i % half) * 2) / headDim));
    });
  floats('cos_cache', [context, headDim / 2], angle(Math.cos));
  floats('sin_cache', [context, headDim / 2], angle(Math.sin));

  let x = add('Gather', [weight('embed.weight', [VOCABULARY, width], 1), 'input_ids'], '/model/embed_tokens/Gather');
  for (let k = 0; k < blocks; k++) {
    const name = `/model/layers.${k}`;
    const h = norm(`${name}/input_layernorm`, x);
    const q = project(`${name}/attn/q_proj`, h, width, heads * headDim);
    const key = project(`${name}/attn/k_proj`, h, width, kvHeads * headDim);
    const value = project(`${name}/attn/v_proj`, h, width, kvHeads * headDim);
    const attributes: OnnxAttribute[] = [
      intAttribute('num_heads', heads),
      intAttribute('kv_num_heads', kvHeads),
      intAttribute('do_rotary', 1),
    ];
    node.push({
      op_type: 'GroupQueryAttention',
      domain: 'com.microsoft',
      name: `${name}/attn/GroupQueryAttention`,
      input: [
        q,
        key,
        value,
        `past_key_values.${k}.key`,
        `past_key_values.${k}.value`,
        'mask.seqlens',
        'mask.total',
        'cos_cache',
        'sin_cache',
      ],
      output: [`${name}/attn/out`, `present.${k}.key`, `present.${k}.value`],
      attribute: attributes,
    });
    x = add('Add', [x, project(`${name}/attn/o_proj`, `${name}/attn/out`, heads * headDim, width)], `${name}/Add`);
    const m = norm(`${name}/post_attention_layernorm`, x);
    const gate = project(`${name}/mlp/gate_proj`, m, width, inner);
    const up = project(`${name}/mlp/up_proj`, m, width, inner);
    const gated = add('Mul', [gate, add('Sigmoid', [gate], `${name}/mlp/Sigmoid`)], `${name}/mlp/silu`);
    const product = add('Mul', [gated, up], `${name}/mlp/Mul`);
    x = add('Add', [x, project(`${name}/mlp/down_proj`, product, inner, width)], `${name}/Add_1`);
  }
  add(
    'MatMul',
    [norm('/model/norm', x), weight('lm_head.weight', [width, VOCABULARY], 1 / Math.sqrt(width))],
    'logits',
  );

  const states = (prefix: string, length: string): OnnxValueInfo[] =>
    Array.from({ length: blocks }, (_, k) =>
      ['key', 'value'].map((s) => describe(`${prefix}.${k}.${s}`, FLOAT, ['batch_size', kvHeads, length, headDim])),
    ).flat();
  return encodeModel({
    ir_version: 10,
    producer_name: 'forewarn-test',
    opset_import: [
      { domain: '', version: 21 },
      { domain: 'com.microsoft', version: 1 },
    ],
    functions: [],
    graph: {
      name: 'tiny',
      node,
      initializer,
      input: [
        describe('input_ids', INT64, ['batch_size', 'sequence_length']),
        describe('attention_mask', INT64, ['batch_size', 'total_sequence_length']),
        ...states('past_key_values', 'past_sequence_length'),
      ],
      output: [
        describe('logits', FLOAT, ['batch_size', 'sequence_length', VOCABULARY]),
        ...states('present', 'total_sequence_length'),
      ],
      value_info: [],
    },
  });
}
