import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JsonTextFilter, removeFence } from './json-text.ts';

const OBJECT = '{"a":"```json\\n{}\\n```","b":[1,{}]}\n';

test.each([
  ['without a fence', OBJECT, OBJECT],
  ['in a fence', `\`\`\`json\n${OBJECT}\`\`\``, OBJECT.trim()],
  ['in a fence without a language, between empty lines', `\n\`\`\`\n${OBJECT}\n\`\`\`\n`, OBJECT.trim()],
  ['that was truncated in a fence', '```json\n{"a":"', '{"a":"'],
  ['that was truncated before it began', '```js', '```js'],
  ['after a sentence', `Here it is: \`\`\`json\n${OBJECT}\`\`\``, `Here it is: \`\`\`json\n${OBJECT}\`\`\``],
  ['that is no object', 'No.', 'No.'],
])('JSON %s loses only the fence, however the text is divided', (_, text, expected) => {
  expect(removeFence(text)).toBe(expected);
  fc.assert(
    fc.property(fc.array(fc.nat(text.length)), (cuts) => {
      const filter = new JsonTextFilter();
      const ends = [...cuts.sort((a, b) => a - b), text.length];
      const forwarded = ends.map((end, i) => filter.push(text.slice(ends[i - 1] ?? 0, end)));
      expect(forwarded.join('') + filter.flush()).toBe(expected);
    }),
  );
});
