import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { countInputTokens, countMaxChatInputTokens, TokenCounter } from '#application';
import { sampleSize } from '#testing';

const counter = new TokenCounter();
const countTokens = (text: string) => counter.count('a', text);

const request = (content: unknown) => ({ model: 'm', messages: [{ role: 'user', content }] });

/** Returns deterministic pseudo-random text over an alphabet. Tokenizers compress such text least. */
function noise(alphabet: string, length: number): string {
  const letters = [...alphabet];
  let seed = 42;
  return Array.from({ length }, () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return letters[(seed >>> 8) % letters.length];
  }).join('');
}

describe('the upper bound of the input tokens', () => {
  test.each([
    [
      'English',
      'The quick brown fox jumps over the lazy dog, and every coin that comes in is counted twice. '.repeat(40),
    ],
    ['code', 'export const total = rows.map(({ amount }) => BigInt(amount)).reduce((a, b) => a + b, 0n);\n'.repeat(40)],
    ['JSON', JSON.stringify({ a: [1, 2.5, null, true], key: 'value', nested: { 'x-y': '…' } }).repeat(40)],
    ['base64', noise('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', 5_000)],
    ['hexadecimal digits', noise('0123456789abcdef', 5_000)],
    ['punctuation', noise('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', 5_000)],
    ['single letters', 'a b c d e f '.repeat(500)],
    ['Chinese', '每一笔进出都要记两次账，每一分钱都有它的来历。'.repeat(100)],
    ['Arabic', 'كل قرش يدخل يُعدّ مرتين وكل قرش يخرج يُكتب '.repeat(100)],
    ['emoji', '😀🎉🚀👩‍👩‍👧‍👦🏳️‍🌈💾🧮'.repeat(100)],
    ['rare scripts', noise('ꙮ𓀀𒀱ᚠᛇᚻ𐍈', 2_000)],
    ['line ends', '\r\n\t \n'.repeat(1_000)],
  ])('is not below the count of a tokenizer: %s', async (_, text) => {
    expect(countMaxChatInputTokens(request(text))).toBeGreaterThanOrEqual(await countTokens(text));
  });

  test('is not below the count of a tokenizer for random texts', async () => {
    const any = fc.string({ unit: 'binary', maxLength: 300 });
    await fc.assert(
      fc.asyncProperty(any, async (text) => {
        expect(countMaxChatInputTokens(request(text))).toBeGreaterThanOrEqual(
          await countInputTokens(request(text), countTokens),
        );
      }),
      { numRuns: sampleSize(100, 25) },
    );
  });

  test('is the same with the context of a model, up to this context', () => {
    const text = fc.string({ unit: 'binary', maxLength: 300 });
    const contents = fc.array(fc.oneof(text, fc.constant([{ type: 'text', text: 'é'.repeat(100) }])), { maxLength: 4 });
    fc.assert(
      fc.property(contents, text, fc.nat(1_000), (each, description, context) => {
        const messages = each.map((content) => ({ role: 'user', content }));
        const body = { ...request(''), messages, tools: [{ type: 'function', function: { name: 'f', description } }] };
        const bound = countMaxChatInputTokens(body);
        const boundInContext = countMaxChatInputTokens(body, { context });
        expect(Math.min(boundInContext, context)).toBe(Math.min(bound, context));
      }),
    );
  });

  test('does not depend on the number of bytes of an image', () => {
    const image = (bytes: number) => [
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(bytes)}` } },
    ];
    expect(countMaxChatInputTokens(request(image(1_000_000)))).toBe(countMaxChatInputTokens(request(image(10))));
  });

  test('counts an image with the tokens that the model specifies', () => {
    const image = request([{ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }]);
    expect(
      countMaxChatInputTokens(image, { imageTokens: 48_169 }) - countMaxChatInputTokens(image, { imageTokens: 1 }),
    ).toBe(48_168);
  });

  const sound = (data: Buffer, format: string) => [
    { type: 'input_audio', input_audio: { data: data.toString('base64'), format } },
  ];
  const wav = (rate: number) => {
    const head = Buffer.from(
      'RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\x02\0\x10\0data\0\0\0\0',
      'latin1',
    );
    head.writeUInt32LE(rate, 24);
    return Buffer.concat([head, Buffer.alloc(32_000)]);
  };

  test('counts audio by its size if every second has a minimum number of bytes', () => {
    const mp3 = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\x05 tag \xff\xfb', 'latin1'), Buffer.alloc(32_000)]);
    for (const each of [sound(wav(16_000), 'wav'), sound(mp3, 'mp3'), sound(mp3.subarray(15), 'mp3')]) {
      expect(countMaxChatInputTokens(request(each))).toBeGreaterThan(10_000);
      expect(countMaxChatInputTokens(request(each))).toBeLessThan(12_000);
    }
  });

  const file = (file_data: string) => [{ type: 'file', file: { file_data } }];
  const bytes = (type: string, length: number) => file(`data:${type};base64,${'A'.repeat(length)}`);

  test.each([
    ['a file given by URL', file('https://files.example/report.pdf')],
    ['a file that may have one token per character', bytes('application/javascript', 1_000)],
    ['a file that may be compressed', bytes('application/vnd.openxmlformats', 1_000)],
    ['a PDF declared as text', file('data:text/plain,%PDF-1.7')],
    [
      'compressed data that is declared as text',
      file(`data:text/csv;base64,${Buffer.from('PK\x03\x04').toString('base64')}`),
    ],
    ['a file given by id', [{ type: 'file', file: { file_id: 'file-1' } }]],
    ['a video given by URL', [{ type: 'video_url', video_url: { url: 'https://files.example/a.mp4' } }]],
    [
      'a video',
      [{ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AA==', file_data: 'data:text/plain,' } }],
    ],
    ['FLAC', sound(Buffer.from('fLaC'), 'mp3')],
    [
      'FLAC after an ID3 tag',
      sound(Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\x05 tag '), Buffer.from('fLaC')]), 'mp3'),
    ],
    ['WAV with one sample per second', sound(wav(1), 'wav')],
  ])('is infinite for %s', (_, content) => {
    expect(countMaxChatInputTokens(request(content))).toBe(Number.POSITIVE_INFINITY);
  });

  test('counts a PDF as 100 dense pages, or by its size if that is more', () => {
    const small = countMaxChatInputTokens(request(bytes('application/pdf', 1_000)));
    expect(small).toBeGreaterThanOrEqual(300_000);
    expect(countMaxChatInputTokens(request(bytes('application/pdf', 100)))).toBe(small);
    expect(countMaxChatInputTokens(request(bytes('application/pdf', 4_000_000)))).toBeGreaterThan(1_000_000);
  });

  test('counts an attached text by its size', () => {
    const text = request(file(`data:text/plain;base64,${'YWFh'.repeat(1_000)}`));
    expect(countMaxChatInputTokens(text)).toBeLessThan(3_000);
    expect(countMaxChatInputTokens(text)).toBeGreaterThan(1_000);
  });

  test('does not decode an attached text that fills the context, with what precedes it or alone', () => {
    const attached = file(`data:text/plain;base64,${'YWFh'.repeat(1_000)}`);
    const count = (content: object[], context: number) => countMaxChatInputTokens(request(content), { context });
    expect(count(attached, 2_000)).toBe(Number.POSITIVE_INFINITY);
    expect(count([...attached, ...attached], 4_000)).toBe(Number.POSITIVE_INFINITY);
    expect(count(attached, 4_000)).toBe(countMaxChatInputTokens(request(attached)));
  });

  test('is not below the count of a tokenizer for an attached text, in base64 or not', async () => {
    const hard = noise('!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', 3_000);
    const inBase64 = file(`data:text/plain;base64,${Buffer.from(hard).toString('base64')}`);
    expect(countMaxChatInputTokens(request(inBase64))).toBeGreaterThanOrEqual(await countTokens(hard));
    expect(countMaxChatInputTokens(request(file(`data:text/plain,${hard}`)))).toBeGreaterThanOrEqual(
      await countTokens(hard),
    );
  });

  const LONG = 'every coin is counted twice '.repeat(1_000);

  test.each([
    ['a message', { messages: [{ role: 'user', type: 'image_url', content: LONG }] }],
    [
      'a call',
      { messages: [{ role: 'assistant', tool_calls: [{ type: 'image_url', function: { arguments: LONG } }] }] },
    ],
    ['a tool', { tools: [{ type: 'input_audio', function: { name: 'f', description: LONG } }] }],
    ['a schema', { tools: [{ type: 'function', function: { parameters: { type: 'image_url', default: LONG } } }] }],
    ['a format', { response_format: { type: 'input_image', json_schema: { description: LONG } } }],
  ])('counts %s as text even if its type is that of an image or audio', async (_, fields) => {
    expect(countMaxChatInputTokens({ ...request('hi'), ...fields })).toBeGreaterThanOrEqual(await countTokens(LONG));
  });

  test('counts nested lists and the digits of numbers', async () => {
    const list = Array.from({ length: 1_000 }, (_, i) => [12_345_678_901_234 + i, []]);
    const tools = [{ type: 'function', function: { name: 'f', parameters: { enum: list } } }];
    const json = JSON.stringify(tools);
    expect(countMaxChatInputTokens({ ...request('hi'), tools })).toBeGreaterThanOrEqual(await countTokens(json));
  });

  test('counts tools', () => {
    const tools = [{ type: 'function', function: { name: 'f', description: 'x'.repeat(1_000) } }];
    const more = countMaxChatInputTokens({ ...request('hi'), tools }) - countMaxChatInputTokens(request('hi'));
    expect(more).toBeGreaterThan(500);
  });
});

test('countTokens counts a long text in parts, with the same result as one call of the tokenizer', async () => {
  const { countTokens: count } = await import('gpt-tokenizer/encoding/o200k_base');
  const text = 'The ledger is never wrong; 42 entries were made, and each was balanced.\n'.repeat(200);
  expect(await countTokens(text)).toBe(count(text));
});

test('countTokens counts a million characters without spaces in linear time', async () => {
  // Quadratic work would take longer than a test may.
  expect(await countTokens('x'.repeat(1_000_000))).toBeGreaterThan(100_000);
});
