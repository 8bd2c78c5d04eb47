/**
 * `npm run prove:ehbp`: the encryption of private models with implementations that are not ours, in both directions. As
 * clients of our enclave through our gateway: the reference implementation in Go, OpenAI's client for Python over
 * tinfoil-ehbp, and npm's ehbp. As the enclave behind our gateway, asked by our proxy: the server of the Go
 * implementation. Whatever they ask is charged once, and the books verify. They are built and installed when they are needed.
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
/** Where the Go server passes on what it has decrypted. */
const GO_UPSTREAM_PORT = 11_434;
const GO_PORT = 11_435;
const WITHIN_MS = 60_000;
const CREDIT_USD = 5;

let failed = 0;
function check(holds: boolean, line: string): void {
  process.stdout.write(`${holds ? 'holds ' : 'FAILS '} ${line}\n`);
  if (!holds) failed++;
}

interface Scene {
  readonly cluster: ProofCluster;
  readonly customer: Customer;
  /** Folder of the Go programs. */
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
  check(completion.output.includes(`"${EXPECTED_TEXT}"`), `Go ${VERSION} asks for a whole answer`);
  const stream = await sendRequest(createBody('[[sandbox tokens=40 chunk_delay=2]]', { stream: true }));
  const chunks = stream.output.split('\n').filter((line) => line.startsWith('data: {')).length;
  check(stream.output.trim().endsWith('data: [DONE]'), `and for a stream: ${chunks} events`);
  const large = await sendRequest(createBody(`${'word '.repeat(20_000)}[[sandbox tokens=3]]`));
  check(large.output.includes(`"${EXPECTED_TEXT}"`), 'and sends 100 KB');
  const rejected = await sendRequest(createBody('[[sandbox fault=400]]'));
  check(/error/.test(rejected.output), `is refused by the enclave, encrypted: ${getFirstLine(rejected.output)}`);
  const unauthorized = await sendRequest(createBody('Hello'), undefined, 'sk-none');
  check(
    /error/.test(unauthorized.output),
    `is refused by the gateway, in the clear: ${getFirstLine(unauthorized.output)}`,
  );
  const other = await sendRequest(createBody('Hello'), 'private/kimi-k3');
  check(/key|decrypt/i.test(other.output), `is told so by an enclave with another key: ${getFirstLine(other.output)}`);
}

function getFirstLine(text: string): string {
  return text.trim().split('\n').at(-1)?.slice(0, 160) ?? '';
}

async function checkPythonClient({ customer: { apiKey } }: Scene, front: Front): Promise<void> {
  const folder = await install({ pypi: PYTHON });
  const env = { ...(process.env as Record<string, string>), FRONT_URL: front.url, API_KEY: apiKey };
  const command = [path.join(folder, 'venv/bin/python'), path.join(root, 'tools/proofs/ehbp/py_ehbp.py')];
  const { code, output } = await runCommand(command, { cwd: root, env, timeoutMs: WITHIN_MS });
  const what = `OpenAI's client for Python over tinfoil-ehbp ${PYTHON['tinfoil-ehbp']}: whole, streamed, refused by either`;
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
    "npm's ehbp 0.1.7: whole and streamed",
  );
}

/** The Go server as the enclave: it decrypts what our proxy encrypted, and encrypts what our proxy reads. */
async function checkGoServer({ go, cluster, customer }: Scene, directory: string): Promise<void> {
  const command = [path.join(go, 'server'), '-l', `127.0.0.1:${GO_PORT}`, '-i', path.join(directory, 'identity.json')];
  // It says on stderr that it listens.
  const enclave = await startProgram(['sh', '-c', `exec ${command.join(' ')} 2>&1`], {}, /Listening/);
  const receivedBodies: string[] = [];
  const config = Buffer.from(await (await fetch(`http://127.0.0.1:${GO_PORT}/.well-known/hpke-keys`)).arrayBuffer());
  // A key id, a KEM, then the key.
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
      completion.choices[0]?.message.content === `You said: ${text}`,
      `the Go server answers our proxy, ${text.length} bytes whole`,
    );
    let streamed = '';
    for await (const chunk of await client.chat.completions.create({
      model: `private/${MODEL}`,
      messages,
      stream: true,
    }))
      streamed += chunk.choices[0]?.delta.content ?? '';
    check(streamed === `You said: ${text}`, 'and streamed');
    check(
      receivedBodies.length === 2 && receivedBodies.every((body) => body.includes(text)),
      'it decrypted what it was sent, of one frame or several',
    );
    const one = (USAGE.prompt * 0.79125 + USAGE.completion * 1.31875) / 1e6;
    const cost = Number((balance - (await waitUntilSettled(cluster, customer))).toFixed(9));
    check(
      cost === Number((2 * one).toFixed(9)),
      `each is charged by the usage it reports, several tokens in an event: ${cost} USD`,
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
