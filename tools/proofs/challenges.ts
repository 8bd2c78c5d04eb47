/**
 * `npm run prove:challenges [-- ROUNDS]`: payments for single requests (HTTP 402). One proof of payment is presented
 * 500 times at once, to one gateway and to three: one request is served. Gateways are killed with SIGKILL at different
 * times while proofs are presented; every payer gets the response by retrying. The three clients of
 * `@getalby/lightning-tools`, and `mppx`, which is installed for the proof, pay for data lookups, images, edits and
 * videos. Afterwards the ledger verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fetch402, fetchWithL402, fetchWithMpp } from '@getalby/lightning-tools';
import { ProofCluster } from '../cluster.ts';
import { root } from '../processes.ts';
import { type PaymentProof, type PayPerRequestCall, pay, payForCall, sendCall } from './challenges/payer.ts';
import { install } from './clients/install.ts';
import { runCommand } from './clients/run.ts';

const PRESENTATIONS = 500;
const ROUNDS = Number(process.argv[2] ?? 12);
const PAYERS = 6;
/** The latency of the provider. */
const LATENCY_MS = 250;
/** Maximum time from the first request of a round until a gateway is killed. */
const KILLED_WITHIN_MS = 600;
/** Includes the ten seconds for which a killed process must be stale before its holds are released. */
const RESPONSE_TIMEOUT_MS = 40_000;
const RETRY_INTERVAL_MS = 250;
/** All challenges of the proof are requested from one IP address. */
const SETTINGS = { CHALLENGES_PER_MINUTE: '10000', CHALLENGES_PER_MINUTE_IN_ALL: '10000' };
const PACKAGES = { mppx: '0.11.0', viem: '2.54.0' };
const RUN_WITHIN_MS = 120_000;
const VIDEO = 'kling/kling-2.5-turbo';
const EDIT = { model: 'openai/gpt-image-1.5', prompt: 'At night' };
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const print = (line: string) => void process.stdout.write(`${line}\n`);
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const createSearchCall = (query: string): PayPerRequestCall => ({
  path: '/v1/data/api/web/search',
  method: 'POST',
  json: { query },
});
const createImageCall = (prompt: string): PayPerRequestCall => ({
  path: '/v1/images/generations',
  method: 'POST',
  json: { model: 'qwen/qwen-image', prompt },
});

/** The response of a video request is saved when the job is accepted, and replayed without changes afterwards. */
const createVideoCall = (prompt: string): PayPerRequestCall => ({
  path: '/v1/videos',
  method: 'POST',
  json: { model: VIDEO, prompt },
});
const KINDS = [createSearchCall, createImageCall, createVideoCall];

interface Lookup {
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly example: Readonly<Record<string, string>>;
}

async function proveRace(gateways: number): Promise<boolean> {
  return withCluster(gateways, async (cluster) => {
    const apis = cluster.gateways;
    const [api = ''] = apis;
    let isRight = true;
    for (const call of [
      createSearchCall('ledgers [[sandbox latency=200]]'),
      createImageCall('A coin [[sandbox latency=200]]'),
    ]) {
      await fetch(`${cluster.sandbox}/bill`, { method: 'DELETE' });
      const { credential } = await payForCall(api, cluster.sandbox, call);
      const responses = await Promise.all(
        Array.from({ length: PRESENTATIONS }, (_, i) => presentProof(`${apis[i % apis.length]}`, call, credential)),
      );
      const served = responses.filter(({ status, replayed }) => status === 200 && !replayed).length;
      const replayed = responses.filter((response) => response.status === 200 && response.replayed).length;
      const busy = responses.filter(({ status }) => status === 409).length;
      const bill = (await (await fetch(`${cluster.sandbox}/bill`)).json()) as { lines: number };
      const later = await presentProof(api, call, credential);
      const other = responses.length - served - replayed - busy;
      print(
        `${gateways} gateway(s), ${call.path}: served ${served}, replayed ${replayed}, in progress ${busy}, other ${other}; invoiced ${bill.lines}; later ${later.status}${later.replayed ? ' replayed' : ''}`,
      );
      isRight &&= served === 1 && other === 0 && bill.lines === 1 && later.status === 200 && later.replayed;
    }
    return isRight;
  });
}

async function presentProof(api: string, call: PayPerRequestCall, credential: string) {
  const response = await sendCall(api, call, credential);
  const body = await response.text();
  return { status: response.status, replayed: response.headers.get('idempotent-replayed') === 'true', body };
}

