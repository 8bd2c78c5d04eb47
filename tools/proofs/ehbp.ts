/**
 * `npm run prove:ehbp`: tests the encryption of private models with other implementations, in both directions. The
 * reference implementation in Go, OpenAI's client for Python over tinfoil-ehbp, and npm's ehbp call an enclave of the
 * sandbox through the gateway. Then the proxy and the gateway call the server of the Go implementation as an enclave.
 * Every call of an enclave is charged once, and the ledger verifies. The programs are built and installed for the
 * proof.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Transport } from 'ehbp';
import OpenAI from 'openai';
import { createLog, openFoundation, readSettings } from '#foundation';
import { type Customer, ProofCluster } from '../cluster.ts';
import { root, startApp, startProgram } from '../processes.ts';
import { install } from './clients/install.ts';
import { runCommand } from './clients/run.ts';
import { type Front, startFront, startLoopbackServer } from './ehbp/front.ts';
import { createProviderHandler, USAGE } from './ehbp/provider.ts';
import { buildGoPrograms } from './money/go.ts';
import { compareWithBill } from './private/ledger.ts';

const MODULE = 'github.com/tinfoilsh/encrypted-http-body-protocol';
const VERSION = 'v0.3.1';
const PYTHON = { 'tinfoil-ehbp': '0.4.1', openai: '3.54.0' };
const MODEL = 'gpt-oss-120b';
const EXPECTED_TEXT = 'every coin that';
/** The port to which the Go server forwards decrypted requests. */
const GO_UPSTREAM_PORT = 11_434;
const GO_PORT = 11_435;
const WITHIN_MS = 60_000;
const CREDIT_USD = 5;

let failed = 0;
function check(holds: boolean, line: string): void {
  process.stdout.write(`${holds ? 'passes' : 'FAILS '} ${line}\n`);
  if (!holds) failed++;
}

interface Scene {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  /** The folder of the Go programs. */
  readonly go: string;
}

const createBody = (content: string, extraFields: object = {}) =>
  JSON.stringify({ model: MODEL, messages: [{ role: 'user', content }], ...extraFields });

async function checkGoClient({ go, customer: { apiKey } }: Scene, front: Front): Promise<void> {
  const sendRequest = (body: string, model = `private/${MODEL}`, key = apiKey) => {
    const headers = [`Authorization: Bearer ${key}`, `X-Private-Model: ${model}`, 'Content-Type: application/json'];
    const options = ['-X', 'POST', '-d', body, ...headers.flatMap((header) => ['-H', header])];
    const url = `${front.url}/private/v1/chat/completions`;
    return runCommand([path.join(go, 'fetch'), ...options, url], { cwd: root, env: {}, timeoutMs: WITHIN_MS });
  };
  const completion = await sendRequest(createBody('[[sandbox tokens=3]]'));
  check(completion.output.includes(`"${EXPECTED_TEXT}"`), `Go ${VERSION}: a non-streaming response`);
  const stream = await sendRequest(createBody('[[sandbox tokens=40 chunk_delay=2]]', { stream: true }));
  const chunks = stream.output.split('\n').filter((line) => line.startsWith('data: {')).length;
  check(stream.output.trim().endsWith('data: [DONE]'), `Go: a stream of ${chunks} events`);
  const large = await sendRequest(createBody(`${'word '.repeat(20_000)}[[sandbox tokens=3]]`));
  check(large.output.includes(`"${EXPECTED_TEXT}"`), 'Go: a request of 100 KB');
  const rejected = await sendRequest(createBody('[[sandbox fault=400]]'));
  check(/error/.test(rejected.output), `Go: an encrypted error of the enclave: ${getLastLine(rejected.output)}`);
  const unauthorized = await sendRequest(createBody('Hello'), undefined, 'sk-none');
  check(
    /error/.test(unauthorized.output),
    `Go: an unencrypted error of the gateway: ${getLastLine(unauthorized.output)}`,
  );
  const other = await sendRequest(createBody('Hello'), 'private/kimi-k3');
  check(/key|decrypt/i.test(other.output), `Go: an enclave with another key rejects: ${getLastLine(other.output)}`);
}

function getLastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.slice(0, 160) ?? '';
}

async function checkPythonClient({ customer: { apiKey } }: Scene, front: Front): Promise<void> {
  const folder = await install({ pypi: PYTHON });
  const env = { ...(process.env as Record<string, string>), FRONT_URL: front.url, API_KEY: apiKey };
  const command = [path.join(folder, 'venv/bin/python'), path.join(root, 'tools/proofs/ehbp/py_ehbp.py')];
  const { code, output } = await runCommand(command, { cwd: root, env, timeoutMs: WITHIN_MS });
  const what = `OpenAI's client for Python over tinfoil-ehbp ${PYTHON['tinfoil-ehbp']}: complete, streaming, errors of enclave and gateway`;
  check(code === 0, code === 0 ? what : `${what}: ${output.trim().slice(-600)}`);
}

async function checkNpmClient({ customer: { apiKey } }: Scene, front: Front): Promise<void> {
  const transport = await Transport.create(front.url);
  const headers = {
    'content-type': 'application/json',
    authorization: `Bearer ${apiKey}`,
    'x-private-model': `private/${MODEL}`,
  };
  const sendRequest = async (body: string) =>
    (await transport.post(`${front.url}/private/v1/chat/completions`, body, { headers })).text();
  const completion = await sendRequest(createBody('[[sandbox tokens=3]]'));
  const stream = await sendRequest(createBody('[[sandbox tokens=40]]', { stream: true }));
  check(
    completion.includes(`"${EXPECTED_TEXT}"`) && stream.trim().endsWith('data: [DONE]'),
    "npm's ehbp 0.1.7: complete and streaming",
  );
}

