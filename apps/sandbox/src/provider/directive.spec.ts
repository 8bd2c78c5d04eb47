import { describe, expect, test } from '@jest/globals';
import { countVisibleTokens, InvalidDirectiveError, parseDirective } from './directive.ts';

describe('a directive', () => {
  test('is optional, as all of its options are', () => {
    expect(parseDirective('Hello')).toMatchObject({ latency: 0, reasoning: 0, tools: 1, fault: undefined });
    expect(countVisibleTokens(parseDirective('Hello'))).toBe(16);
    expect(parseDirective('Hello [[sandbox]]')).toEqual(parseDirective('Hello'));
  });

  test('is found in the middle of a message, with its options', () => {
    const text =
      'Hi [[sandbox latency=200 tokens=64 chunk_delay=5 chunks=16 reasoning=10 fault=cut fault_times=2 id=a-1]] there';
    expect(parseDirective(text)).toEqual({
      latency: 200,
      chunkDelay: 5,
      tokens: 64,
      reasoning: 10,
      hourCacheWrites: 0,
      reportedBill: { cost: undefined, serviceTier: undefined, inferenceGeo: undefined, speed: undefined },
      chunks: 16,
      text: undefined,
      tool: undefined,
      tools: 1,
      toolTimes: 1,
      fault: 'cut',
      faultTimes: 2,
      faultRound: undefined,
      at: undefined,
      results: undefined,
      bytes: undefined,
      id: 'a-1',
    });
  });

  test('may quote a text as a JSON string', () => {
    expect(parseDirective('[[sandbox text="a ]] \\"b\\"\\n"]]').text).toBe('a ]] "b"\n');
    expect(parseDirective('[[sandbox text=yes]]').text).toBe('yes');
  });

  test('with reasoning and without tokens has the default number of visible tokens', () => {
    expect(countVisibleTokens(parseDirective('[[sandbox reasoning=100]]'))).toBe(16);
  });

  test('for several calls implies a tool', () => {
    expect(parseDirective('[[sandbox tools=2]]')).toMatchObject({ tool: 'any', tools: 2 });
    expect(parseDirective('[[sandbox tool=f tools=2]]')).toMatchObject({ tool: 'f', tools: 2 });
  });

  test.each([
    ['[[sandbox', 'is not closed'],
    ['[[sandbox tokens=1', 'is not closed'],
    ['[[sandbox tokens=1]', 'is not closed'],
    ['[[sandbox tokens]]', 'has no value'],
    ['[[sandbox, tokens=1]]', 'has a comma'],
    ['[[sandboxtokens=1]]', 'has no space'],
    ['[[sandbox token=1]]', 'has an unknown option'],
    ['[[sandbox tokens=1 tokens=2]]', 'has an option twice'],
    ['[[sandbox tokens=-1]]', 'has a negative number'],
    ['[[sandbox tokens=1.5]]', 'has a fraction'],
    ['[[sandbox tokens=1000000]]', 'has a number that is too large'],
    ['[[sandbox chunks=0]]', 'has no chunks'],
    ['[[sandbox tokens=4 chunks=5]]', 'has more chunks than tokens'],
    ['[[sandbox tokens=4 reasoning=5]]', 'has more reasoning than tokens'],
    ['[[sandbox tokens=4 text=yes]]', 'has a text and a number of tokens'],
    ['[[sandbox tool=any tokens=4]]', 'has a tool and a number of tokens'],
    ['[[sandbox tools=0]]', 'has a tool that is never called'],
    ['[[sandbox text="\\x"]]', 'has a string that is not JSON'],
    ['[[sandbox fault=explode]]', 'has an unknown fault'],
    ['[[sandbox fault=500 fault_times=1]]', 'has fault_times without an id'],
    ['[[sandbox id=a fault_times=1]]', 'has fault_times without a fault'],
    ['[[sandbox fault_round=2]]', 'has fault_round without a fault'],
    ['[[sandbox tool_times=2]]', 'has tool_times without a tool'],
    ['[[sandbox]] [[sandbox]]', 'occurs twice'],
  ])('is rejected: %s %s', (text) => {
    expect(() => parseDirective(text)).toThrow(InvalidDirectiveError);
  });
});
