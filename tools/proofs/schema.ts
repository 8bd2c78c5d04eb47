/**
 * `npm run prove:schema`: Schemathesis generates valid and invalid requests from `/openapi.json`, for an account with
 * money, for one without, and without an account. No response is a server error, or deviates from the documented
 * statuses, content types, headers and schemas. With money, each operation outside EXCLUDED_PATHS succeeds at least
 * once. Schemathesis is installed in `.proofs/` for the proof.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';
import { install, PROOFS_DIR } from './clients/install.ts';
import { runCommand } from './clients/run.ts';

const SCHEMATHESIS = { schemathesis: '4.32.5' };
const CHECKS = [
  'not_a_server_error',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
];
/** A fixed seed, so that each run generates the same requests. */
const SEED = '1';
const EXAMPLES_PER_OPERATION = '8';
const CREDIT_USD = 500;
const IMAGE_MODEL = 'qwen/qwen-image';
const VIDEO_MODEL = 'kling/kling-2.5-turbo';
const RUN_WITHIN_MS = 900_000;
const ENDED_WITHIN_MS = 30_000;
const POLL_INTERVAL_MS = 100;

/** Paths whose requests need more than the document describes in order to succeed. Other proofs cover them. */
const EXCLUDED_PATHS = [
  'images/edits', // forms with files: prove:media
  'audio/transcriptions',
  'topup/webhooks', // signed by payment backends: prove:invoices
  'videos/webhooks', // prove:jobs
  'payments/charge', // with a proof of payment: prove:challenges
  'private/v1', // encrypted: prove:private
];