async function proveKills(): Promise<boolean> {
  return withCluster(2, async (cluster) => {
    await fetch(`${cluster.sandbox}/bill`, { method: 'DELETE' });
    let completedCount = 0;
    let slowest = 0;
    const problems: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const victim = `gateway ${1 + (round % 2)}`;
      const [api = ''] = listApis(cluster, victim);
      const [other = ''] = cluster.gateways.filter((gateway) => gateway !== api);
      const createPrompt = (i: number) => `${round}-${i} [[sandbox latency=${LATENCY_MS}]]`;
      const calls = Array.from({ length: PAYERS }, (_, i) =>
        (KINDS[i % KINDS.length] as (typeof KINDS)[0])(createPrompt(i)),
      );
      const proofs = await Promise.all(calls.map((call) => payForCall(other, cluster.sandbox, call)));
      const first = proofs.map(async ({ call, credential }, i) => {
        await sleep((i * KILLED_WITHIN_MS) / (2 * PAYERS)); // so that the kill hits the requests at different steps
        return presentProof(api, call, credential).catch(() => undefined); // killed: paid again below
      });
      await sleep((KILLED_WITHIN_MS * (round + 0.5)) / ROUNDS);
      await cluster.processes.get(victim)?.kill();
      cluster.processes.delete(victim);
      const before = await Promise.all(first);
      const restarted = cluster.startRole('gateway', victim);
      const startedAt = performance.now();
      const after = await Promise.all(proofs.map((proof) => waitForResponse(other, proof)));
      slowest = Math.max(slowest, performance.now() - startedAt);
      await restarted;
      for (const [i, final] of after.entries()) {
        if (final.status < 300) completedCount++;
        else problems.push(`${final.status} ${final.body}`);
        const firstResponse = before[i];
        if (
          firstResponse &&
          firstResponse.status < 300 &&
          removeAddresses(firstResponse.body) !== removeAddresses(final.body)
        )
          problems.push('the repeated response differs from the first one');
        const { charged_usd, price_usd } = await waitUntilCharged(other, proofs[i] as PaymentProof);
        if (charged_usd !== price_usd) problems.push(`charged ${charged_usd} of ${price_usd}`);
      }
    }
    const bill = (await (await fetch(`${cluster.sandbox}/bill`)).json()) as { lines: number };
    print(
      `${ROUNDS} gateways killed: ${completedCount} of ${ROUNDS * PAYERS} payers got their response, the slowest after ${(slowest / 1_000).toFixed(1)} s of retries; providers invoiced ${bill.lines} calls`,
    );
    for (const problem of new Set(problems)) print(`    ${problem}`);
    return completedCount === ROUNDS * PAYERS && problems.length === 0;
  });
}

/** Removes the host of signed URLs. Without a common public address, each gateway uses its own. */
function removeAddresses(body: string): string {
  return body.replaceAll(/127\.0\.0\.1:\d+/g, '');
}

function listApis(cluster: ProofCluster, name: string): readonly string[] {
  const line = cluster.processes.get(name)?.readyLine;
  return line === undefined ? [] : [(JSON.parse(line) as { api: string }).api];
}

async function waitForResponse(api: string, { call, credential }: PaymentProof) {
  const deadline = performance.now() + RESPONSE_TIMEOUT_MS;
  for (;;) {
    const response = await presentProof(api, call, credential);
    const isRetryable = response.status === 409 || response.status === 503;
    if (!isRetryable || performance.now() > deadline) return response;
    await sleep(RETRY_INTERVAL_MS);
  }
}

/** Waits until a payment has been charged, but at most 40 s. A video is charged when it has been generated. */
async function waitUntilCharged(api: string, { credential }: PaymentProof) {
  const deadline = performance.now() + RESPONSE_TIMEOUT_MS;
  for (;;) {
    const response = await fetch(`${api}/v1/payments/charge`, { headers: { authorization: credential } });
    const { data } = (await response.json()) as { data?: { charged_usd: number; price_usd: number } };
    if ((data && data.charged_usd > 0) || performance.now() > deadline)
      return data ?? { charged_usd: -1, price_usd: 0 };
    await sleep(RETRY_INTERVAL_MS);
  }
}

/** The clients of `@getalby/lightning-tools`. They cache credentials by URL, so each of them gets its own cluster. */
const CLIENTS = { fetch402, fetchWithL402, fetchWithMpp };

