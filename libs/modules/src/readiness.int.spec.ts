import { expect, test } from '@jest/globals';
import { HealthListener } from './health-listener.ts';
import { Readiness } from './readiness.ts';

const well = () => ({ ok: true, lag_ms: 3 });
const broken = () => Promise.reject(new Error('postgres://user:password@host is gone'));

test('the report is "ok" while all required checks pass, even if an optional one fails', async () => {
  const readiness = new Readiness();
  readiness.addRequired('store', well);
  readiness.addOptional('projector', broken);
  expect(await readiness.report()).toEqual({
    status: 'ok',
    draining: false,
    checks: { store: { ok: true, required: true, lag_ms: 3 }, projector: { ok: false, required: false } },
  });
});

test.each([
  ['fails', broken, { ok: false, required: true }],
  ['does not respond', () => new Promise<never>(() => {}), { ok: false, required: true, late: true }],
])('the report is "unavailable", without an error message, if a required check %s', async (_, check, found) => {
  const readiness = new Readiness(10);
  readiness.addRequired('store', check);
  expect(await readiness.report()).toEqual({ status: 'unavailable', draining: false, checks: { store: found } });
});

test('the report is "unavailable" while the process drains', async () => {
  const readiness = new Readiness();
  readiness.addRequired('store', well);
  readiness.isDraining = true;
  expect(await readiness.report()).toMatchObject({ status: 'unavailable', draining: true });
});

test('the health routes respond 200, other paths 404, and /health/ready 503 while the process drains', async () => {
  const readiness = new Readiness();
  readiness.addRequired('store', well);
  const listener = await HealthListener.open(readiness, 0, { host: '127.0.0.1' });
  const ask = async (path: string) => {
    const answer = await fetch(`${listener.url}${path}`);
    return [answer.status, ((await answer.json()) as { status: string }).status];
  };
  expect(await Promise.all(['/health/live', '/health/ready', '/'].map(ask))).toEqual([
    [200, 'ok'],
    [200, 'ok'],
    [404, 'error'],
  ]);
  readiness.isDraining = true;
  expect(await ask('/health/ready')).toEqual([503, 'unavailable']);
  listener.close();
});
