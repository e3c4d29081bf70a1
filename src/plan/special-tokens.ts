/** Names that transformers knows of every tokenizer. */
const CLASSIC = [
  'bos_token',
  'eos_token',
  'unk_token',
  'sep_token',
  'pad_token',
  'cls_token',
  'mask_token',
  'additional_special_tokens',
];

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A token is written as its text or as an object with `content`. */
const textOf = (value: unknown): unknown =>
  isRecord(value) && 'content' in value ? value['content'] : Array.isArray(value) ? value.map(textOf) : value;

/**
 * What transformers hands to a chat template as its special tokens (`special_tokens_map`): the classic names, and those a
 * model adds in `extra_special_tokens`. A name without a value is not passed at all: a template prints nothing for it,
 * where it would print `None` for a null. Settings such as `add_bos_token` are no tokens.
 * @param config tokenizer_config.json
 * @param specialMap special_tokens_map.json; transformers reads it only beside a configuration without added_tokens_decoder
 */
export function specialTokensOf(
  config: Readonly<Record<string, unknown>>,
  specialMap: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const extra = config['extra_special_tokens'];
  const found: Record<string, unknown> = {};
  const take = (name: string, value: unknown): void => {
    const text = textOf(value);
    if (text === null || text === undefined || text === '' || (Array.isArray(text) && text.length === 0)) return;
    found[name] = text;
  };
  for (const name of CLASSIC) take(name, specialMap[name] ?? config[name]);
  if (isRecord(extra)) for (const [name, value] of Object.entries(extra)) take(name, value);
  return found;
}
