/**
 * `npm run prove:caching`: an unmodified Varnish with its default settings is in front of a gateway. It stores what the
 * headers of a response do not forbid, and knows no credential but `Authorization`. Every documented GET route is
 * requested with each credential of one customer, then with each credential of another, with none and with an invalid
 * one: nobody gets a response to somebody else. The control: lists that are the same for everyone do come from the
 * cache. The Debian package of Varnish is unpacked if missing.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster, post } from '../cluster.ts';
import { type StartedProcess, startProgram } from '../processes.ts';
import { unpackDebianPackage } from './money/debian.ts';
import { allocatePortNumbers } from './money/ports.ts';

const VARNISH_VERSION = '7.1.1-2+deb12u1';
const CREDIT_USD = 20;
const CONCURRENT_REQUESTS = 50;
/** Operations whose responses to anonymous callers anyone may store. */
const CACHEABLE = [
  'listModels',
  'getModel',
  'listEndpoints',
  'listEndpointsById',
  'listAudioModels',
  'listVoices',
  'listDataEndpoints',
  'listPaymentMethods',
  'getOpenApi',
  'getDocs',
];

const print = (line: string) => void process.stdout.write(`${line}\n`);

type Headers = Readonly<Record<string, string>>;

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: unknown }[];
}

interface Route {
  readonly id: string;
  /** The path, and the query if the operation requires one. */
  readonly target: string;
}

interface Reply {
  readonly status: number;
  readonly requestId: string;
  readonly text: string;
}

/** Starts Varnish on loopback. @returns its process and its URL */
async function startVarnish(gateway: string, workDir: string): Promise<readonly [StartedProcess, string]> {
  const { bin, env } = await unpackDebianPackage('varnish', VARNISH_VERSION);
  const { varnish } = await allocatePortNumbers('varnish');
  const program = path.join(bin, '../sbin/varnishd');
  const addresses = ['-a', `127.0.0.1:${varnish}`, '-b', new URL(gateway).host];
  // Without a jail it needs neither root nor a user of its own. Standard error is redirected to report that it is ready.
  const command = `exec "$0" -F -j none -n "$1" ${addresses.join(' ')} 2>&1`;
  const started = await startProgram(['sh', '-c', command, program, workDir], env, /Child launched OK|Child starts/);
  return [started, `http://127.0.0.1:${varnish}`];
}

/** Returns the headers of each credential of a customer. */
function createCredentials({ apiKey, creditId }: Customer): readonly Headers[] {
  return [
    { authorization: `Bearer ${apiKey}` },
    { 'x-api-key': apiKey },
    { 'api-key': apiKey },
    { 'x-credit-id': creditId },
    { 'x-api-key': apiKey, 'x-credit-id': creditId },
  ];
}

class Proof {
  readonly problems: string[] = [];
  requests = 0;
  private readonly seenIds = new Set<string>();

  constructor(
    private readonly cluster: ProofCluster,
    private readonly cache: string,
  ) {}

  private async get(target: string, headers: Headers = {}): Promise<Reply> {
    const response = await fetch(`${this.cache}${target}`, { headers });
    this.requests++;
    return {
      status: response.status,
      requestId: response.headers.get('x-request-id') ?? '',
      text: Buffer.from(await response.arrayBuffer()).toString(),
    };
  }

  /** Requests a private resource. Each response has an id of its own, so an id that was seen comes from the cache. */
  private async getPrivately(target: string, headers: Headers): Promise<Reply> {
    const reply = await this.get(target, headers);
    const name = Object.keys(headers).join(' and ') || 'no credential';
    if (reply.requestId === '') this.problems.push(`${target}, ${name}: the response has no id`);
    else if (this.seenIds.has(reply.requestId))
      this.problems.push(`${target}, ${name}: the response of another request`);
    this.seenIds.add(reply.requestId);
    return reply;
  }

