import { expect, test } from '@jest/globals';
import { Secrets, VideoWebhooks } from '#application';
import { createTestRuntime } from '#testing';

const secrets = new Secrets(createTestRuntime(), Buffer.alloc(32, 1));
const hooks = new VideoWebhooks('https://gateway.example', secrets);
const named = { jobId: `gen_${'0a'.repeat(16)}`, submission: 2 };

test('creates a URL that identifies one submission of one video for one provider', () => {
  const address = hooks.createUrl('fal', named) ?? '';
  expect(address).toMatch(/^https:\/\/gateway\.example\/v1\/videos\/webhooks\/fal\/gen_/);
  const token = address.split('/').at(-1) ?? '';
  expect(hooks.verifyToken('fal', token)).toEqual(named);
  expect(hooks.verifyToken('google', token)).toBeUndefined();
  expect(hooks.verifyToken('fal', token.replace('.2.', '.3.'))).toBeUndefined();
  expect(hooks.verifyToken('fal', token.replace('gen_0a', 'gen_0b'))).toBeUndefined();
  expect(hooks.verifyToken('fal', `${token}a`)).toBeUndefined();
  expect(
    new VideoWebhooks(undefined, new Secrets(createTestRuntime(), Buffer.alloc(32, 2))).verifyToken('fal', token),
  ).toBeUndefined();
});

test('creates no URL if providers cannot reach the gateway', () => {
  expect(new VideoWebhooks(undefined, secrets).createUrl('fal', named)).toBeUndefined();
});
