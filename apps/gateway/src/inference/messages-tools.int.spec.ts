/** Tools in messages, with Anthropic's unmodified client and its tool runner. */
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';
import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { listCharges, sampleCases, type TestAccount, TestWorld } from '#testing';

const CLAUDE = 'anthropic/claude-haiku-4.5';
const GPT = 'openai/gpt-5-mini';

let world: TestWorld;
let account: TestAccount;
let client: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(105);
  client = new Anthropic({ apiKey: account.apiKey, baseURL: world.api, maxRetries: 0 });
});
afterAll(() => world.close());

describe('the tool runner', () => {
  test.each([
    [CLAUDE, false],
    [CLAUDE, true],
    [GPT, false],
    [GPT, true],
  ])('runs the tool and ends, with %s, streamed: %s', async (model, stream) => {
    const cities: unknown[] = [];
    const weather = betaTool({
      name: 'weather',
      description: 'Returns the weather',
      inputSchema: { type: 'object', properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] },
      run: ({ city }) => {
        cities.push(city);
        return 'fine';
      },
    });
    const before = listCharges(await world.listEvents(account)).length;
    const messages = [{ role: 'user' as const, content: '[[sandbox tool=weather]]' }];
    const runner = client.beta.messages.toolRunner({ model, max_tokens: 2_000, tools: [weather], messages, stream });
    const last = await runner.runUntilDone();
    expect([last.stop_reason, cities]).toEqual(['end_turn', ['Ur']]);
    expect(listCharges(await world.listEvents(account))).toHaveLength(before + 2);
  });
});

describe('a tool of Anthropic that the client runs', () => {
  const display = { name: 'computer', display_width_px: 1_024, display_height_px: 768 } as const;
  const TOOLS: readonly Anthropic.Beta.BetaToolUnion[] = [
    { type: 'bash_20250124', name: 'bash', cache_control: { type: 'ephemeral' } },
    { type: 'bash_20241022', name: 'bash' },
    { type: 'text_editor_20241022', name: 'str_replace_editor' },
    { type: 'text_editor_20250124', name: 'str_replace_editor' },
    { type: 'text_editor_20250429', name: 'str_replace_based_edit_tool' },
    { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool', max_characters: 10_000 },
    { type: 'memory_20250818', name: 'memory' },
    { type: 'computer_20241022', ...display },
    { type: 'computer_20250124', ...display, display_number: 1 },
    { type: 'computer_20251124', ...display, enable_zoom: true },
  ];

  const CALLS: readonly (readonly [model: string, stream: boolean])[] = [
    [CLAUDE, true],
    [CLAUDE, false],
    ['google/gemini-2.5-flash', true],
    [GPT, true],
    [GPT, false],
  ];

  test.each(TOOLS)('is called and its result continues the conversation: $type', async (tool) => {
    const { name } = tool as { readonly name: string };
    for (const [model, stream] of sampleCases(CALLS, 2, TOOLS.indexOf(tool))) {
      const ask = (messages: Anthropic.Beta.BetaMessageParam[]) => {
        const body = { model, max_tokens: 2_000, tools: [tool], messages };
        return stream ? client.beta.messages.stream(body).finalMessage() : client.beta.messages.create(body);
      };
      const user = { role: 'user' as const, content: `[[sandbox tool=${name}]]` };
      const { stop_reason, content } = await ask([user]);
      const [call] = content;
      if (call?.type !== 'tool_use') throw new Error(`no call by ${model}`);
      expect([model, stop_reason, call.name]).toEqual([model, 'tool_use', name]);
      const result = { type: 'tool_result' as const, tool_use_id: call.id, content: 'done' };
      const last = await ask([user, { role: 'assistant', content }, { role: 'user', content: [result] }]);
      expect([model, last.stop_reason]).toEqual([model, 'end_turn']);
    }
  });

  test.each([CLAUDE, GPT])('is run by the tool runner with %s', async (model) => {
    const views: unknown[] = [];
    const fail = () => Promise.reject(new Error('not requested'));
    const memory = betaMemoryTool({
      view: (command) => {
        views.push(command);
        return Promise.resolve('empty');
      },
      create: fail,
      str_replace: fail,
      insert: fail,
      delete: fail,
      rename: fail,
    });
    const messages = [{ role: 'user' as const, content: '[[sandbox tool=memory]]' }];
    const last = await client.beta.messages.toolRunner({ model, max_tokens: 2_000, tools: [memory], messages });
    expect(last.stop_reason).toBe('end_turn');
    expect(views).toEqual([expect.objectContaining({ command: 'view' })]);
  });
});
