import { expect, test } from '@jest/globals';
import { type Example, lacks, rejects, works } from './example.ts';
import { findFault, parseOutcomes } from './outcome.ts';

const [WORKS] = works('POST /v1/responses', 'response: text') as [Example];
const REJECTED = rejects('POST /v1/responses', 'response: background', 'background');
const LACKED = lacks('GET /v1/files/{id}/content', 'file: content');

const report = (name: string, outcome: object) =>
  findFault({ ...WORKS, name }, parseOutcomes(JSON.stringify({ name, ...outcome })).get(name));
const reject = (example: Example, status: number, message: string, param?: string) =>
  findFault(example, { name: example.name, outcome: 'rejected', status, message, ...(param ? { param } : {}) });

test('an example that works must work', () => {
  expect(report('a', { outcome: 'works' })).toBeUndefined();
  expect(report('a', { outcome: 'missing' })).toBe('a: the script has no such example');
  expect(report('a', { outcome: 'failed', message: 'no text' })).toBe('a: no text');
  expect(report('a', { outcome: 'rejected', status: 400, message: 'no', param: 'n' })).toBe(
    'a: rejected with 400 no (n)',
  );
  expect(findFault(WORKS, parseOutcomes('Traceback\n').get(WORKS.name))).toContain('the script ended before it');
});

test('a rejection must have the status, and name what is not served in its message or its parameter', () => {
  expect(reject(REJECTED, 400, 'background is not supported')).toBeUndefined();
  expect(reject(REJECTED, 400, 'not supported', 'background')).toBeUndefined();
  expect(reject(REJECTED, 400, 'not supported')).toContain('expected "background"');
  expect(reject(REJECTED, 404, 'background is not supported')).toContain('expected "background"');
  expect(findFault(REJECTED, { name: REJECTED.name, outcome: 'works' })).toContain('should be rejected');
});

test('an endpoint that does not exist is named by its method and path', () => {
  expect(reject(LACKED, 404, 'GET /v1/files/file-1/content not found')).toBeUndefined();
  expect(reject(LACKED, 404, 'The model "files" does not exist')).toContain('expected "GET /v1/files/"');
});