/**
 * Requests all data lookups, an image, an edit and a video with one client.
 * @returns whether all were served, with as many payments as requests
 */
async function proveLightningTools(name: keyof typeof CLIENTS): Promise<boolean> {
  return withCluster(1, async (cluster) => {
    const [api = ''] = cluster.gateways;
    const { data } = (await (await fetch(`${api}/v1/data/endpoints`)).json()) as { data: readonly Lookup[] };
    const toJsonRequest = (body: object) => ({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const form = new FormData();
    for (const [name, value] of Object.entries(EDIT)) form.append(name, value);
    form.append('image', new Blob([Buffer.from(PIXEL, 'base64')], { type: 'image/png' }), 'picture.png');
    const requests: readonly (readonly [url: string, sent: RequestInit])[] = [
      ...data.map(({ path, method, example }): readonly [string, RequestInit] =>
        method === 'GET'
          ? [`${api}${path}?${new URLSearchParams(example)}`, { method }]
          : [`${api}${path}`, toJsonRequest(example)],
      ),
      [`${api}/v1/images/generations`, toJsonRequest(createImageCall('A coin').json as object)],
      [`${api}/v1/images/edits`, { method: 'POST', body: form }],
      [`${api}/v1/videos`, toJsonRequest(createVideoCall('A counting house').json as object)],
    ];
    let payments = 0;
    const payInvoice = async ({ invoice }: { invoice: string }) => {
      payments++;
      return { preimage: await pay(cluster.sandbox, invoice) };
    };
    let completedCount = 0;
    for (const [url, sent] of requests) {
      const response = await CLIENTS[name](url, sent, { wallet: { payInvoice } as never });
      await response.arrayBuffer();
      if (response.status < 300) completedCount++;
      else print(`    ${response.status} ${url}`);
    }
    print(`${name}: ${completedCount} of ${requests.length} requests served for ${payments} payments`);
    return completedCount === requests.length && payments === requests.length;
  });
}

/** @returns whether every request was served for one payment and with a receipt */
async function proveMppx(): Promise<boolean> {
  const packages = await install({ npm: PACKAGES });
  return withCluster(1, async (cluster) => {
    const [api = ''] = cluster.gateways;
    const form = {
      fields: EDIT,
      file: { name: 'image', base64: PIXEL },
    };
    const requests = [
      { url: `${api}/v1/data/api/web/search`, method: 'POST', json: { query: 'ledgers' } },
      { url: `${api}/v1/data/x/users/by/username?username=example`, method: 'GET' },
      { url: `${api}/v1/images/generations`, method: 'POST', json: createImageCall('A coin').json },
      { url: `${api}/v1/images/edits`, method: 'POST', form },
      { url: `${api}/v1/videos`, method: 'POST', json: createVideoCall('A counting house').json },
    ];
    const env = {
      ...(process.env as Record<string, string>),
      PACKAGES: packages,
      SANDBOX_URL: cluster.sandbox,
      REQUESTS: JSON.stringify(requests),
    };
    const script = [process.execPath, path.join(root, 'tools/proofs/challenges/mppx.mjs')];
    const { code, output } = await runCommand(script, { cwd: root, env, timeoutMs: RUN_WITHIN_MS });
    print(`mppx ${PACKAGES.mppx}: ${output.trim()}`);
    if (code !== 0) return false;
    const outcomes = JSON.parse(output.trim().split('\n').at(-1) ?? '[]') as {
      status: number;
      payments: number;
      receipt: boolean;
    }[];
    const isRight = outcomes.every(({ status, payments, receipt }) => status < 300 && payments === 1 && receipt);
    return isRight && outcomes.length === requests.length;
  });
}

/** Runs a proof on its own cluster. @returns whether the proof passes and the ledger verifies */
async function withCluster(gateways: number, prove: (cluster: ProofCluster) => Promise<boolean>): Promise<boolean> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-challenges-'));
  const cluster = await ProofCluster.start(dataDir, gateways, SETTINGS);
  try {
    const isRight = await prove(cluster);
    const { code, output } = await cluster.runLedger('verify');
    print(output.trim().split('\n').at(-1) ?? '');
    if (code !== 0) print(output.trim());
    return isRight && code === 0;
  } finally {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

const byClients = Object.keys(CLIENTS).map((name) => () => proveLightningTools(name as keyof typeof CLIENTS));
for (const prove of [() => proveRace(1), () => proveRace(3), proveKills, ...byClients, proveMppx])
  if (!(await prove())) process.exitCode = 1;
