/** Reasoning that a model continues after a tool call, in the Responses API. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openTappedWorld, type TappedWorld, type TestAccount, type TestWorld, type Wiretap } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const ENCRYPTED = 'reasoning.encrypted_content';
const TOOL = { type: 'function', name: 'weather', parameters: { type: 'object', properties: {} } };

let tapped: TappedWorld;
let tap: Wiretap;
let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  tapped = await openTappedWorld();
  ({ tap, world } = tapped);
  account = await world.createAccount(105);
});
afterAll(() => tapped.close());

const user = { role: 'user', content: '[[sandbox tool=weather reasoning=4]]' };
const always = { tools: [TOOL], reasoning: { effort: 'medium' }, max_output_tokens: 4_000 };
const ask = (body: object, model = CLAUDE) => world.post('/v1/responses', { model, ...always, ...body }, account);
const said = (call_id: string) => ({ type: 'function_call_output', call_id, output: 'Sun' });

/** Checks that the first call since `takeReceived` requested thinking, and returns the thinking blocks in it. */
function thoughtsHeard(): readonly unknown[] {
  const { body } = tap.takeReceived()[0] as Wiretap['received'][number];
  expect(body.thinking).toMatchObject({ type: 'enabled' });
  const turns: readonly { readonly content: readonly { readonly type: string }[] }[] = body.messages;
  return turns.flatMap(({ content }) => content.filter(({ type }) => type.includes('thinking')));
}

describe.each([false, true])('the reasoning of Claude, streamed: %s', (stream) => {
  const answered = async (body: object, model = CLAUDE) => {
    const answer = await ask({ ...body, stream }, model);
    expect([answer.status, answer.text.slice(0, answer.status === 200 ? 0 : 500)]).toEqual([200, '']);
    return stream ? answer.events.at(-2).response : answer.body;
  };

  test('is returned with its signature, and Claude continues it with the result of a tool', async () => {
    const { output } = await answered({ input: [user], include: [ENCRYPTED], store: false });
    const [thought, call] = output;
    expect([thought.type, call.type]).toEqual(['reasoning', 'function_call']);
    expect(thought.summary).toEqual([{ type: 'summary_text', text: 'every coin that comes' }]);
    tap.takeReceived();
    const next = await answered({ input: [user, ...output, said(call.call_id)], store: false });
    expect(thoughtsHeard()).toEqual([
      { type: 'thinking', thinking: 'every coin that comes', signature: expect.stringMatching(/./) },
    ]);
    expect(next.output.map(({ type }: { type: string }) => type)).toEqual(['reasoning', 'message']);
  });

  test('is stored with the response, and returned in encrypted form only on request', async () => {
    const first = await answered({ input: [user] });
    expect(JSON.stringify(first)).not.toContain('encrypted_content');
    tap.takeReceived();
    const { call_id } = first.output.at(-1);
    await answered({ input: [said(call_id)], previous_response_id: first.id });
    expect(thoughtsHeard()).toHaveLength(1);
  });

  test('may be sent to a model of another provider, whose reasoning may be sent to Claude', async () => {
    const { output } = await answered({ input: [user], include: [ENCRYPTED] });
    const call = output.at(-1);
    await answered({ input: [user, ...output, said(call.call_id)], reasoning: {} }, 'openai/gpt-5-mini');
    const other = await answered({ input: [user], include: [ENCRYPTED] }, 'openai/gpt-5-mini');
    expect(other.output[0]).toMatchObject({ type: 'reasoning', encrypted_content: expect.any(String) });
    await answered({ input: [user, ...other.output, said(other.output.at(-1).call_id)] });
  });

  test('is rejected with a 400 if it was changed', async () => {
    const { output } = await answered({ input: [user], include: [ENCRYPTED] });
    const [thought, call] = output;
    const encrypted_content = `${thought.encrypted_content.slice(0, 30)}x`;
    const input = [user, { ...thought, encrypted_content }, call, said(call.call_id)];
    const { status, body } = await ask({ input });
    expect([status, body.error.param]).toEqual([400, 'input[1].encrypted_content']);
  });
});
