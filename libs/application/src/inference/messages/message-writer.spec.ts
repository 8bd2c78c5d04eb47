import { describe, expect, test } from '@jest/globals';
import type { CompletionSource } from '../chat/completion-writer.ts';
import { MessageBuilder } from './message-builder.ts';
import { type MessageEventOutput, MessageWriter } from './message-writer.ts';

const SOURCE: CompletionSource = { model: 'm', protocol: 'chat', provider: 'p', supportedParameters: [] };
const chunk = (content: string) => Buffer.from(`data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`);

/** Returns a writer and the types of the events that it has written. */
function createWriter(inputTokens: Promise<number>) {
  const events: { readonly type: string; readonly message?: { readonly usage: object } }[] = [];
  const record = (text: string) => {
    events.push(...text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : [])));
  };
  const output: MessageEventOutput = {
    hasStarted: true,
    storesResponse: false,
    isListening: true,
    disconnected: new Promise<void>(() => {}),
    begin: () => {},
    startHeartbeat: () => {},
    toErrorEvent: () => ({ type: 'error' }),
    write: (written) => void record(Buffer.from(written).toString()),
    finish: record,
  };
  const draft = new MessageBuilder('1', 'm', { thinkingVisibility: 'hidden', retainsTexts: false });
  return { writer: new MessageWriter(output, draft, { inputTokens }), events };
}

const typesOf = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);
const TEXT_START = ['content_block_start', 'content_block_delta'];

describe('the start of a streamed message', () => {
  test('waits for the count of the input, and the events that follow wait for it', async () => {
    const count = Promise.withResolvers<number>();
    const { writer, events } = createWriter(count.promise);
    writer.begin(SOURCE);
    const written = [writer.write(chunk('a')), writer.write(chunk('b'))];
    const ended = writer.end(undefined);
    expect(events).toEqual([]);
    count.resolve(7);
    await Promise.all([...written, ended]);
    expect(typesOf(events)).toEqual([
      'message_start',
      ...TEXT_START,
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    expect(events[0]?.message?.usage).toMatchObject({ input_tokens: 7, cache_read_input_tokens: 0, output_tokens: 0 });
    expect(writer.write(chunk('c'))).toBeUndefined(); // no event waits any more
  });

  test('has the input that the provider has reported, at once', () => {
    const { writer, events } = createWriter(new Promise(() => {}));
    writer.begin({ ...SOURCE, inputUsage: { input: 3, cacheRead: 4, cacheWrite: 1, cacheWriteHour: 1, output: 9 } });
    expect(writer.write(chunk('a'))).toBeUndefined();
    expect(typesOf(events)).toEqual(['message_start', ...TEXT_START]);
    expect(events[0]?.message?.usage).toMatchObject({
      input_tokens: 3,
      cache_creation_input_tokens: 2,
      cache_read_input_tokens: 4,
      output_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 1 },
    });
  });

  test('has the count if the provider reports zeros', async () => {
    const { writer, events } = createWriter(Promise.resolve(5));
    writer.begin({ ...SOURCE, inputUsage: { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 } });
    await writer.write(chunk('a'));
    expect(events[0]?.message?.usage).toMatchObject({ input_tokens: 5 });
  });

  test('comes before the error of a stream that fails while the count is awaited', async () => {
    const { writer, events } = createWriter(Promise.resolve(0));
    writer.begin(SOURCE);
    await writer.end(undefined, new Error('broken'));
    expect(typesOf(events)).toEqual(['message_start', 'error']);
  });
});