/** Uses the Go server as the enclave: it decrypts the requests of the proxy and encrypts the responses. */
async function checkGoServer({ go, cluster, customer }: Scene, directory: string): Promise<void> {
  const command = [path.join(go, 'server'), '-l', `127.0.0.1:${GO_PORT}`, '-i', path.join(directory, 'identity.json')];
  // The Go server reports on stderr that it is listening.
  const enclave = await startProgram(['sh', '-c', `exec ${command.join(' ')} 2>&1`], {}, /Listening/);
  const receivedBodies: string[] = [];
  const config = Buffer.from(await (await fetch(`http://127.0.0.1:${GO_PORT}/.well-known/hpke-keys`)).arrayBuffer());
  // A key configuration starts with a key id (1 byte) and a KEM id (2 bytes). The key follows (RFC 9458, 3.1).
  const key = config.subarray(3, 35).toString('hex');
  const handleRequest = createProviderHandler(key, receivedBodies);
  const providerServer = await startLoopbackServer(
    (request, response) => void handleRequest(request, response),
    GO_UPSTREAM_PORT,
  );
  cluster.addSettings({ TINFOIL_BASE_URL: `http://127.0.0.1:${GO_PORT}` });
  const gateway = await cluster.startRole('gateway', 'gateway before Go');
  const { api } = JSON.parse(gateway.readyLine) as { api: string };
  const env = { PPQ_API_KEY: customer.apiKey, PPQ_API_BASE: api, ALLOW_UNATTESTED: '1', PORT: '0' };
  const proxy = await startApp('private-proxy', env);
  try {
    const [baseURL = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(proxy.readyLine) ?? [];
    const client = new OpenAI({ apiKey: 'none', baseURL: `${baseURL}/v1`, maxRetries: 0 });
    const text = `coins ${'and more coins '.repeat(6_000)}`.trim();
    const messages = [{ role: 'user' as const, content: text }];
    const { balance } = await cluster.fetchBalance(customer);
    const completion = await client.chat.completions.create({ model: `private/${MODEL}`, messages });
    check(
      completion.choices[0]?.message.content === `Echo: ${text}`,
      `the Go server returns the echo of ${text.length} bytes to the proxy without streaming`,
    );
    let streamed = '';
    for await (const chunk of await client.chat.completions.create({
      model: `private/${MODEL}`,
      messages,
      stream: true,
    }))
      streamed += chunk.choices[0]?.delta.content ?? '';
    check(streamed === `Echo: ${text}`, 'the Go server returns the same text as a stream');
    check(
      receivedBodies.length === 2 && receivedBodies.every((body) => body.includes(text)),
      'the Go server decrypted both requests',
    );
    const one = (USAGE.prompt * 0.79125 + USAGE.completion * 1.31875) / 1e6;
    const cost = Number((balance - (await waitUntilSettled(cluster, customer))).toFixed(9));
    check(
      cost === Number((2 * one).toFixed(9)),
      `both requests are charged by the reported usage, with several tokens per event: ${cost} USD`,
    );
  } finally {
    await proxy.stop();
    await cluster.stopRole('gateway before Go');
    providerServer.close();
    await enclave.stop();
  }
}

async function waitUntilSettled(cluster: ProofCluster, customer: Customer): Promise<number> {
  for (;;) {
    const { balance, held_usd } = await cluster.fetchBalance(customer);
    if (held_usd === 0) return balance;
  }
}

const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-ehbp-'));
const dataDir = path.join(directory, 'data');
try {
  const programs = [`${MODULE}/cmd/fetch`, `${MODULE}/cmd/example/server`];
  const go = await buildGoPrograms({ name: 'ehbp', modules: { [MODULE]: VERSION }, programs, replacements: {} });
  const cluster = await ProofCluster.start(dataDir, 1);
  const foundation = await openFoundation(readSettings({ DATA_DIR: dataDir }), createLog('warn'));
  try {
    const scene = { cluster, customer: await cluster.createCustomer(CREDIT_USD), go };
    const front = await startFront(cluster.gateways[0] as string, `${cluster.sandbox}/enclaves/${MODEL}`);
    await checkGoClient(scene, front);
    await checkPythonClient(scene, front);
    await checkNpmClient(scene, front);
    front.close();
    await waitUntilSettled(cluster, scene.customer);
    const {
      twice,
      missing,
      different,
      settled: charged,
      lines,
      billUsd,
    } = await compareWithBill(foundation.store, cluster.sandbox);
    const mismatches = [...twice, ...missing, ...different];
    check(
      mismatches.length === 0 && charged === lines,
      `${charged} charges for ${lines} lines of the enclave's bill, ${billUsd} USD${mismatches.length > 0 ? `: ${mismatches}` : ''}`,
    );
    await checkGoServer(scene, directory);
    const { code, output } = await cluster.runLedger('verify');
    check(code === 0, output.trim().split('\n').at(-1) ?? '');
  } finally {
    await foundation.close();
    await cluster.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
