import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CiphertextUsageLimits, type EnclaveOverhead } from './ciphertext-usage.ts';

const TERMS = { eventBytes: 160, eventTokens: 1, templateTokens: 100, context: 10_000 };
/** Of an enclave of which it is not known how many tokens it puts into an event. */
const OPEN = { ...TERMS, eventTokens: undefined };

function used(
  sent: number,
  frames: readonly number[],
  isStream = true,
  terms: EnclaveOverhead = TERMS,
): CiphertextUsageLimits {
  const usage = new CiphertextUsageLimits(terms);
  usage.recordSent(sent);
  usage.recordReceived(frames, isStream);
  return usage;
}

const frames = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 });
const sizes = fc.integer({ min: 0, max: 200_000 });

describe('the usage of a chat that cannot be read', () => {
  test('its input is at most a token for a byte, and what the template adds, and never more than the model reads', () => {
    expect(used(500, []).maxUsage).toEqual({ input: 600, output: 0 });
    expect(used(50_000, []).maxUsage.input).toBe(10_000);
  });

  test('an event of a stream has as many tokens at most as the enclave puts into one', () => {
    expect(used(0, [262, 262, 14]).maxUsage.output).toBe(3);
    expect(used(0, [262, 262, 14], true, { ...TERMS, eventTokens: 4 }).maxUsage.output).toBe(12);
  });

  test('where that is not known, it has a token for each byte of its text, and one at least', () => {
    expect(used(0, [260, 260], true, OPEN).maxUsage.output).toBe(200);
    expect(used(0, [14, 14], true, OPEN).maxUsage.output).toBe(2);
  });

  test('a whole answer has one envelope, however many frames it comes in', () => {
    expect(used(0, [1_000, 1_000, 500], false).maxUsage.output).toBe(840 + 1_000 + 500);
  });

  test('without a report it is estimated: by its events, or else a token for three bytes of text', () => {
    const none = (isStream: boolean, terms = TERMS as EnclaveOverhead) =>
      used(300, [263, 263, 264], isStream, terms).clamp(undefined);
    expect(none(true)).toEqual({ usage: { input: 100, output: 3 }, estimated: true, problem: 'reports no usage' });
    expect(none(true, OPEN).usage.output).toBe(Math.ceil(310 / 3));
    expect(none(false).usage.output).toBe(210);
  });

  test('an honest report counts as it is', () => {
    const report = { input: 74, output: 3 };
    expect(used(300, [170, 170, 170]).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('a report of several tokens in an event counts, if there is room for them', () => {
    const report = { input: 74, output: 300 };
    expect(used(300, Array(30).fill(220)).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('a report of more than there can be counts as that, each part by itself', () => {
    const { usage, estimated, problem: doubt } = used(300, [170, 170]).clamp({ input: 20, output: 900 });
    expect([usage, estimated]).toEqual([{ input: 20, output: 20 }, true]);
    expect(doubt).toBe('reports 20 tokens in and 900 out, where its bytes allow 4 to 400, and 0 to 20');
  });

  test.each([
    ['of the answer', { input: 74, output: 1 }],
    ['of the request', { input: 1, output: 1_000 }],
  ])('a report of next to nothing %s gives way to the estimate', (_, report) => {
    const { usage, estimated, problem: doubt } = used(300, Array(1_000).fill(163)).clamp(report);
    expect([usage, estimated]).toEqual([{ input: 100, output: 1_000 }, true]);
    expect(doubt).toMatch(/allow 4 to 400, and 248 to 3000/);
  });

  test('a whole answer with the probabilities of many tokens is believed', () => {
    const report = { input: 74, output: 100 };
    expect(used(300, [65_536, 65_536, 65_536], false).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('whatever is reported, no more is charged than the bytes of the answer have room for', () => {
    const report = fc.option(fc.record({ input: fc.nat(1e9), output: fc.nat(1e9) }), { nil: undefined });
    fc.assert(
      fc.property(sizes, frames, fc.boolean(), report, (sent, sizes, isStream, reported) => {
        const usage = used(sent, sizes, isStream);
        const { input = 0, output = 0 } = usage.clamp(reported).usage;
        const room = Math.max(
          usage.maxUsage.output,
          sizes.reduce((sum, bytes) => sum + bytes, 0) - 160 * (isStream ? sizes.length : 1),
        );
        expect([input <= usage.maxUsage.input, output <= room]).toEqual([true, true]);
      }),
    );
  });
});
