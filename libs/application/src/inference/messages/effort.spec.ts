import { describe, expect, test } from '@jest/globals';
import { parseMessagesRequest } from './request.ts';

const user = { role: 'user', content: 'Plan it' };
const assistant = { role: 'assistant', content: 'First' };
const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] };
const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: '1' }] };
const change = (effort: string | null, content: unknown = []) => ({
  role: 'system',
  content,
  output_config: { effort },
});

async function parse(...messages: readonly object[]) {
  const request = { model: 'm', max_tokens: 9, thinking: { type: 'adaptive' }, output_config: { effort: 'high' } };
  return (await parseMessagesRequest({ ...request, messages })).chat;
}

describe('the effort of a system message', () => {
  test.each([
    ['directly after new input applies to its response', [user, change('low')], 'low'],
    ['after a system message after new input too', [user, change(null, 'Be brief'), change('low')], 'low'],
    ['before new input applies from this input on', [user, assistant, change('low'), user], 'low'],
    ['without new input after it does not apply yet', [user, assistant, change('low')], 'high'],
    ['between a call and its result does not apply yet', [user, call, result, change('low')], 'high'],
    ['stays in force', [user, change('low'), call, result], 'low'],
    ['stays in force for later input', [user, change('low'), assistant, user], 'low'],
    ['is replaced by the next one', [user, change('low'), assistant, change('max'), user], 'max'],
    ['that is null changes nothing', [user, change('low'), assistant, change(null, 'Go on'), user], 'low'],
  ])('%s', async (_name, messages, effort) => {
    expect((await parse(...messages)).reasoning).toEqual({ effort });
  });

  test('needs no content', async () => {
    const { messages } = await parse(user, change('low'));
    expect(messages.map(({ role }) => role)).toEqual(['user']);
  });

  test('must be an effort', async () => {
    const rejection = expect.objectContaining({ status: 400, param: 'messages[1].output_config.effort' });
    await expect(parse(user, change('huge'))).rejects.toThrow(rejection);
  });
});
