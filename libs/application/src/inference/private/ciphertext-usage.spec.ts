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

  test('the smallest events of a stream tell what of each is no text', () => {
    const events = [290, 262, 262, 263, 266, 272];
    expect(used(0, events).most.output).toBe(events.reduce((sum, bytes) => sum + bytes - (266 - 4), 0));
  });

  test('the few that have no token, as at its end, tell nothing', () => {
    const events = Array<number>(100).fill(265);
    const before = used(0, events).most.output;
    expect(used(0, [...events, 190, 252, 180, 14]).most.output).toBeLessThanOrEqual(before + 16);
  });

  test('frames of several events tell nothing', () => {
    expect(used(0, Array(10).fill(2_000)).most.output).toBe(10 * (2_000 - 160));
  });

  test('an event has at least a token, and never less besides its text than the enclave is known to add', () => {
    expect(used(0, [160, 160, 160, 160]).most.output).toBe(4);
    expect(used(0, [1_000, 20, 20, 20, 20]).most.output).toBe(1_000 + 80 - 5 * 160);
  });

  test('a whole answer has one envelope, however many frames it comes in', () => {
    expect(used(0, [1_000, 1_000, 500], false).most.output).toBe(840 + 1_000 + 500);
  });

  test('without a report it is estimated: a token for an event, or for three bytes of its text', () => {
    const none = (sent: number, sizes: readonly number[]) => used(sent, sizes).judge(undefined);
    expect(none(300, [263, 263, 263, 263]).usage).toEqual({ input: 100, output: 4 });
    expect(none(300, [260, 260, 260, 260, 560])).toMatchObject({
      ...{ usage: { output: 100 }, estimated: true, doubt: 'reports no usage' },
    });
  });

  test('an honest report counts as it is', () => {
    const report = { input: 74, output: 3 };
    expect(used(300, [170, 170, 170]).judge(report)).toEqual({ usage: report, estimated: false });
  });

  test('a report of more than there can be counts as that, each part by itself', () => {
    const { usage, estimated, doubt } = used(300, [170, 170]).judge({ input: 20, output: 900 });
    expect([usage, estimated]).toEqual([{ input: 20, output: 20 }, true]);
    expect(doubt).toBe('reports 20 tokens in and 900 out, where its bytes allow 4 to 400, and 0 to 20');
  });

  test.each([
    ['of the answer', { input: 74, output: 1 }],
    ['of the request', { input: 1, output: 1_000 }],
  ])('a report of next to nothing %s gives way to the estimate', (_, report) => {
    const { usage, estimated, doubt } = used(300, Array(1_000).fill(163)).judge(report);
    expect([usage, estimated]).toEqual([{ input: 100, output: 1_000 }, true]);
    expect(doubt).toMatch(/allow 4 to 400, and 248 to 3000/);
  });

  test('a whole answer with the probabilities of many tokens is believed', () => {
    const report = { input: 74, output: 100 };
    expect(used(300, [65_536, 65_536, 65_536], false).judge(report)).toEqual({ usage: report, estimated: false });
  });

  test('where each event has several tokens, more than was held for is believed, and told', () => {
    const usage = used(300, Array(30).fill(220));
    expect(usage.most.output).toBe(30 * 4);
    const report = { input: 74, output: 300 };
    expect(usage.judge(report)).toMatchObject({ usage: report, estimated: false, doubt: expect.any(String) });
    expect(usage.judge({ input: 74, output: 30 * 60 + 1 })).toMatchObject({
      usage: { output: 30 * 60 },
      estimated: true,
    });
  });

  test('whatever is reported, no more is charged than the bytes of the answer have room for', () => {
    const report = fc.option(fc.record({ input: fc.nat(1e9), output: fc.nat(1e9) }), { nil: undefined });
    fc.assert(
      fc.property(sizes, frames, fc.boolean(), report, (sent, sizes, isStream, reported) => {
        const usage = used(sent, sizes, isStream);
        const { input = 0, output = 0 } = usage.judge(reported).usage;
        const room = Math.max(
          usage.most.output,
          sizes.reduce((sum, bytes) => sum + bytes, 0) - 160 * (isStream ? sizes.length : 1),
        );
        expect([input <= usage.most.input, output <= room]).toEqual([true, true]);
      }),
    );
  });
});
