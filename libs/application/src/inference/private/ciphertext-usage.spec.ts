import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { CiphertextUsage } from './ciphertext-usage.ts';

const TERMS = { eventBytes: 160, templateTokens: 100, context: 10_000 };

function used(sent: number, frames: readonly number[], isStream = true): CiphertextUsage {
  const usage = new CiphertextUsage(TERMS);
  usage.send(sent);
  usage.receive(frames, isStream);
  return usage;
}

const frames = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 });
const sizes = fc.integer({ min: 0, max: 200_000 });

describe('the usage of a chat that cannot be read', () => {
  test('its input is at most a token for a byte, and what the template adds, and never more than the model reads', () => {
    expect(used(500, []).most).toEqual({ input: 600, output: 0 });
    expect(used(50_000, []).most.input).toBe(10_000);
  });

  test('an event of a stream has at least a token, and at most one for each byte of its text', () => {
    expect(used(0, [0, 161, 170, 260]).most.output).toBe(1 + 1 + 10 + 100);
  });

  test('a whole answer has one envelope, however many frames it comes in', () => {
    expect(used(0, [1_000, 1_000, 500], false).most.output).toBe(840 + 1_000 + 500);
  });

  test('without a report it is estimated: a token for an event, or for three bytes of text', () => {
    const none = (sent: number, sizes: readonly number[]) => used(sent, sizes).judge(undefined);
    expect(none(300, [163, 163, 163]).usage).toEqual({ input: 100, output: 3 });
    expect(none(300, [460])).toMatchObject({ usage: { output: 100 }, estimated: true, doubt: 'reports no usage' });
  });

  test('an honest report counts as it is', () => {
    const report = { input: 74, output: 3 };
    expect(used(300, [170, 170, 170]).judge(report)).toEqual({ usage: report, estimated: false });
  });

  test('a report of more than there can be counts as that, each part by itself', () => {
    const { usage, estimated, doubt } = used(300, [170, 170]).judge({ input: 20, output: 900 });
    expect([usage, estimated]).toEqual([{ input: 20, output: 20 }, true]);
    expect(doubt).toBe('reports 20 tokens in and 900 out, where its bytes allow 400 and 20');
  });

  test('a report of next to nothing for a long answer counts, and is doubted', () => {
    const { usage, estimated, doubt } = used(300, Array(1_000).fill(250)).judge({ input: 74, output: 1 });
    expect([usage.output, estimated, doubt]).toEqual([1, false, expect.stringContaining('an answer of 250000 bytes')]);
  });

  test('whatever is reported, no more is charged than was held for', () => {
    const report = fc.option(fc.record({ input: fc.nat(1e9), output: fc.nat(1e9) }), { nil: undefined });
    fc.assert(
      fc.property(sizes, frames, fc.boolean(), report, (sent, sizes, isStream, reported) => {
        const usage = used(sent, sizes, isStream);
        const { input = 0, output = 0 } = usage.judge(reported).usage;
        expect([input <= usage.most.input, output <= usage.most.output]).toEqual([true, true]);
      }),
    );
  });
});