interface Operation {
  readonly operationId: string;
  readonly parameters?: { name: string; in: string; example?: unknown }[];
  readonly requestBody?: { content: Readonly<Record<string, { example?: object }>> };
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const print = (line: string) => void process.stdout.write(`${line}\n`);

const createAuthArguments = ({ apiKey, creditId }: Customer): readonly string[] => {
  return ['-H', `Authorization: Bearer ${apiKey}`, '-H', `x-credit-id: ${creditId}`];
};

/**
 * Loads the document and replaces its example ids with ids of existing objects, so that the examples succeed. Each
 * operation gets its own object, because some operations delete their object.
 */
async function loadDocument(cluster: ProofCluster, customer: Customer): Promise<Document> {
  const [api = ''] = cluster.gateways;
  const { apiKey } = customer;
  const document = (await (await fetch(`${api}/openapi.json`)).json()) as Document;
  let number = 0;
  const idCreators: Readonly<Record<string, () => Promise<unknown>>> = {
    keys: async () => (await cluster.createKey(customer, { name: `proof ${number++}` })).id,
    responses: async () => (await post(`${api}/v1/responses`, { model: 'openai/gpt-5-mini', input: 'Hi' }, apiKey)).id,
    topup: async () => {
      return (await post(`${api}/topup/create/btc-lightning`, { amount: 1, currency: 'USD' }, apiKey)).invoice_id;
    },
    videos: async () => (await post(`${api}/v1/videos`, { model: VIDEO_MODEL, prompt: 'A harbour' }, apiKey)).id,
  };
  const image = await post(`${api}/v1/images/generations`, { model: IMAGE_MODEL, prompt: 'A harbour' }, apiKey);
  const { pathname, searchParams } = new URL((image.data as { url: string }[])[0]?.url ?? '');
  const [id, n] = pathname.split('/').slice(-2);
  const media: Readonly<Record<string, unknown>> = { id, n, ...Object.fromEntries(searchParams) };
  const { nwc_url } = await post(`${cluster.sandbox}/nwc/wallets`, {});
  for (const [at, methods] of Object.entries(document.paths)) {
    const createId = idCreators[at.split('/').find((part) => part in idCreators) ?? ''];
    for (const { parameters = [], requestBody } of Object.values(methods)) {
      const id = parameters.find(({ name, in: where }) => name === 'id' && where === 'path');
      if (id && createId) id.example = await createId();
      if (at.includes('/media/')) for (const parameter of parameters) parameter.example = media[parameter.name];
      const example = requestBody?.content['application/json']?.example;
      if (example && 'nwc_url' in example) Object.assign(example, { nwc_url });
    }
  }
  return document;
}

async function prove(name: string, api: string, document: Document, headers: readonly string[]): Promise<boolean> {
  const folder = await install({ pypi: SCHEMATHESIS });
  const [schema, har] = ['openapi.json', 'har'].map((kind) => path.join(PROOFS_DIR, `schema-${name}.${kind}`)) as [
    string,
    string,
  ];
  await writeFile(schema, JSON.stringify(document));
  const args = [
    path.join(folder, 'venv/bin/st'),
    'run',
    schema,
    '--url',
    api,
    ...headers,
    '--checks',
    CHECKS.join(),
    '--phases',
    'examples,coverage,fuzzing',
    '--max-examples',
    EXAMPLES_PER_OPERATION,
    '--seed',
    SEED,
    '--continue-on-failure',
    '--no-shrink',
    '--suppress-health-check',
    'all',
    '--warnings',
    'off',
    '--no-color',
    '--report',
    'har',
    '--report-har-path',
    har,
  ];
  const env = process.env as Record<string, string>;
  const { code, output } = await runCommand(args, { cwd: PROOFS_DIR, env, timeoutMs: RUN_WITHIN_MS });
  await writeFile(path.join(PROOFS_DIR, `schema-${name}.txt`), output);
  const responses = await readResponses(har);
  const missing = name === 'funded' ? listNeverServed(document, responses) : [];
  const good = code === 0 && missing.length === 0;
  print(`${name}: ${responses.length} requests: ${good ? 'ok' : 'FAILED'}`);
  for (const operation of missing) print(`    never succeeded: ${operation}`);
  if (code !== 0) print(output.slice(output.indexOf('FAILURES')));
  return good;
}

interface RecordedResponse {
  readonly method: string;
  readonly path: string;
  readonly status: number;
}

async function readResponses(har: string): Promise<readonly RecordedResponse[]> {
  const { log } = JSON.parse(await readFile(har, 'utf8'));
  return log.entries.map(
    ({ request, response }: { request: { method: string; url: string }; response: { status: number } }) => {
      return { method: request.method, path: new URL(request.url).pathname, status: response.status };
    },
  );
}

function listNeverServed({ paths }: Document, responses: readonly RecordedResponse[]): readonly string[] {
  const here = Object.entries(paths).filter(([at]) => !EXCLUDED_PATHS.some((excluded) => at.includes(excluded)));
  return here.flatMap(([at, methods]) => {
    const pattern = new RegExp(`^${at.replaceAll(/\{\w+\}/g, at.includes('models') ? '.+' : '[^/]+')}$`);
    return Object.keys(methods)
      .map((method) => method.toUpperCase())
      .filter(
        (method) =>
          !responses.some(
            (response) => response.method === method && response.status < 300 && pattern.test(response.path),
          ),
      )
      .map((method) => `${method} ${at}`);
  });
}

/**
 * Waits until nothing is held. Responses of disconnected clients may be read to their end, and have holds until then.
 */
async function waitUntilAllEnded(cluster: ProofCluster, customer: Customer): Promise<boolean> {
  const deadline = performance.now() + ENDED_WITHIN_MS;
  for (;;) {
    // The credit id is used, because a generated request may have revoked the key.
    const { held_usd } = await post(`${cluster.gateways[0]}/credits/balance`, { credit_id: customer.creditId });
    if (held_usd === 0) return true;
    if (performance.now() > deadline) {
      print(`FAILED: ${held_usd} USD are still held`);
      return false;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-schema-'));
const cluster = await ProofCluster.start(dataDir, 1);
try {
  const [api = ''] = cluster.gateways;
  const [funded, empty] = [await cluster.createCustomer(CREDIT_USD), await cluster.createCustomer(0)];
  const document = await loadDocument(cluster, funded);
  const runs: readonly (readonly [string, readonly string[]])[] = [
    ['funded', createAuthArguments(funded)],
    ['empty', createAuthArguments(empty)],
    ['anonymous', []],
  ];
  for (const [name, headers] of runs) if (!(await prove(name, api, document, headers))) process.exitCode = 1;
  if (!(await waitUntilAllEnded(cluster, funded))) process.exitCode = 1;
  const verified = await cluster.runLedger('verify');
  print(verified.output.trim().split('\n').at(-1) ?? '');
  if (verified.code !== 0) process.exitCode = 1;
} finally {
  await cluster.stop();
  await rm(dataDir, { recursive: true });
}