  /** Requests a route for `owner`, and after each of these requests for everybody else. */
  async proveRoute(
    { id, target }: Route,
    ownerCredentials: readonly Headers[],
    otherCredentials: readonly Headers[],
  ): Promise<void> {
    let served = 0;
    for (const owner of ownerCredentials) {
      const { status } = await this.getPrivately(target, owner);
      if (status < 300) served++;
      for (const other of otherCredentials) await this.getPrivately(target, other);
    }
    // Otherwise the proof would be about errors only.
    if (served === 0) this.problems.push(`${target}: no credential of its owner is accepted (${id})`);
  }

  /** A cache may hold back requests until the first one for the same URL has a response. */
  async proveConcurrent(customers: readonly Customer[]): Promise<void> {
    const requests = Array.from({ length: CONCURRENT_REQUESTS }, async (_, i) => {
      const { apiKey, creditId } = customers[i % customers.length] as Customer;
      const { text } = await this.getPrivately('/keys?show_key=true', { 'x-credit-id': creditId });
      if (!text.includes(apiKey)) this.problems.push('a concurrent list of keys is not that of its account');
    });
    await Promise.all(requests);
  }

  /** A customer who waits for a payment must see it. */
  async proveStatusCurrent({ apiKey }: Customer): Promise<void> {
    const [api = ''] = this.cluster.gateways;
    const invoice = await post(`${api}/topup/create/btc-lightning`, { amount: 1, currency: 'USD' }, apiKey);
    const target = `/topup/status/${invoice.invoice_id}`;
    if (!(await this.get(target)).text.includes('"New"')) this.problems.push('an invoice is not new');
    await post(`${this.cluster.sandbox}/wallet/pay`, { invoice: invoice.lightning_invoice });
    const fetchDirectly = async () => (await fetch(`${api}${target}`)).text();
    while (!(await fetchDirectly()).includes('"Settled"')) await new Promise((resolve) => setTimeout(resolve, 20));
    if (!(await this.get(target)).text.includes('"Settled"')) this.problems.push('the cache hides a payment');
  }

  /** @returns whether the second of two anonymous requests was served by the cache */
  async proveCacheable({ id, target }: Route, customer: Customer): Promise<boolean> {
    const [first, second] = [await this.get(target), await this.get(target)];
    const isCached = first.status === 200 && first.requestId === second.requestId;
    if (!isCached) this.problems.push(`${target}: not cached, although it is the same for everyone (${id})`);
    for (const headers of createCredentials(customer)) {
      const { status, requestId } = await this.get(target, headers);
      if (status !== 200) this.problems.push(`${target}: status ${status} with a credential`);
      else if (isOptional(id) && requestId === first.requestId)
        this.problems.push(`${target}: a caller with a credential got the response to an anonymous caller`);
    }
    const invalid = await this.get(target, { 'x-api-key': 'sk-of-nobody' });
    if (isOptional(id) && invalid.status !== 401) this.problems.push(`${target}: an invalid key got ${invalid.status}`);
    return isCached;
  }
}

/** Whether an operation checks a credential that is sent, although it needs none. */
function isOptional(id: string): boolean {
  return ['listModels', 'getModel', 'listEndpoints', 'listEndpointsById'].includes(id);
}

/** Creates what the routes return. @returns by operation, the ids in its path; the signed URL of a file */
async function createContent(api: string, owner: Customer) {
  const send = (route: string, body: object) => post(`${api}${route}`, body, owner.apiKey);
  const keys = await fetch(`${api}/keys`, { headers: { 'x-credit-id': owner.creditId } });
  const { data } = (await keys.json()) as { readonly data: readonly { readonly _id: string }[] };
  const { id: response } = await send('/v1/responses', { model: 'openai/gpt-5-mini', input: 'Hello' });
  const { invoice_id: invoice } = await send('/topup/create/btc-lightning', { amount: 1, currency: 'USD' });
  const { id: video } = await send('/v1/videos', { model: 'kling/kling-2.5-turbo', prompt: 'A harbour' });
  const image = await send('/v1/images/generations', { model: 'openai/gpt-image-2', prompt: 'A harbour' });
  const { pathname, search } = new URL((image.data as readonly { readonly url: string }[])[0]?.url ?? '');
  const ids: Readonly<Record<string, string>> = {
    getKey: String(data[0]?._id),
    getResponse: String(response),
    listInputItems: String(response),
    getTopup: String(invoice),
    getCheckout: String(invoice),
    getVideo: String(video),
  };
  return { ids, file: `${pathname}${search}` };
}

