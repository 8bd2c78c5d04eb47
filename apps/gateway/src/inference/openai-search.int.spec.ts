import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { formatTotalCost, listCharges, listExtraItems, type TestAccount, TestWorld } from '#testing';

const GPT = 'openai/gpt-5-mini';
const TOOL = { type: 'web_search' };
const WEB = { plugins: [{ id: 'web' }] };
const SEARCH = 'tool=web_search';
/** Returns the charge item of `times` searches by OpenAI, whose invoice lists them under the id of the response. */
const searched = (times: number) => ({
  of: 'web_search_openai',
  provider: 'openai',
  creditor: 'openai',
  beside: true,
  estimated: false,
  vendorId: expect.stringMatching(/^resp_/),
  usage: { search: times, request: 1 },
  price: String(times * 10_550_000_000),
  cost: String(times * 10_000_000_000),
});

let world: TestWorld;
let account: TestAccount;
beforeAll(async () => {
  world = await TestWorld.open();
});
afterAll(() => world.close());
beforeEach(async () => {
  account = await world.createAccount(2);
  await world.bill.clear();
});

const chat = (directive: string, more: object = {}) => world.sendChat(account, directive, { model: GPT, ...more });
const respond = (directive: string, more: object = {}) =>
  world.post('/v1/responses', { model: GPT, input: `[[sandbox ${directive}]]`, ...more }, account);

const charges = async () => listCharges(await world.listEvents(account));

/** Checks that the charges match the bill, and returns their items except those of the models. */
async function beside(): Promise<readonly unknown[]> {
  const all = await charges();
  expect(formatTotalCost(all)).toBe((await world.bill.fetchTotal()).total_usd);
  return all.flatMap(listExtraItems);
}

describe('a chat with a GPT that has native search', () => {
  test.each([WEB, { tools: [TOOL] }])(
    'uses Exa for several choices, which native search does not support: %j',
    async (more) => {
      const answer = await chat('tokens=4', { ...more, n: 2 });
      expect([answer.status, answer.body.choices?.length]).toEqual([200, 2]);
      expect(await beside()).toEqual([expect.objectContaining({ of: 'web_search', provider: 'exa' })]);
    },
  );

  test.each([
    ['the plugin', WEB, 'tokens=4', 1],
    [':online', { model: `${GPT}:online` }, 'tokens=4', 1],
    ['the tool, if the model decides to search', { tools: [TOOL] }, `${SEARCH} tool_times=2 text="Found it"`, 2],
    ['the tool with a tool choice', { tools: [TOOL], tool_choice: TOOL }, 'tokens=4', 1],
    ['the native engine', { tools: [{ ...TOOL, parameters: { engine: 'native' } }] }, `${SEARCH} tool_times=9`, 3],
    ['max_uses', { tools: [{ ...TOOL, max_uses: 1 }] }, `${SEARCH} tool_times=9`, 1],
    ['the plugin and minimal reasoning', { ...WEB, reasoning_effort: 'minimal' }, 'tokens=4', 1],
    ['allowed domains', { tools: [{ ...TOOL, filters: { allowed_domains: ['a.example'] } }] }, SEARCH, 1],
  ])('searches with %s for the fee of OpenAI', async (_, more, directive, searches) => {
    for (const stream of [false, true]) {
      const answer = await chat(directive, { ...more, stream });
      const annotations = stream
        ? answer.events.flatMap((event) => event.choices?.[0]?.delta.annotations ?? [])
        : answer.body.choices[0].message.annotations;
      expect(annotations).toHaveLength(searches);
      expect(annotations[0]).toMatchObject({ type: 'url_citation', url_citation: { url: 'https://site1.example/1' } });
    }
    expect(await beside()).toEqual([searched(searches), searched(searches)]);
  });

  test('costs no fee without a successful search', async () => {
    await chat('tokens=4', { tools: [TOOL] });
    await chat(`${SEARCH} fault=500 at=web_search`, { tools: [TOOL] });
    expect(await beside()).toEqual([]);
  });

  test('uses Exa if the engine is exa', async () => {
    await chat('tokens=4', { plugins: [{ id: 'web', engine: 'exa' }] });
    expect(await beside()).toMatchObject([{ of: 'web_search', provider: 'exa' }]);
  });

  test.each(['cut', 'error'])('is charged for completed searches if it ends early (%s)', async (fault) => {
    const { events } = await chat(`${SEARCH} fault=${fault} text="a b c d e f g h"`, { tools: [TOOL], stream: true });
    expect(events.some(({ error }) => error !== undefined)).toBe(true);
    const [charge] = await charges();
    expect(charge?.items).toMatchObject([{ estimated: true }, searched(1)]);
  });
});

describe('a response of a GPT that has native search', () => {
  test.each([false, true])('includes its searches and sources (stream: %p)', async (stream) => {
    const answer = await respond(`${SEARCH} tool_times=2 text="Found it"`, { tools: [TOOL], stream });
    const { output, status } = answer.body ?? answer.events.at(-2).response;
    expect(status).toBe('completed');
    expect(output).toMatchObject([
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'what was asked, 1' } },
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'what was asked, 2' } },
      { type: 'message', content: [{ text: 'Found it', annotations: [{ url: 'https://site1.example/1' }, {}] }] },
    ]);
    expect(await beside()).toEqual([searched(2)]);
    if (!stream) return;
    const types = answer.events.slice(2, 7).map(({ type }) => type.replace('response.', ''));
    const search = ['in_progress', 'searching', 'completed'].map((state) => `web_search_call.${state}`);
    expect(types).toEqual(['output_item.added', ...search, 'output_item.done']);
    const numbers = answer.events.slice(0, -1).map(({ sequence_number }) => sequence_number);
    expect(numbers).toEqual([...numbers.keys()]);
  });

  test('can be continued by the same model and by another one', async () => {
    const { id } = (await respond(`${SEARCH} reasoning=4 text="Found it"`, { tools: [TOOL] })).body;
    for (const model of [GPT, 'anthropic/claude-haiku-4.5']) {
      const { status, body } = await respond('tokens=3', { model, previous_response_id: id });
      expect([status, body.output_text]).toEqual([200, 'every coin that']);
    }
    const { output } = (await respond(`${SEARCH} reasoning=4 text="Found it"`, { tools: [TOOL], store: false })).body;
    const input = [{ role: 'user', content: 'Hi' }, ...output, { role: 'user', content: 'And?' }];
    expect((await respond('', { input })).status).toBe(200);
  });
});
