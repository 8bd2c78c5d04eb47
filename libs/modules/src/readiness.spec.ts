import { expect, test } from '@jest/globals';
import { HealthListener } from './health-listener.ts';
import { Readiness } from './readiness.ts';

const well = () => ({ ok: true, lag_ms: 3 });
const broken = () => Promise.reject(new Error('postgres://user:password@host is gone'));

test('a process is ready while all that it requires is well, whatever else is shown', async () => {
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
  ['does not answer', () => new Promise<never>(() => {}), { ok: false, required: true, late: true }],
])('a process is not ready where what it requires %s, and does not say why', async (_, check, found) => {
  const readiness = new Readiness(10);
  readiness.addRequired('store', check);
  expect(await readiness.report()).toEqual({ status: 'unavailable', draining: false, checks: { store: found } });
});

test('a process that stops is not ready', async () => {
  const readiness = new Readiness();
  readiness.addRequired('store', well);
  readiness.isDraining = true;
  expect(await readiness.report()).toMatchObject({ status: 'unavailable', draining: true });
});

test('a role without an API says how it is at a port of its own', async () => {
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
