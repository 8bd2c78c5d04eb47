// The usual examples of OpenAI's documentation.
import assert from 'node:assert/strict';
import { Buffer } from 'node:buffer';
import { setTimeout } from 'node:timers/promises';
import OpenAI from 'openai';
import { zodTextFormat } from 'openai/helpers/zod';
import { chats } from './openai-chats.mjs';
import {
  assertFile,
  assertResponse,
  assertText,
  client,
  collect,
  createJsonl,
  createPng,
  createWav,
  FORECAST_PROMPT,
  MODEL,
  PDF_URL,
  PNG_URL,
  respond,
  Solution,
  search,
  TOOLS,
  user,
} from './openai-common.mjs';
import { runExamples } from './run-examples.mjs';

const responses = {
  'response: text': async () => assertResponse(await respond({ instructions: 'Talk like a pirate.' })),
  'response: image input': async () => {
    const content = [
      { type: 'input_text', text: 'What is in this image?' },
      { type: 'input_image', image_url: PNG_URL, detail: 'auto' },
    ];
    assertResponse(await respond({ input: user(content) }));
  },
  'response: image by id': () => respond({ input: user([{ type: 'input_image', file_id: 'file-abc123' }]) }),
  'response: file input': async () => {
    const content = [
      { type: 'input_file', filename: 'draconomicon.pdf', file_data: PDF_URL },
      { type: 'input_text', text: 'What is this file about?' },
    ];
    assertResponse(await respond({ input: user(content) }));
  },
  'response: file by id': () => respond({ input: user([{ type: 'input_file', file_id: 'file-abc123' }]) }),
  'response: streaming': async () => {
    const events = await collect(await respond({ stream: true }));
    assert.equal(events[0].type, 'response.created');
    assertText(events.map(({ type, delta }) => (type === 'response.output_text.delta' ? delta : '')).join(''));
    assert.equal(events.at(-1).type, 'response.completed');
  },
  'response: streaming helper': async () =>
    assertResponse(await client.responses.stream({ model: MODEL, input: 'Say hello' }).finalResponse()),
  'response: functions': async () => {
    const input = user(FORECAST_PROMPT);
    const { output } = await respond({ input, tools: TOOLS, tool_choice: 'auto' });
    const call = output.find(({ type }) => type === 'function_call');
    assert.ok('location' in JSON.parse(call.arguments));
    input.push(...output, { type: 'function_call_output', call_id: call.call_id, output: '18 °C' });
    assertResponse(await respond({ input, tools: TOOLS }));
  },
  'response: functions, streaming': async () => {
    const events = await collect(await respond({ input: FORECAST_PROMPT, tools: TOOLS, stream: true }));
    const done = events.find(({ type }) => type === 'response.function_call_arguments.done');
    assert.ok('location' in JSON.parse(done.arguments));
  },
  'response: custom tool': async () => {
    const tools = [{ type: 'custom', name: 'code_exec', description: 'Executes Python code' }];
    const { output } = await respond({ input: 'Print hello [[sandbox tool=code_exec]]', tools });
    assertText(output.find(({ type }) => type === 'custom_tool_call').input);
  },
  'response: structured output': async () => {
    const text = { format: zodTextFormat(Solution, 'solution') };
    const { output_parsed } = await client.responses.parse({ model: MODEL, input: 'Solve 8x + 7 = -23', text });
    assert.equal(typeof output_parsed.final_result, 'string');
  },
  'response: JSON mode': async () => {
    const { output_text } = await respond({ input: 'Return JSON', text: { format: { type: 'json_object' } } });
    JSON.parse(output_text);
  },
  'response: reasoning': async () => {
    const input = 'How much wood would a woodchuck chuck? [[sandbox tokens=30 reasoning=10]]';
    const response = await respond({ input, reasoning: { effort: 'high', summary: 'auto' } });
    assertResponse(response);
    assert.ok(response.usage.output_tokens_details.reasoning_tokens > 0);
    assert.equal(response.output[0].type, 'reasoning');
  },
  'response: encrypted reasoning': async () => {
    const input = user('Why? [[sandbox tokens=30 reasoning=10]]');
    const options = { store: false, include: ['reasoning.encrypted_content'] };
    const { output } = await respond({ input, ...options });
    assertText(output.find(({ type }) => type === 'reasoning').encrypted_content);
    assertResponse(await respond({ input: [...input, ...output, ...user('And then?')], ...options }));
  },
  'response: web search': async () => {
    const { output } = await respond(search);
    assert.ok(output.some(({ type }) => type === 'web_search_call'));
    const { content } = output.find(({ type }) => type === 'message');
    assert.equal(content[0].annotations[0].type, 'url_citation');
  },
  'response: file search': () => respond({ tools: [{ type: 'file_search', vector_store_ids: ['vs_1234567890'] }] }),
  'response: code interpreter': () => respond({ tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] }),
  'response: MCP': () =>
    respond({
      tools: [{ type: 'mcp', server_label: 'dmcp', server_url: 'https://dmcp.example/sse', require_approval: 'never' }],
    }),
  'response: image generation': () => respond({ tools: [{ type: 'image_generation' }] }),
  'response: computer use': () => respond({ tools: [{ type: 'computer' }] }),
  'response: shell': () => respond({ tools: [{ type: 'shell' }] }),
  'response: apply patch': () => respond({ tools: [{ type: 'apply_patch' }] }),
  'response: tool search': () => respond({ tools: [{ type: 'tool_search' }, ...TOOLS] }),
  'response: conversation': () => respond({ conversation: 'conv_689667905b048191b4740501625afd94' }),
  'response: prompt template': () => respond({ prompt: { id: 'pmpt_abc123', version: '2' } }),
  'response: background': () => respond({ background: true }),
  'response: previous response': async () => {
    const { id } = await respond({ input: 'Write a joke' });
    assertResponse(await respond({ previous_response_id: id, input: 'Explain why this is funny.' }));
  },
  'response: truncation, metadata': async () => {
    const response = await respond({ truncation: 'auto', metadata: { topic: 'demo' }, max_output_tokens: 100 });
    assertResponse(response);
    assert.equal(response.metadata.topic, 'demo');
  },
  'response: retrieve': async () => {
    const { id } = await respond();
    assertResponse(await client.responses.retrieve(id));
  },
  'response: retrieve, streaming': async () => {
    await collect(await client.responses.retrieve('resp_123', { stream: true }));
  },
  'response: delete': async () => {
    const { id } = await respond();
    await client.responses.delete(id);
    await assert.rejects(client.responses.retrieve(id), { status: 404 });
  },
  'response: cancel': () => client.responses.cancel('resp_123'),
  'response: input items': async () => {
    const { id } = await respond();
    const { data } = await client.responses.inputItems.list(id);
    assert.equal(data[0].role, 'user');
  },
  'response: compact': async () => {
    const { object, output } = await client.responses.compact({ model: MODEL, input: user('Say hello') });
    assert.equal(object, 'response.compaction');
    assert.ok(output.some(({ type }) => type === 'compaction'));
  },
  'response: count tokens': async () => {
    const { input_tokens } = await client.responses.inputTokens.count({ model: MODEL, input: 'Write a joke.' });
    assert.ok(input_tokens > 0);
  },
  'conversation: create': () => client.conversations.create({ metadata: { topic: 'demo' } }),
  'conversation: retrieve': () => client.conversations.retrieve('conv_123'),
  'conversation: update': () => client.conversations.update('conv_123', { metadata: { topic: 'new' } }),
  'conversation: delete': () => client.conversations.delete('conv_123'),
  'conversation: list items': () => client.conversations.items.list('conv_123'),
  'conversation: create items': () => client.conversations.items.create('conv_123', { items: user('Hello') }),
};

