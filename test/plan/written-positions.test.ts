import { describe, expect, it } from 'vitest';
import { specialTokensOf } from '../../src/plan/special-tokens.ts';
import { spelledBy } from '../../src/plan/written-positions.ts';

const tokenizer = (tokens: readonly (readonly number[])[]) => ({
  tokenBytes: (id: number) => Uint8Array.from(tokens[id]),
});

describe('spelledBy', () => {
  it('gives tokens within a character that character’s edges', () => {
    const { text, offsets } = spelledBy(
      tokenizer([
        [0x61, 0xf0],
        [0x9f, 0x98],
        [0x80, 0x62],
      ]),
      [0, 1, 2],
    );
    expect(text).toBe('a😀b');
    expect([...offsets.starts]).toEqual([0, 1, 1]);
    expect([...offsets.ends]).toEqual([3, 3, 4]);
  });
  it('writes a byte that is no text as U+FFFD, and loses no token over it', () => {
    const { text, offsets } = spelledBy(tokenizer([[0xff], [0x61], [0xe2, 0x82], []]), [0, 1, 2, 3]);
    expect(text).toBe('\ufffda\ufffd\ufffd');
    expect([...offsets.starts]).toEqual([0, 1, 2, 4]);
    expect([...offsets.ends]).toEqual([1, 2, 4, 4]);
  });
});

describe('specialTokensOf', () => {
  it('hands over the classic names and those of extra_special_tokens, as texts, and no setting or null', () => {
    const config = {
      add_bos_token: true,
      bos_token: { content: '<s>', lstrip: false },
      eos_token: '</s>',
      unk_token: null,
      boi_token: '<image>',
      additional_special_tokens: ['<a>', { content: '<b>' }],
      extra_special_tokens: { image_token: '<img>' },
    };
    expect(specialTokensOf(config, {})).toEqual({
      bos_token: '<s>',
      eos_token: '</s>',
      additional_special_tokens: ['<a>', '<b>'],
      image_token: '<img>',
    });
    expect(specialTokensOf({ eos_token: 'x' }, { eos_token: 'y', pad_token: 'p' })).toEqual({
      eos_token: 'y',
      pad_token: 'p',
    });
  });
});
