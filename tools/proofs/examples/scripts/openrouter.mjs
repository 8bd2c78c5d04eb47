// The usual examples of OpenRouter's documentation.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { setTimeout } from 'node:timers/promises';
import { OpenRouter } from '@openrouter/sdk';
import { OpenRouterError } from '@openrouter/sdk/models/errors';
import { runExamples } from './run-examples.mjs';

const { GATEWAY_URL, API_KEY, PDF, PNG, WAV } = process.env;
const client = new OpenRouter({ apiKey: API_KEY, serverURL: `${GATEWAY_URL}/v1`, retryConfig: { strategy: 'none' } });
const MODEL = 'openai/gpt-5-mini';

const user = (content) => [{ role: 'user', content }];
const send = (body) =>
  client.chat.send({ chatRequest: { model: MODEL, messages: user('Hello'), stream: false, ...body } });

function assertChat({ object, choices: [choice], usage }) {
  assert.equal(object, 'chat.completion');
  assert.equal(choice.finishReason, 'stop');
  assert.ok(choice.message.content.length > 0, 'the text is empty');
  assert.ok(usage.totalTokens > 0);
}

/** The client drops the citations, so the cost shows that the web was searched. */
function assertSearched(completion) {
  assertChat(completion);
  assert.ok(completion.usage.cost > 0.01);
}

async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const parameters = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather', parameters } }];
const FORECAST_PROMPT = 'The weather in Paris? [[sandbox tool=get_weather]]';
const text = (value) => ({ type: 'text', text: value });

const chats = {
  'chat: default': async () => assertChat(await send()),
  'chat: streaming': async () => {
    const chunks = await collect(await send({ stream: true }));
    assert.ok(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('').length > 0);
    assert.ok(chunks.at(-1).usage.totalTokens > 0);
  },
  'chat: image input': async () => {
    const image = { type: 'image_url', imageUrl: { url: `data:image/png;base64,${PNG}` } };
    assertChat(await send({ messages: user([text('What is in this image?'), image]) }));
  },
  'chat: PDF input': async () => {
    const file = { type: 'file', file: { filename: 'document.pdf', fileData: `data:application/pdf;base64,${PDF}` } };
    assertChat(await send({ messages: user([text('What is it about?'), file]) }));
  },
  'chat: PDF plugin': () => {
    const file = { type: 'file', file: { filename: 'document.pdf', fileData: `data:application/pdf;base64,${PDF}` } };
    const plugins = [{ id: 'file-parser', pdf: { engine: 'cloudflare-ai' } }];
    return send({ messages: user([text('What is it about?'), file]), plugins });
  },
  'chat: audio input': async () => {
    const audio = { type: 'input_audio', inputAudio: { data: WAV, format: 'wav' } };
    assertChat(await send({ model: 'google/gemini-3.1-pro', messages: user([text('Transcribe this'), audio]) }));
  },
  'chat: tools': async () => {
    const messages = user(FORECAST_PROMPT);
    const { choices } = await send({ messages, tools });
    const [{ id, function: call }] = choices[0].message.toolCalls;
    assert.equal(call.name, 'get_weather');
    messages.push(choices[0].message, { role: 'tool', toolCallId: id, content: '18 °C' });
    assertChat(await send({ messages, tools }));
  },
  'chat: tools, streaming': async () => {
    const chunks = await collect(await send({ messages: user(FORECAST_PROMPT), tools, stream: true }));
    const calls = chunks.flatMap(({ choices }) => choices[0]?.delta.toolCalls ?? []);
    assert.equal(calls[0].function.name, 'get_weather');
  },
  'chat: structured output': async () => {
    const schema = { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] };
    const jsonSchema = { name: 'weather', strict: true, schema: { ...schema, additionalProperties: false } };
    const { choices } = await send({ responseFormat: { type: 'json_schema', jsonSchema } });
    assert.equal(typeof JSON.parse(choices[0].message.content).location, 'string');
  },
  'chat: reasoning': async () => {
    const messages = user('Which is bigger, 9.11 or 9.9? [[sandbox tokens=30 reasoning=10]]');
    const { choices } = await send({ model: 'anthropic/claude-haiku-4.5', messages, reasoning: { effort: 'high' } });
    assert.ok(choices[0].message.reasoning.length > 0);
  },
  'chat: fallback models': async () => {
    const { model } = await send({ model: 'example/unknown', models: ['anthropic/claude-haiku-4.5', MODEL] });
    assert.match(model, /claude-haiku-4[.-]5/);
  },
  'chat: provider preferences': async () =>
    assertChat(await send({ provider: { sort: 'price', allowFallbacks: true, dataCollection: 'deny' } })),
  'chat: provider order': async () =>
    assertChat(await send({ model: 'openai/gpt-oss-120b', provider: { order: ['groq', 'deepinfra'] } })),
  'chat: zero data retention': async () =>
    assertChat(await send({ model: 'openai/gpt-oss-120b', provider: { zdr: true } })),
  'chat: variant :nitro': async () => assertChat(await send({ model: 'openai/gpt-oss-120b:nitro' })),
  'chat: variant :floor': async () => assertChat(await send({ model: 'openai/gpt-oss-120b:floor' })),
  'chat: free variant': async () => assertChat(await send({ model: 'openai/gpt-oss-20b:free' })),
  'chat: web plugin': async () => {
    assertSearched(await send({ plugins: [{ id: 'web', maxResults: 3 }] }));
  },
  'chat: variant :online': async () => {
    assertSearched(await send({ model: 'anthropic/claude-haiku-4.5:online' }));
  },
  'chat: web search tool': async () => {
    const messages = user('News? [[sandbox tool=web_search]]');
    assertSearched(await send({ messages, tools: [{ type: 'openrouter:web_search' }] }));
  },
  'chat: date and time tool': () => send({ tools: [{ type: 'openrouter:datetime' }] }),
  'chat: usage accounting': async () => {
    const { usage } = await send();
    assert.ok(usage.cost > 0);
    assert.equal(typeof usage.promptTokensDetails.cachedTokens, 'number');
  },
  'chat: prompt caching': async () => {
    const system = { role: 'system', content: [{ ...text('A long book'), cacheControl: { type: 'ephemeral' } }] };
    assertChat(await send({ model: 'anthropic/claude-haiku-4.5', messages: [system, ...user('Hello')] }));
  },
  'chat: context compression': () => send({ plugins: [{ id: 'context-compression' }] }),
  'chat: auto router': () => send({ model: 'openrouter/auto' }),
  'chat: preset': () => send({ model: '@preset/email-copywriter' }),
  'chat: image output': () => send({ modalities: ['image', 'text'] }),
};