/** Pays for an image without an account. @returns the header with the proof */
async function payChallenge(api: string, sandbox: string): Promise<Headers> {
  const image = { model: 'openai/gpt-image-2', prompt: 'A harbour' };
  const { challengeId, invoice } = await post(`${api}/v1/images/generations`, image);
  const { preimage } = await post(`${sandbox}/wallet/pay`, { invoice });
  return { authorization: `L402 ${challengeId}:${preimage}` };
}

/** Lists the GET routes of the API's document, in all spellings of their paths. */
async function listRoutes(api: string, { ids, file }: Awaited<ReturnType<typeof createContent>>): Promise<Route[]> {
  const document = await (await fetch(`${api}/openapi.json`)).json();
  const { paths } = document as { readonly paths: Readonly<Record<string, { readonly get?: Operation }>> };
  return Object.entries(paths).flatMap(([pattern, { get }]) => {
    if (!get) return [];
    const id = get.operationId.replace(/Alias\d*$/, '');
    if (id === 'getMedia') return [{ id, target: pattern.startsWith('/v1') ? file : file.replace('/v1', '') }];
    const examples = (get.parameters ?? []).filter(({ example }) => example !== undefined);
    const getExample = (name: string) => String(examples.find((parameter) => parameter.name === name)?.example);
    const target = pattern.replace(/\{(\w+)\}/g, (_, name) => ids[id] ?? getExample(name));
    const query = new URLSearchParams(id === 'listKeys' ? { show_key: 'true' } : {});
    for (const { name, in: location } of examples) if (location === 'query') query.set(name, getExample(name));
    return [{ id, target: query.size > 0 ? `${target}?${query}` : target }];
  });
}

async function prove(dataDir: string): Promise<boolean> {
  const cluster = await ProofCluster.startStandalone(dataDir, { CHALLENGES_PER_MINUTE: '100000' });
  await using resources = new AsyncDisposableStack();
  resources.defer(() => cluster.stop());
  const [api = ''] = cluster.gateways;
  const [varnish, cache] = await startVarnish(api, path.join(dataDir, 'varnish'));
  resources.defer(() => varnish.stop());
  const owner = await cluster.createCustomer(CREDIT_USD);
  const other = await cluster.createCustomer(CREDIT_USD);
  const history = { id: 'getHistory', target: `/queries/history?credit_id=${owner.creditId}` };
  const routes = [...(await listRoutes(api, await createContent(api, owner))), history];
  const proof = new Proof(cluster, cache);
  const ownerCredentials = [...createCredentials(owner), await payChallenge(api, cluster.sandbox)];
  const otherCredentials = [...createCredentials(other), {}, { 'x-api-key': 'sk-of-nobody' }];
  const [cacheable, privateRoutes] = [true, false].map((isCacheable) =>
    routes.filter(({ id }) => CACHEABLE.includes(id) === isCacheable),
  ) as [Route[], Route[]];
  for (const route of privateRoutes) await proof.proveRoute(route, ownerCredentials, otherCredentials);
  await proof.proveConcurrent([owner, other]);
  await proof.proveStatusCurrent(owner);
  print(`${privateRoutes.length} private GET routes: ${proof.requests} requests, ${proof.problems.length} problems`);
  let cached = 0;
  for (const route of cacheable) if (await proof.proveCacheable(route, other)) cached++;
  print(`${cacheable.length} routes with lists and pages: ${cached} served by the cache`);
  for (const [problem, times] of Map.groupBy(proof.problems, (problem) => problem))
    print(`PROBLEM ${times.length}× ${problem}`);
  return proof.problems.length === 0;
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'countinghouse-caching-'));
try {
  if (!(await prove(dataDir))) process.exitCode = 1;
} finally {
  await rm(dataDir, { recursive: true, force: true });
}
