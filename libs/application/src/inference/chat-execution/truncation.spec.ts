import { describe, expect, test } from '@jest/globals';
import { TokenCounter } from '../../tokens/token-counter.ts';
import type { ChatBody } from '../chat/chat-body.ts';
import { selectLatestTurns, truncateToFit } from './truncation.ts';

const counter = new TokenCounter();
const countTexts = (texts: readonly string[]) => counter.countEach('a', texts);

type ChatMessage = ChatBody['messages'][number];

const system = { role: 'system', content: 'S' };
const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });
const CALLS = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }, { id: 'b' }] };
const OUTPUTS = ['a', 'b'].map((tool_call_id) => ({ role: 'tool', tool_call_id, content: 'x' }));

/** Selects turns with every message counted as one token. */
const within = (messages: readonly ChatMessage[], room: number) =>
  selectLatestTurns(messages, room, async (turns) => turns.map((turn) => turn.length));

describe('a conversation that is too long', () => {
  const TALK = [system, user('1'), assistant('2'), user('3'), assistant('4'), user('5')];

  test.each([
    [6, TALK],
    [5, [system, ...TALK.slice(3)]],
    [4, [system, ...TALK.slice(3)]],
    [3, [system, user('5')]],
    [2, [system, user('5')]],
    [0, [system, user('5')]],
  ])('loses only its oldest turns, not system messages or the last turn (%p tokens available)', async (room, kept) => {
    expect(await within(TALK, room)).toEqual(kept);
  });

  test('retains or loses tool calls together with their outputs', async () => {
    const talk = [user('1'), CALLS, ...OUTPUTS, assistant('2'), user('3')];
    expect(await within(talk, 6)).toEqual(talk);
    expect(await within(talk, 5)).toEqual([user('3')]);
  });

  test('retains the tool calls of the last turn', async () => {
    const talk = [user('1'), assistant('2'), user('3'), CALLS, ...OUTPUTS];
    expect(await within(talk, 1)).toEqual(talk.slice(2));
  });

  test('retains system and developer messages at any position', async () => {
    const talk = [user('1'), { role: 'developer', content: 'D' }, assistant('2'), user('3')];
    expect(await within(talk, 2)).toEqual([talk[1], talk[3]]);
  });

  test('loses all turns before one that does not fit, even if an older turn would fit', async () => {
    const talk = [user('1'), user('2'), ...Array.from({ length: 9 }, () => assistant('long')), user('3')];
    expect(await within(talk, 3)).toEqual([user('3')]);
  });
});

describe('truncating a request', () => {
  const model = { context: 1_000, maxOutput: 800 };
  const body = (messages: readonly ChatMessage[], more: object = {}) => ({ model: 'm', messages, ...more }) as ChatBody;

  test('returns a request unchanged if it fits', async () => {
    const short = body([user('Hi')]);
    expect(await truncateToFit(short, model, countTexts)).toBe(short);
  });

  test('reserves tokens for the output limit and the tools', async () => {
    const talk = [user('word '.repeat(300)), assistant('word '.repeat(100)), user('Hi')];
    expect((await truncateToFit(body(talk, { max_completion_tokens: 100 }), model, countTexts)).messages).toEqual(talk);
    expect((await truncateToFit(body(talk, { max_completion_tokens: 600 }), model, countTexts)).messages).toEqual(
      talk.slice(2),
    );
    const tools = [{ type: 'function', function: { name: 'f', description: 'word '.repeat(300) } }];
    expect(
      (await truncateToFit(body(talk, { max_completion_tokens: 100, tools }), model, countTexts)).messages,
    ).toEqual(talk.slice(2));
  });
});