const media = {
  'embedding: default': async () => {
    const input = 'The food was delicious.';
    const request = { model: 'text-embedding-3-small', input, encoding_format: 'float' };
    const { data } = await client.embeddings.create(request);
    assert.equal(data[0].embedding.length, 1_536);
  },
  'embedding: dimensions': async () => {
    const request = { model: 'text-embedding-3-small', input: ['one', 'two'], dimensions: 256 };
    const { data } = await client.embeddings.create(request);
    assert.deepEqual(
      data.map(({ embedding }) => embedding.length),
      [256, 256],
    );
  },
  'image: generate': async () => {
    const { data } = await client.images.generate({ model: 'gpt-image-1.5', prompt: 'A cute baby sea otter', n: 1 });
    assertFile(Buffer.from(data[0].b64_json, 'base64'));
  },
  'image: generate, streaming': async () => {
    const request = { model: 'gpt-image-1.5', prompt: 'A cute baby sea otter', stream: true, partial_images: 2 };
    const events = await collect(await client.images.generate(request));
    assert.equal(events.at(-1).type, 'image_generation.completed');
    assertFile(Buffer.from(events.at(-1).b64_json, 'base64'));
  },
  'image: edit': async () => {
    const request = { model: 'gpt-image-1.5', image: [await createPng()], prompt: 'Create a gift basket' };
    assertFile(Buffer.from((await client.images.edit(request)).data[0].b64_json, 'base64'));
  },
  'image: edit, streaming': async () => {
    const request = { model: 'gpt-image-1.5', image: await createPng(), prompt: 'Create a gift basket', stream: true };
    const events = await collect(await client.images.edit(request));
    assert.equal(events.at(-1).type, 'image_edit.completed');
  },
  'image: variation': async () => client.images.createVariation({ image: await createPng() }),
  'speech: default': async () => {
    const request = { model: 'tts-1', voice: 'alloy', input: 'The quick brown fox jumped over the lazy dog.' };
    assertFile(await (await client.audio.speech.create(request)).arrayBuffer());
  },
  'speech: streaming': async () => {
    const request = { model: 'tts-1', voice: 'alloy', input: 'The quick brown fox', response_format: 'wav' };
    const { body } = await client.audio.speech.create({ ...request, stream_format: 'audio' });
    const chunks = await collect(body);
    assertFile(Buffer.concat(chunks));
  },
  'transcription: default': async () => {
    const { text } = await client.audio.transcriptions.create({ file: await createWav(), model: 'whisper-1' });
    assertText(text);
  },
  'transcription: word timestamps': async () => {
    const options = { response_format: 'verbose_json', timestamp_granularities: ['word'] };
    const request = { file: await createWav(), model: 'whisper-1', ...options };
    const transcription = await client.audio.transcriptions.create(request);
    assert.equal(typeof transcription.words[0].start, 'number');
  },
  'translation: default': async () => client.audio.translations.create({ file: await createWav(), model: 'whisper-1' }),
  'voice: create': async () =>
    client.audio.voices.create({ name: 'My voice', audio_sample: await createWav(), consent: 'cons_1234' }),
  'video: create': async () => {
    const request = { model: 'sora-2', prompt: 'A calico cat playing a piano on stage' };
    const { object, status } = await client.videos.create(request);
    assert.equal(object, 'video');
    assert.equal(status, 'queued');
  },
  'video: create with an image': async () => {
    const request = { model: 'sora-2-i2v', prompt: 'She turns around', input_reference: await createPng() };
    assert.equal((await client.videos.create(request)).object, 'video');
  },
  'video: create, poll, download': async () => {
    const request = {
      model: 'sora-2',
      prompt: 'A calico cat playing a piano on stage',
      seconds: '4',
      size: '1280x720',
    };
    let video = await client.videos.create(request);
    while (video.status === 'queued' || video.status === 'in_progress') {
      await setTimeout(100);
      video = await client.videos.retrieve(video.id);
    }
    assert.equal(video.status, 'completed');
    assertFile(await (await client.videos.downloadContent(video.id)).arrayBuffer());
  },
  'video: list, retrieve': async () => {
    const { data } = await client.videos.list();
    const { object } = await client.videos.retrieve(data[0].id);
    assert.equal(object, 'video');
  },
  'video: delete': () => client.videos.delete('video_123'),
  'video: remix': () => client.videos.remix('video_123', { prompt: 'Extend the scene with the cat taking a bow' }),
  'video: edit': () => client.videos.edit({ video: { id: 'video_123' }, prompt: 'Make it night' }),
  'video: extend': () => client.videos.extend({ video: { id: 'video_123' }, prompt: 'Go on', seconds: '4' }),
};

