import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { StartError } from '#foundation';
import { startSandbox } from './sandbox.ts';

let sandbox: Awaited<ReturnType<typeof startSandbox>>;
beforeAll(async () => {
  sandbox = await startSandbox({ port: 0 });
});
afterAll(() => sandbox.close());

describe('the sandbox', () => {
  test('lists its routes', async () => {
    const response = await fetch(sandbox.url);
    expect(await response.json()).toMatchObject({ simulated: true, routes: expect.arrayContaining(['GET /bill']) });
  });

  test.each([
    ['GET', '/nothing/here'],
    ['GET', '/wallet/pay'],
    ['POST', '/openai/v1/completions'],
  ])('responds to %s %s, an unknown route, with 404 in JSON', async (method, path) => {
    const response = await fetch(sandbox.url + path, { method });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining(path) } });
  });

  test('rejects a port in use with a message that says what to do', async () => {
    const port = Number(new URL(sandbox.url).port);
    const second = startSandbox({ port });
    await expect(second).rejects.toBeInstanceOf(StartError);
    await expect(second).rejects.toThrow(
      `Port ${port} is already in use; stop the process that uses it, or set SANDBOX_PORT.`,
    );
  });

  test('has a URL at a loopback address by default', () => {
    expect(new URL(sandbox.url).hostname).toBe('127.0.0.1');
  });

  test('still serves other clients after one has disconnected in the middle of its request', async () => {
    const half = request(`${sandbox.url}/wallet/pay`, { method: 'POST', headers: { 'content-length': 100 } });
    half.on('error', () => {});
    await new Promise((resolve) => half.write('{', resolve));
    half.destroy();
    expect((await fetch(sandbox.url)).status).toBe(200);
  });

  test('closes while a subscription is open, and ends the subscription', async () => {
    const other = await startSandbox({ port: 0 });
    const open = fetch(`${other.url}/lnd/v1/invoices/subscribe`, { headers: { 'grpc-metadata-macaroon': '00' } });
    await fetch(other.url);
    await Promise.all([expect(open).rejects.toThrow('fetch failed'), other.close()]);
  });
});
