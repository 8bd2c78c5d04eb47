import { expect, test } from '@jest/globals';
import { parseResponsesRequest, type ResponsesBody, UpstreamError } from '#application';
import { SystemClock } from '#testing';
import { ResponseBuilder } from './response-builder.ts';

const input = [{ role: 'user', content: 'Do it' }, { type: 'compaction_trigger' }];
const request = parseResponsesRequest({ model: 'm', input } as ResponsesBody);
const parts = { input: 0n, output: 0n, searches: 0n, margin: 0n };
const receipt = { usage: {}, charged: 0n, parts } as never;

function drafted(content: string): ResponseBuilder {
  const draft = new ResponseBuilder('1', request, new SystemClock());
  draft.accept({ choices: [{ message: { content }, finish_reason: 'stop' }] });
  draft.end();
  return draft;
}

test('a compaction replaces the conversation with its user messages and the summary', () => {
  const draft = drafted('It is done');
  const item = { type: 'compaction', id: 'cmp_1', encrypted_content: expect.any(String) };
  expect(draft.build(receipt)).toMatchObject({ status: 'completed', output: [item] });
  expect(draft.buildCompaction(receipt).output).toEqual([expect.objectContaining({ role: 'user' }), item]);
});

test('a compaction fails if the model generated no summary, because the conversation would otherwise be lost', () => {
  const draft = drafted(' ');
  expect(draft.build(receipt)).toMatchObject({ status: 'failed', output: [], error: { code: 'server_error' } });
  expect(() => draft.buildCompaction(receipt)).toThrow(UpstreamError);
});
