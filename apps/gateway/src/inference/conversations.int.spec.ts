/**
 * A conversation that begins with a model of one provider continues with a model of each other one: with reasoning, a
 * call of a tool, its result, and an image if both models see images. The unmodified clients of OpenAI and Anthropic
 * send back what they received. Closing the world fails if a request deviates from the contracts of the providers.
 */
import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { PIXEL, sampleCases, type TestAccount, TestWorld } from '#testing';

interface Speaker {
  readonly model: string;
  readonly provider: string;
  readonly seesImages: boolean;
}

const SPEAKERS: readonly Speaker[] = [
  { model: 'openai/gpt-5-mini', provider: 'openai', seesImages: true },
  { model: 'openai/gpt-4o-mini', provider: 'openai', seesImages: true },
  { model: 'anthropic/claude-haiku-4.5', provider: 'anthropic', seesImages: true },
  { model: 'anthropic/claude-opus-4.7', provider: 'anthropic', seesImages: true },
  { model: 'google/gemini-2.5-pro', provider: 'google-vertex', seesImages: true },
  { model: 'google/gemini-3.8-flash', provider: 'google-ai-studio', seesImages: true },
  { model: 'openai/gpt-oss-120b', provider: 'groq', seesImages: false },
  { model: 'qwen/qwen3-235b-a22b-thinking', provider: 'deepinfra', seesImages: false },
];
const ALL_PAIRS = SPEAKERS.flatMap((first) => SPEAKERS.map((second) => ({ first, second })));
const PAIRS = sampleCases(ALL_PAIRS, 9);

const BEGIN = 'How is it? [[sandbox tool=weather reasoning=4]]';
const CONTINUE = 'And tomorrow? [[sandbox tokens=4 reasoning=2]]';
const BASE64 = PIXEL.toString('base64');
const IMAGE = `data:image/png;base64,${BASE64}`;
const CITY = { type: 'object' as const, properties: { city: { type: 'string', enum: ['Ur'] } }, required: ['city'] };

let world: TestWorld;
let account: TestAccount;
let openai: OpenAI;
let anthropic: Anthropic;
beforeAll(async () => {
  world = await TestWorld.open();
  account = await world.createAccount(200);
  const { apiKey } = account;
  openai = new OpenAI({ apiKey, baseURL: `${world.api}/v1`, maxRetries: 0, logLevel: 'off' });
  anthropic = new Anthropic({ apiKey, baseURL: world.api, maxRetries: 0 });
});
afterAll(() => world.close());

const at = ({ model, provider }: Speaker) => ({ model, provider: { only: [provider] } });

/** Items are sent back as they were received. */
const toInput = (output: readonly unknown[]) => output as readonly OpenAI.Responses.ResponseInputItem[];

describe.each(PAIRS)('$first.model, then $second.model', ({ first, second }) => {
  const showsImage = first.seesImages && second.seesImages;

  test('chats', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: CITY } }];
    const image = { type: 'image_url' as const, image_url: { url: IMAGE } };
    const content = [...(showsImage ? [image] : []), { type: 'text' as const, text: BEGIN }];
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content }];
    const request = { tools, reasoning: { effort: 'low' } };
    const stream = openai.chat.completions.stream({ ...request, ...at(first), messages, stream: true });
    const [called] = (await stream.finalChatCompletion()).choices;
    const [call] = called?.message.tool_calls ?? [];
    if (!called || !call) throw new Error('the model called no tool');
    messages.push(called.message, { role: 'tool', tool_call_id: call.id, content: 'fine' });
    for (const speaker of [second, first]) {
      const { choices } = await openai.chat.completions.create({ ...request, ...at(speaker), messages });
      expect(choices).toMatchObject([{ finish_reason: 'stop' }]);
      if (choices[0]) messages.push(choices[0].message, { role: 'user', content: CONTINUE });
    }
  });

  test('Responses', async () => {
    const tools = [{ type: 'function' as const, name: 'weather', parameters: CITY, strict: false }];
    const image = { type: 'input_image' as const, image_url: IMAGE, detail: 'auto' as const };
    const content = [...(showsImage ? [image] : []), { type: 'input_text' as const, text: BEGIN }];
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: 'user', content }];
    const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content'];
    const request = { tools, include, store: false, reasoning: { effort: 'low' as const } };
    const { output } = await openai.responses.stream({ ...request, ...at(first), input }).finalResponse();
    const call = output.find((item) => item.type === 'function_call');
    if (!call) throw new Error('the model called no tool');
    input.push(...toInput(output), { type: 'function_call_output', call_id: call.call_id, output: 'fine' });
    for (const speaker of [second, first]) {
      const response = await openai.responses.create({ ...request, ...at(speaker), input });
      expect(response.status).toBe('completed');
      input.push(...toInput(response.output), { role: 'user', content: CONTINUE });
    }
  });

  test('Messages', async () => {
    const tools = [{ name: 'weather', input_schema: CITY }];
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: BASE64 };
    const content = [
      ...(showsImage ? [{ type: 'image' as const, source }] : []),
      { type: 'text' as const, text: BEGIN },
    ];
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content }];
    const thinking = { type: 'enabled' as const, budget_tokens: 1024 };
    const request = { tools, max_tokens: 4000, thinking };
    const begun = await anthropic.messages.stream({ ...request, ...at(first), messages }).finalMessage();
    const call = begun.content.find((block) => block.type === 'tool_use');
    if (!call) throw new Error('the model called no tool');
    messages.push(
      { role: 'assistant', content: begun.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'fine' }] },
    );
    for (const speaker of [second, first]) {
      const next = await anthropic.messages.create({ ...request, ...at(speaker), messages });
      expect(next.stop_reason).toBe('end_turn');
      messages.push({ role: 'assistant', content: next.content }, { role: 'user', content: CONTINUE });
    }
  });
});
