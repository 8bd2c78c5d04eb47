import { expect, test } from '@jest/globals';
import { sanitizeThirdPartyText } from './third-party-text.ts';

test.each([
  ['a key', 'Incorrect API key provided: sk-proj-abc123DEF456. Find it in your account', 'sk-proj-abc123DEF456'],
  ['a key that is partly masked', 'Invalid key sk-live-********wxyz', 'wxyz'],
  ['a key with a name', 'rejected {"api_key": "hunter2-hunter2"}', 'hunter2'],
  ['a header', 'bad header authorization: Bearer abc.def', 'abc.def'],
  ['a short token after its scheme', 'sent Basic dTpw', 'dTpw'],
  ['a key of Google', 'API key AIzaSyA1234567890abcdefghijklmnopqrstuv not valid', 'AIzaSy'],
  ['a JSON Web Token', 'token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl expired', 'eyJ'],
  ['a key of two parts', 'key 0f8fad5b-d9cb-469f-a165-70867728950e:c0ffee0123456789', 'c0ffee'],
  ['hexadecimal digits', `macaroon ${'0123456789abcdef'.repeat(8)}`, '0123456789abcdef'],
  ['Base64', `token ${Buffer.from('a secret of more than thirty bytes 123').toString('base64')}`, 'zZWNyZXQg'],
  ['an organisation', 'Rate limit for org-AbC123dEf456 in project proj_9xYz8W on tokens', 'AbC123dEf456'],
  ['an id of a customer', 'No such customer cus_Nffrfeuhrm', 'Nffrfeuhrm'],
  ['an email address', 'Ask jane.doe+x@vendor.example for more', 'jane.doe'],
  ['an internal address', 'connect to 10.12.0.7:8443 failed', '10.12.0.7'],
  ['an IPv6 address', 'connect to [fd00:12::7]:8443 failed', 'fd00'],
  ['a host name', 'upstream gpu-17.prod.svc.cluster.local:9000 is gone', 'gpu-17'],
  ['a signed URL', 'cannot fetch https://bucket.example/a.png?X-Amz-Signature=abc', 'bucket'],
  ['a database', 'could not reach postgres://svc:pw@db/prod', 'svc:pw'],
  ['a path', 'File "/usr/lib/python3.12/site-packages/vllm/engine.py", line 7', 'site-packages'],
  ['a secret at the end of the truncated text', `${'so '.repeat(163)}sk-proj-abc123DEF456ghi789`, 'sk-proj'],
])('masks %s', (_, words, secret) => {
  expect(words).toContain(secret);
  const shown = sanitizeThirdPartyText(words);
  expect(shown).not.toContain(secret);
  expect(shown).toContain('…');
  expect(sanitizeThirdPartyText(shown)).toBe(shown);
});

test.each([
  "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
  "Invalid 'messages[0].content[1].image_url': the image has 9,000 x 12,000 pixels",
  'messages.0.content.1.source.data: image exceeds 5 MB maximum: 6812345 bytes > 5242880 bytes',
  "This model's maximum context length is 128000 tokens. However, you requested 130,512 tokens (at 12:30:05)",
  'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8 and claude-sonnet-4-5-20250929 do not take `top_k`',
  'The string did not match the expected pattern ^[a-zA-Z0-9_-]{1,64}$ in tools.3.custom.name',
])('does not mask what helps the caller: %s', (words) => {
  expect(sanitizeThirdPartyText(words)).toBe(words);
});

test('returns one well-formed and truncated line, however long the text is', () => {
  expect(sanitizeThirdPartyText(' half\n\u0000 of \ud800 it ')).toBe('half of \ufffd it');
  expect(sanitizeThirdPartyText('no '.repeat(10_000_000)).length).toBeLessThanOrEqual(500);
  for (const each of ['a', '1', 'a1', 'aA1/', ':', '-', '.', 'x@', 'org-', '/usr', 'key=', 'sk-', 'a.'])
    expect(sanitizeThirdPartyText(each.repeat(2_000_000)).length).toBeLessThanOrEqual(500);
});
