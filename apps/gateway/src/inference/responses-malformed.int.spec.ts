/** Requests of agents, each with one malformed member: each request is served, or rejected with 400. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { generateMalformed, sampleCases, type TestAccount, type TestResponse, TestWorld } from '#testing';

const AT_ONCE = 16;
/** Number of malformed requests per route, unless all cases are tested. */
const SAMPLED_REQUESTS = 80;
const TEXT = { type: 'input_text', text: 'Hello' };

const TOOLS = [
  {
    type: 'namespace',
    name: 'files',
    description: 'Files',
    tools: [
      { type: 'custom', name: 'patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: /.+/' } },
      { type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } },
    ],
  },
];

const AGENT = {
  input: [
    { type: 'additional_tools', role: 'developer', tools: TOOLS },
    { type: 'message', role: 'developer', content: [TEXT] },
    { type: 'compaction', encrypted_content: 'chat-compaction.SGVsbG8=' },
    { type: 'agent_message', author: '/root', recipient: '/root/a', content: [TEXT] },
    { type: 'configuration_update', reasoning: { effort: 'low' }, text: { format: { type: 'text' } } },
    { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Well' }], encrypted_content: 'gAAAA' },
    { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', namespace: 'files', input: 'x' },
    { type: 'custom_tool_call_output', call_id: 'call_1', output: [TEXT] },
    { role: 'user', content: '[[sandbox tokens=1]]' },
  ],
  max_output_tokens: 64,
  tools: [{ type: 'function', name: 'wait', parameters: null, strict: null }],
  tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'wait' }] },
  reasoning: { effort: 'low', context: 'all_turns' },
  store: false,
};

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
  world.contracts.allowInvalidValues();
  account = await world.createAccount(105);
});
afterAll(() => world.close());

test.each([
  ['openai/gpt-5-mini', '/v1/responses'],
  ['anthropic/claude-haiku-4.5', '/v1/responses/compact'],
])('serves malformed requests for %s at %s, or rejects them with 400', async (model, route) => {
  const found: string[] = [];
  const left = sampleCases([...generateMalformed(AGENT)], SAMPLED_REQUESTS)[Symbol.iterator]();
  const isWrong = ({ status, body }: TestResponse) => {
    if (status === 200) return false;
    // Messages of the gateway about input items start with `input`, and must have a `param`. Others may have none.
    return status !== 400 || (typeof body.error.param !== 'string' && body.message.startsWith('input'));
  };
  const work = async () => {
    for (let next = left.next(); !next.done; next = left.next()) {
      const { change, body } = next.value;
      const answer = await world.post(route, { model, ...(body as object) }, account);
      if (isWrong(answer)) found.push(`${change}: ${answer.status} ${answer.text.slice(0, 300)}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  expect(found).toEqual([]);
  expect((await world.post('/credits/balance', undefined, account)).body.held_usd).toBe(0);
});
