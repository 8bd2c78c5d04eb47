import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CiphertextUsageLimits, type EnclaveOverhead } from './ciphertext-usage.ts';

const TERMS = { eventBytes: 160, eventTokens: 1, templateTokens: 100, context: 10_000 };
/** Terms of an enclave whose maximum number of tokens per event is unknown. */
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

describe('the usage of an encrypted chat', () => {
  test('has at most one input token per byte, plus the template, up to the context', () => {
    expect(used(500, []).maxUsage).toEqual({ input: 600, output: 0 });
    expect(used(50_000, []).maxUsage.input).toBe(10_000);
  });

  test('has at most `eventTokens` output tokens for each event of a stream', () => {
    expect(used(0, [262, 262, 14]).maxUsage.output).toBe(3);
    expect(used(0, [262, 262, 14], true, { ...TERMS, eventTokens: 4 }).maxUsage.output).toBe(12);
  });

  test('without `eventTokens` has at most one output token per byte of text, or per event if that is more', () => {
    expect(used(0, [260, 260], true, OPEN).maxUsage.output).toBe(200);
    expect(used(0, [14, 14], true, OPEN).maxUsage.output).toBe(2);
  });

  test('has at most one output token per byte of a non-streaming response, minus the overhead of one event', () => {
    expect(used(0, [1_000, 1_000, 500], false).maxUsage.output).toBe(840 + 1_000 + 500);
  });

  test('is estimated without a report, from the number of events or as one token per three bytes of text', () => {
    const none = (isStream: boolean, terms = TERMS as EnclaveOverhead) =>
      used(300, [263, 263, 264], isStream, terms).clamp(undefined);
    expect(none(true)).toEqual({ usage: { input: 100, output: 3 }, estimated: true, problem: 'reports no usage' });
    expect(none(true, OPEN).usage.output).toBe(Math.ceil(310 / 3));
    expect(none(false).usage.output).toBe(210);
  });

  test('is the reported usage if it is plausible', () => {
    const report = { input: 74, output: 3 };
    expect(used(300, [170, 170, 170]).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('is the reported usage with several tokens per event if the bytes allow it', () => {
    const report = { input: 74, output: 300 };
    expect(used(300, Array(30).fill(220)).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('is the reported usage, with input and output each limited to what the bytes allow', () => {
    const { usage, estimated, problem: doubt } = used(300, [170, 170]).clamp({ input: 20, output: 900 });
    expect([usage, estimated]).toEqual([{ input: 20, output: 20 }, true]);
    expect(doubt).toBe('reports 20 input and 900 output tokens; its bytes allow 4 to 400, and 0 to 20');
  });

  test.each([
    ['output', { input: 74, output: 1 }],
    ['input', { input: 1, output: 1_000 }],
  ])('is estimated if the report has too little %s for the bytes or the events', (_, report) => {
    const { usage, estimated, problem: doubt } = used(300, Array(1_000).fill(163)).clamp(report);
    expect([usage, estimated]).toEqual([{ input: 100, output: 1_000 }, true]);
    expect(doubt).toMatch(/allow 4 to 400, and 248 to 3000/);
  });

  test('is the reported usage of a non-streaming response with log probabilities', () => {
    const report = { input: 74, output: 100 };
    expect(used(300, [65_536, 65_536, 65_536], false).clamp(report)).toEqual({ usage: report, estimated: false });
  });

  test('does not exceed what the bytes and the number of events allow, for random reports', () => {
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