const furtherExamples = {
  'response: create': async () => {
    const response = await client.beta.responses.send({ responsesRequest: { model: MODEL, input: 'Hello' } });
    assert.equal(response.status, 'completed');
  },
  'response: streaming': async () => {
    const responsesRequest = { model: MODEL, input: 'Hello', stream: true };
    const events = await collect(await client.beta.responses.send({ responsesRequest }));
    assert.equal(events.at(-1).type, 'response.completed');
  },
  'embedding: create': async () => {
    const requestBody = { model: 'openai/text-embedding-3-small', input: 'The quick brown fox' };
    const { data } = await client.embeddings.generate({ requestBody });
    assert.equal(data[0].embedding.length, 1_536);
  },
  'embedding: list models': () => client.embeddings.listModels(),
  'image: generate': () =>
    client.images.generate({ imageGenerationRequest: { model: 'openai/gpt-image-1.5', prompt: 'A sunset' } }),
  'image: list models': () => client.images.listModels(),
  'video: generate, poll, download': async () => {
    const videoGenerationRequest = { model: 'openai/sora-2', prompt: 'A cat playing a piano', duration: 4 };
    let job = await client.videoGeneration.generate({ videoGenerationRequest });
    while (job.status === 'pending' || job.status === 'in_progress') {
      await setTimeout(100);
      job = await client.videoGeneration.getGeneration({ jobId: job.id });
    }
    assert.equal(job.status, 'completed');
    const content = await client.videoGeneration.getVideoContent({ jobId: job.id });
    assert.ok(Buffer.concat(await collect(content)).length > 0);
  },
  'video: list models': () => client.videoGeneration.listVideosModels(),
  'speech: create': async () => {
    const speechRequest = { model: 'openai/tts-1', input: 'Hello', voice: 'alloy', responseFormat: 'mp3' };
    assert.ok(Buffer.concat(await collect(await client.tts.createSpeech({ speechRequest }))).length > 0);
  },
  'transcription: JSON': () =>
    client.stt.createTranscription({
      sttRequest: { model: 'openai/whisper-1', inputAudio: { data: WAV, format: 'wav' } },
    }),
  'transcription: form': async () => {
    const file = new File([Buffer.from(WAV, 'base64')], 'speech.wav', { type: 'audio/wav' });
    const requestBody = { model: 'openai/whisper-1', file };
    assert.ok((await client.stt.createTranscriptionMultipart({ requestBody })).text.length > 0);
  },
  'rerank: create': () =>
    client.rerank.rerank({ requestBody: { model: 'cohere/rerank-v3.5', query: 'capital', documents: ['a', 'b'] } }),
  'model: list': async () => {
    const { result } = await client.models.list();
    assert.ok(result.data.length > 10);
  },
  'model: endpoints': async () => {
    const { data } = await client.endpoints.list({ author: 'openai', slug: 'gpt-oss-120b' });
    assert.ok(data.endpoints.length > 0);
  },
  'model: get': () => client.models.get({ author: 'openai', slug: 'gpt-5-mini' }),
  'model: count': () => client.models.count(),
  'model: list zdr endpoints': () => client.endpoints.listZdrEndpoints(),
  'provider: list': () => client.providers.list(),
  'credits: get': () => client.credits.getCredits(),
  'generation: get': () => client.generations.getGeneration({ id: 'gen-1234567890' }),
  'key: current': () => client.apiKeys.getCurrentKeyMetadata(),
  'key: list': () => client.apiKeys.list(),
  'key: create': () => client.apiKeys.create({ requestBody: { name: 'My key', limit: 50 } }),
  'key: update': () => client.apiKeys.update({ hash: 'abc123', requestBody: { disabled: true } }),
  'key: delete': () => client.apiKeys.delete({ hash: 'abc123' }),
  'preset: list': () => client.presets.list(),
  'guardrail: list': () => client.guardrails.list(),
  'workspace: list': () => client.workspaces.list(),
  'file: list': () => client.files.list(),
};

await runExamples({ ...chats, ...furtherExamples }, (error) =>
  error instanceof OpenRouterError && error.statusCode >= 400
    ? { status: error.statusCode, message: error.message, param: JSON.parse(error.body).error.param }
    : undefined,
);
