/** Secrets are replaced while requests run: none fails before, during or after. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { type TestAccount, TestWorld } from '#testing';

let resources: AsyncDisposableStack;
let directory: string;

beforeEach(async () => {
  resources = new AsyncDisposableStack();
  directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-secrets-'));
  resources.defer(() => rm(directory, { recursive: true }));
});

afterEach(() => resources.disposeAsync());

async function writeSecret(name: string, content: string): Promise<string> {
  const file = path.join(directory, name);
  await writeFile(file, `${content}\n`);
  return file;
}

/** Forwards requests to the sandbox if the header has one of the accepted values. */
async function startGuard(sandbox: string, header: string, accepted: Set<string>): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    if (!accepted.has(String(incoming.headers[header]))) return outgoing.writeHead(401).end('{}');
    const { method = '', url, headers } = incoming;
    const forwarded = request(`${sandbox}${url}`, { method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 500, response.headers);
      response.pipe(outgoing);
    });
    return incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  resources.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Sends requests while the secrets are read again. @returns their statuses */
async function sendDuring(world: TestWorld, account: TestAccount): Promise<readonly number[]> {
  const requests = Array.from({ length: 8 }, () => world.sendChat(account, 'tokens=4'));
  await world.readSecretsAgain();
  const responses = await Promise.all([...requests, world.sendChat(account, 'tokens=4')]);
  return responses.map(({ status }) => status);
}

const ALL_OK = Array.from({ length: 9 }, () => 200);

test("a provider's API key is replaced", async () => {
  const accepted = new Set(['Bearer sk-before']);
  const world = await TestWorld.open(async (sandbox) => ({
    OPENAI_BASE_URL: `${await startGuard(sandbox, 'authorization', accepted)}/openai/v1`,
    OPENAI_API_KEY_FILE: await writeSecret('openai', 'sk-before'),
  }));
  resources.defer(() => world.close());
  const account = await world.createAccount(1);
  expect((await world.sendChat(account)).status).toBe(200);

  accepted.add('Bearer sk-after');
  await writeSecret('openai', 'sk-after');
  expect(await sendDuring(world, account)).toEqual(ALL_OK);
  accepted.delete('Bearer sk-before');

  expect((await world.sendChat(account)).status).toBe(200);
});

test('the macaroon of a Lightning node is replaced', async () => {
  const accepted = new Set(['01']);
  const world = await TestWorld.open(async (sandbox) => ({
    LND_REST_URL: `${await startGuard(sandbox, 'grpc-metadata-macaroon', accepted)}/lnd`,
    LND_MACAROON_FILE: await writeSecret('lnd', '01'),
  }));
  resources.defer(() => world.close());
  const account = await world.createAccount(1);

  accepted.add('02');
  await writeSecret('lnd', '02');
  await world.readSecretsAgain();
  accepted.delete('01');

  await world.fund(account, 1);
  expect(Number(await world.fetchBalance(account))).toBeGreaterThan(1.9);
});