const furtherExamples = {
  'model: list': async () => {
    const models = await client.models.list();
    assert.equal(models.object, 'list');
    assert.equal(models.data[0].object, 'model');
  },
  'model: retrieve': async () => assert.equal((await client.models.retrieve(MODEL)).object, 'model'),
  'model: delete': () => client.models.delete('ft:gpt-4o-mini:acemeco:suffix:abc123'),
  'moderation: create': () => client.moderations.create({ model: 'omni-moderation-latest', input: 'Hello' }),
  'file: upload': async () => client.files.create({ file: await createJsonl(), purpose: 'batch' }),
  'file: list': () => client.files.list(),
  'file: retrieve': () => client.files.retrieve('file-abc123'),
  'file: content': () => client.files.content('file-abc123'),
  'file: delete': () => client.files.delete('file-abc123'),
  'upload: create': () =>
    client.uploads.create({ bytes: 100, filename: 'a.jsonl', mime_type: 'text/jsonl', purpose: 'fine-tune' }),
  'batch: create': () =>
    client.batches.create({
      input_file_id: 'file-abc123',
      endpoint: '/v1/chat/completions',
      completion_window: '24h',
    }),
  'batch: list': () => client.batches.list(),
  'fine-tuning: create': () =>
    client.fineTuning.jobs.create({ training_file: 'file-abc123', model: 'gpt-4o-mini-2024-07-18' }),
  'fine-tuning: list': () => client.fineTuning.jobs.list(),
  'grader: run': () => client.fineTuning.alpha.graders.run({ grader: { type: 'string_check' }, model_sample: 'a' }),
  'vector store: create': () => client.vectorStores.create({ name: 'Support FAQ' }),
  'vector store: list': () => client.vectorStores.list(),
  'vector store: search': () => client.vectorStores.search('vs_abc123', { query: 'What is the return policy?' }),
  'vector store: add file': () => client.vectorStores.files.create('vs_abc123', { file_id: 'file-abc123' }),
  'realtime: client secret': () => client.realtime.clientSecrets.create({ session: { type: 'realtime' } }),
  'realtime: accept a call': () => client.realtime.calls.accept('rtc_123', { type: 'realtime' }),
  'assistant: create': () => client.beta.assistants.create({ model: MODEL, name: 'Math Tutor' }),
  'assistant: list': () => client.beta.assistants.list(),
  'thread: create': () => client.beta.threads.create(),
  'thread: add a message': () => client.beta.threads.messages.create('thread_abc', { role: 'user', content: 'Hi' }),
  'thread: run': () => client.beta.threads.runs.create('thread_abc', { assistant_id: 'asst_abc' }),
  'thread: create and run': () => client.beta.threads.createAndRun({ assistant_id: 'asst_abc' }),
  'chatkit: create a session': () => client.beta.chatkit.sessions.create({ user: 'u', workflow: { id: 'wf_abc' } }),
  'eval: create': () => client.evals.create({ data_source_config: { type: 'logs' }, testing_criteria: [] }),
  'eval: list': () => client.evals.list(),
  'container: create': () => client.containers.create({ name: 'My Container' }),
  'container: list': () => client.containers.list(),
  'skill: list': () => client.skills.list(),
};

const isRejection = (error) => error instanceof OpenAI.APIError && error.status >= 400;
const describe = ({ status, message, param }) => ({ status, message, param });

await runExamples({ ...chats, ...responses, ...media, ...furtherExamples }, (error) =>
  isRejection(error) ? describe(error) : undefined,
);
