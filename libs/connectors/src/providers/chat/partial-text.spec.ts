import { expect, test } from '@jest/globals';
import { extractGeneratedText } from './partial-text.ts';

const CHAT = { id: 'x', choices: [{ message: { role: 'assistant', content: 'Say "hi"\n', reasoning: 'Ünd' } }] };
const MESSAGE = {
  content: [
    { type: 'thinking', thinking: 'Hm' },
    { type: 'text', text: 'Yes' },
  ],
  usage: {},
};
const RESPONSE = { output: [{ type: 'function_call', arguments: '{"a":1}' }], text: { format: { type: 'text' } } };

test.each<[string, string]>([
  [JSON.stringify(CHAT), 'Say "hi"\nÜnd'],
  [JSON.stringify(CHAT, null, 2), 'Say "hi"\nÜnd'],
  [JSON.stringify(CHAT).split('"reasoning"')[0] as string, 'Say "hi"\n'],
  [JSON.stringify(MESSAGE), 'HmYes'],
  [JSON.stringify(RESPONSE), '{"a":1}'],
  ['{"content":"Sa\\', 'Sa'],
  ['{"content":"Sa\\u00', 'Sa\\u00'],
  ['{"id":"chatcmpl-1","created":17', ''],
  ['<html>Bad gateway</html>', ''],
  ['', ''],
])('the generated text in %s is %j', (text, words) => {
  expect(extractGeneratedText(text)).toBe(words);
});

test('the generated text can be several megabytes long', () => {
  const long = 'a "word" \\ '.repeat(500_000);
  expect(extractGeneratedText(JSON.stringify({ content: long }).slice(0, -2))).toBe(long);
});
