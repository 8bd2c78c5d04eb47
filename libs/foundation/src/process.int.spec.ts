import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from '@jest/globals';
import { redactCredentials, serializeError } from './log.ts';

test('a process that receives SIGTERM exits with code 0 even if its log is no longer read', async () => {
  const env = { ...process.env, SANDBOX_PORT: '0' };
  const child = spawn(process.execPath, ['dist/apps/sandbox/src/main.js'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  for (let log = ''; !log.includes('"ready"'); ) log += String((await once(child.stdout, 'data'))[0]);
  child.stdout.destroy();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('an error is logged with its causes, but without unparsable or received text', () => {
  const unreadable = Object.assign(new SyntaxError('a planted word is no JSON'), {
    code: 'HPE_INVALID',
    data: 'a planted word',
  });
  const failure = Object.assign(new Error('broke off', { cause: unreadable }), { delivered: 'a planted word' });
  expect(serializeError(failure)).toMatchObject({
    message: 'broke off',
    cause: { type: 'SyntaxError', code: 'HPE_INVALID' },
  });
  expect(JSON.stringify(serializeError(failure))).not.toContain('planted');
  const around: Error & { cause?: unknown } = new Error('around');
  around.cause = around;
  expect(JSON.stringify(serializeError(around)).match(/"around"/g)?.length).toBeLessThan(10);
});

test('the log redacts API keys and the ids of the oldest accounts, which are credentials, but no request ids', () => {
  const old = '2a7a2b1d-ef14-4cdf-8e39-798bc57077fb';
  const line = JSON.stringify({
    request: old,
    requestId: old,
    err: { stack: `of account-${old}: sk-GxagOGlgVqbHtJyay6SUha` },
    msg: old,
  });
  expect(JSON.parse(redactCredentials(line))).toEqual({
    request: old,
    requestId: old,
    err: { stack: 'of account-2a7a2b1d…: sk-…' },
    msg: '2a7a2b1d…',
  });
});

/** A role whose start waits for one of its resources. */
const STARTING = `
  import { runProcess } from '#foundation/program';
  const start = async (settings, log, opened) => {
    const { promise, reject } = Promise.withResolvers();
    opened.defer(() => {
      log.info('closed');
      reject(new Error('the resource is closed'));
    });
    log.info('starting');
    setInterval(() => {}, 1_000);
    return promise;
  };
  await runProcess('test', () => ({ logLevel: 'info' }), start);`;

test('a process that receives SIGTERM during its start closes its resources, and exits with code 0', async () => {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', STARTING], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let log = '';
  for await (const piece of child.stdout) {
    log += piece;
    if (log.endsWith('"starting"}\n')) child.kill('SIGTERM');
  }
  expect(await exited).toEqual([0, null]);
  expect(log.match(/"msg":"[a-z]+"/g)).toEqual(['"msg":"starting"', '"msg":"closed"', '"msg":"stopped"']);
});
