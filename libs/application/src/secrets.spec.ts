import { randomBytes } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { ChallengeTokens, LinkSigner, Secrets, VideoWebhooks } from '#application';
import { countPauses, createTestRuntime, SystemClock } from '#testing';

const [older, newer] = [randomBytes(32), randomBytes(32)];
const before = new Secrets(createTestRuntime(), older);
const oldest = before.keyId;
const widened = new Secrets(createTestRuntime(), older, [newer], oldest);
const switched = new Secrets(createTestRuntime(), newer, [older], oldest);
const narrowed = new Secrets(createTestRuntime(), newer);
/** During a key rotation, processes of two successive steps run at the same time. */
const sideBySide = [
  [before, widened],
  [widened, switched],
] as const;

test('opens and finds the secrets of other processes during a key rotation', async () => {
  for (const [one, other] of sideBySide.flatMap(([a, b]) => [[a, b] as const, [b, a] as const])) {
    expect(other.open(one.seal('a secret'))).toBe('a secret');
    expect(String(await other.openBytes(await one.sealBytes(Buffer.from('bytes'))))).toBe('bytes');
    expect(other.hashWithAllKeys('an API key')).toContain(one.hash('an API key'));
    expect(other.hashWithOldestKey('a request')).toBe(one.hashWithOldestKey('a request'));
  }
});

test('uses replaced keys, also in lists of purpose keys that it returned before', () => {
  const secrets = new Secrets(createTestRuntime(), older);
  const purposeKeys = secrets.derivePurposeKeys('purpose');

  secrets.replaceKeys(switched);

  expect(secrets.keyId).toBe(switched.keyId);
  expect(secrets.hashWithOldestKey('a')).toBe(switched.hashWithOldestKey('a'));
  expect(purposeKeys).toEqual(switched.derivePurposeKeys('purpose'));
  expect(secrets.open(before.seal('old'))).toBe('old');
});

test('uses the first key for new secrets, and cannot open secrets of a removed key', async () => {
  expect(narrowed.open(switched.seal('new'))).toBe('new');
  expect(narrowed.hash('new')).toBe(switched.hash('new'));
  const sealed = widened.seal('old');
  expect(() => narrowed.open(sealed)).toThrow(`${before.keyId}, which is not among MASTER_KEY`);
  await expect(narrowed.openBytes(await widened.sealBytes(Buffer.from('old')))).rejects.toThrow();
  expect(narrowed.hashWithAllKeys('old')).not.toContain(before.hash('old'));
});

test('accepts links and tokens of any key in the key ring, but no links of a removed key', () => {
  const path = '/v1/media/gen_1/0';
  const clock = new SystemClock();
  const terms = { id: 'A'.repeat(43), paymentHash: '0b'.repeat(32), request: 'r', usableUntil: 1_900_000_000_000 };
  const submission = { jobId: `gen_${'0a'.repeat(16)}`, submission: 1 };
  for (const [one, other] of sideBySide.flatMap(([a, b]) => [[a, b] as const, [b, a] as const])) {
    const signed = new URLSearchParams(new LinkSigner(one, clock).createQuery('file', path, clock.nowMs() + 60_000));
    expect(new LinkSigner(other, clock).check('file', path, Object.fromEntries(signed))).toMatchObject({ ok: true });
    expect(new LinkSigner(narrowed, clock).check('file', path, Object.fromEntries(signed)).ok).toBe(one === switched);
    const token = new ChallengeTokens(one).create(terms, 'gateway.example');
    expect(new ChallengeTokens(other).verify(token)).toMatchObject({ id: terms.id });
    const hook = new VideoWebhooks('https://gateway.example', one).createUrl('fal', submission)?.split('/').at(-1);
    expect(new VideoWebhooks(undefined, other).verifyToken('fal', hook ?? '')).toEqual(submission);
  }
});

test('long bytes are sealed and opened in the same format as short secrets, without holding the event loop', async () => {
  const text = 'a conversation '.repeat(150_000);
  const bytes = Buffer.from(text);
  const buffers = Array.from({ length: 225 }, (_, i) => bytes.subarray(i * 10_000, (i + 1) * 10_000));
  const sealed = await countPauses(() => switched.sealBytes(...buffers));
  const { keyId } = switched;
  expect(switched.open({ key: keyId, box: sealed.result.toString('base64') })).toBe(text);
  const opened = await countPauses(() => switched.openBytes(Buffer.from(switched.seal(text).box, 'base64'), keyId));
  expect(opened.result.equals(bytes)).toBe(true);
  expect(Math.min(sealed.pauses, opened.pauses)).toBeGreaterThan(1);
});

test('opens no bytes that were changed, whose end is missing, or whose key has another id', async () => {
  const box = await before.sealBytes(Buffer.from('bytes'));
  const changed = Buffer.from(box);
  changed[14] = (changed[14] ?? 0) ^ 1;
  for (const other of [changed, box.subarray(0, -1), box.subarray(0, 5), Buffer.alloc(0)])
    await expect(before.openBytes(other)).rejects.toThrow();
  await expect(switched.openBytes(box, newer.toString('hex'))).rejects.toThrow('no master key');
});

test('a text in buffers has the same hash as the complete text', async () => {
  const text = 'Ünïcode 😀 '.repeat(10_000);
  const bytes = Buffer.from(text);
  const buffers = [bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000)];
  expect(await switched.hashContentWithOldestKey('x ', buffers)).toBe(switched.hashWithOldestKey(`x ${text}`));
});
