/**
 * `npm run prove:pages`: a web page in a browser on the same host cannot spend money through the private proxy. In
 * Chromium, pages of another site, of another port, and of a name that is rebound to the proxy (DNS rebinding)
 * send the requests of pages/attacks.ts, from images to preflighted requests. All attacks run with the headers of
 * Chromium, and also without the headers in which newer browsers report the origin of a request. No request reaches the
 * gateway's paid route. The same pages spend money through an unprotected proxy, and the user's own client spends money
 * through the private proxy. Chromium and its driver are installed for the proof.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Customer, ProofCluster } from '../cluster.ts';
import { startApp } from '../processes.ts';
import { DRIVER, installChromium } from './clients/chromium.ts';
import { install } from './clients/install.ts';
import { getPagePath, startAttacker } from './pages/attacker.ts';
import { ATTACKS } from './pages/attacks.ts';
import { type Browser, launchBrowser } from './pages/browser.ts';
import { type PortRelay, startRelay } from './pages/relay.ts';
import { startWeakProxy } from './pages/weak-proxy.ts';
import { type Recorder, startRecorder } from './private/recorder.ts';

/** A host name of the attacker. */
const ATTACKER_HOST = 'evil.test';
/** The address to which the host name leads before it is rebound: another loopback address of this host. */
const ATTACKER_ADDRESS = '127.0.0.2';
const LOADED_WITHIN_MS = 5_000;
/** Maximum time until the first request arrives. */
const ARRIVES_WITHIN_MS = 2_500;
/** The idle time after which no more requests are expected. */
const IDLE_MS = 80;
const POLL_INTERVAL_MS = 10;
const CREDIT_USD = 5;

/** Prefixes of the headers that older browsers do not send. */
const BROWSERS: Readonly<Record<string, readonly string[]>> = {
  'all headers of Chromium': [],
  'without Sec-Fetch-*': ['sec-fetch-'],
  'without Sec-Fetch-* and Origin': ['sec-fetch-', 'origin', 'referer'],
};

const print = (line: string) => void process.stdout.write(`${line}\n`);
const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let failed = 0;
function check(holds: boolean, line: string): void {
  print(`${holds ? 'passes' : 'FAILS '} ${line}`);
  if (!holds) failed++;
}

interface Scene {
  readonly packages: string;
  readonly directory: string;
  readonly gateway: Recorder;
}

interface AttackOutcome {
  /** Requests at the proxy with the status of their response, by attack. */
  readonly responses: ReadonlyMap<string, readonly string[]>;
  /** Attacks that caused a paid request at the gateway. */
  readonly paid: readonly string[];
}

/** Runs all attacks from all origins against the port of the relay. */
async function runAttacks(scene: Scene, relay: PortRelay): Promise<AttackOutcome> {
  const profile = await mkdtemp(path.join(scene.directory, 'profile-'));
  const responses = new Map<string, string[]>();
  const paid: string[] = [];
  await cachePages(scene, profile, relay.port);
  const attacker = await startAttacker('127.0.0.1', 0);
  const browser = await launchBrowser(scene.packages, profile, `MAP ${ATTACKER_HOST} 127.0.0.1`);
  try {
    const attackerPort = getPort(attacker);
    const target = encodeURIComponent(`http://127.0.0.1:${relay.port}`);
    for (const name of Object.keys(ATTACKS)) {
      const pageUrls = {
        'another site': `http://${ATTACKER_HOST}:${attackerPort}${getPagePath(name)}?target=${target}`,
        'another port': `http://127.0.0.1:${attackerPort}${getPagePath(name)}?target=${target}`,
        'a rebound name': `http://${ATTACKER_HOST}:${relay.port}${getPagePath(name)}`,
      };
      for (const [origin, url] of Object.entries(pageUrls)) {
        const before = (await listPaidRequests(scene.gateway)).length;
        await visit(browser, url, relay);
        const received = relay.takeReceived();
        responses.set(name, [...(responses.get(name) ?? []), ...received]);
        // After rebinding, the name leads to the relay. The page must come from the browser's cache.
        if (received.some((line) => line.includes('/pages/'))) throw new Error(`the page of ${name} was not cached`);
        if ((await listPaidRequests(scene.gateway)).length > before) paid.push(`${name}, from ${origin}`);
      }
    }
  } finally {
    await browser.close();
    attacker.close();
    attacker.closeAllConnections();
  }
  return { responses, paid };
}

/** Loads all pages, under the port of the relay, into the browser's cache. The name still leads to the attacker. */
async function cachePages({ packages }: Scene, profile: string, port: number): Promise<void> {
  const attacker = await startAttacker(ATTACKER_ADDRESS, port);
  const browser = await launchBrowser(packages, profile, `MAP ${ATTACKER_HOST} ${ATTACKER_ADDRESS}`);
  for (const name of Object.keys(ATTACKS)) {
    const page = await browser.newPage();
    await page
      .goto(`http://${ATTACKER_HOST}:${port}${getPagePath(name)}`, { waitUntil: 'load', timeout: LOADED_WITHIN_MS })
      .catch(() => undefined); // the visits show whether it was cached
    await page.close();
  }
  await browser.close();
  attacker.close();
  attacker.closeAllConnections();
}

async function visit(browser: Browser, url: string, relay: PortRelay): Promise<void> {
  const page = await browser.newPage();
  const before = relay.arrivedCount;
  // A page that immediately navigates to another URL is never loaded.
  await page.goto(url, { waitUntil: 'load', timeout: LOADED_WITHIN_MS }).catch(() => undefined);
  const deadline = performance.now() + ARRIVES_WITHIN_MS;
  while (relay.arrivedCount === before && performance.now() < deadline) await sleep(POLL_INTERVAL_MS);
  for (let last = -1; last !== relay.arrivedCount || relay.pendingCount > 0; await sleep(IDLE_MS))
    last = relay.arrivedCount;
  for (const openPage of browser.pages()) if (browser.pages().length > 1) await openPage.close();
}

async function listPaidRequests(gateway: Recorder): Promise<readonly string[]> {
  return (await gateway.readRequests()).filter((request) => request.startsWith('POST '));
}

function getPort(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** Shows that the attacks are effective: each of them causes a paid request through an unprotected proxy. */
async function proveCarelessProxy(scene: Scene, { apiKey }: Customer): Promise<void> {
  const proxy = await startWeakProxy(scene.gateway.url, apiKey);
  const relay = await startRelay(getPort(proxy), []);
  try {
    const { paid } = await runAttacks(scene, relay);
    const harmless = Object.keys(ATTACKS).filter(
      (name) => !paid.some((paidAttack) => paidAttack.startsWith(`${name}, from `)),
    );
    const rebound = paid.filter((paidAttack) => paidAttack.endsWith('a rebound name')).length;
    check(
      harmless.length === 0,
      `an unprotected proxy: ${Object.keys(ATTACKS).length - harmless.length} of ${Object.keys(ATTACKS).length} attacks spend money, ${rebound} of them from a rebound name${harmless.length > 0 ? `; ineffective: ${harmless.join('; ')}` : ''}`,
    );
  } finally {
    relay.close();
    proxy.close();
    proxy.closeAllConnections();
  }
}

async function provePrivateProxy(scene: Scene, cluster: ProofCluster, customer: Customer): Promise<void> {
  const env = { PPQ_API_KEY: customer.apiKey, PPQ_API_BASE: scene.gateway.url, ALLOW_UNATTESTED: '1', PORT: '0' };
  const proxy = await startApp('private-proxy', env);
  const address = /http:\/\/127\.0\.0\.1:(\d+)/.exec(proxy.readyLine);
  const port = Number(address?.[1]);
  try {
    for (const [browser, omittedHeaders] of Object.entries(BROWSERS)) {
      const before = await cluster.fetchBalance(customer);
      const paidBefore = (await listPaidRequests(scene.gateway)).length;
      const relay = await startRelay(port, omittedHeaders);
      const { responses } = await runAttacks(scene, relay);
      relay.close();
      const neverArrived = Object.keys(ATTACKS).filter((name) => (responses.get(name) ?? []).length === 0);
      const sent = [...responses.values()].flat();
      const forwardedCount = (await listPaidRequests(scene.gateway)).length - paidBefore;
      const after = await cluster.fetchBalance(customer);
      const spent = before.balance - after.balance + after.held_usd;
      check(
        forwardedCount === 0 && spent === 0 && neverArrived.length === 0,
        `${browser}: ${Object.keys(ATTACKS).length} attacks from 3 origins, ${sent.length} requests at the proxy, ${forwardedCount} at the gateway's paid route, ${spent} USD spent${neverArrived.length > 0 ? `; never arrived: ${neverArrived.join('; ')}` : ''}`,
      );
      for (const line of tally(sent)) print(`         ${line}`);
    }
    await checkOwnSpending(scene, cluster, { customer, url: `http://127.0.0.1:${port}` });
  } finally {
    await proxy.stop();
  }
}

/** Counts requests by method and status. Requests without a 4xx status are also counted by path. */
function tally(sent: readonly string[]): readonly string[] {
  const counts = Map.groupBy(sent, (line) => (/ 4\d\d$/.test(line) ? line.replace(/ \S+ /, ' ') : line));
  return [...counts].map(([what, lines]) => `${lines.length} × ${what}`).sort();
}

/** Shows that the proxy works: a request of the user's own client does spend money. */
async function checkOwnSpending(
  { gateway }: Scene,
  cluster: ProofCluster,
  { customer, url }: { readonly customer: Customer; readonly url: string },
): Promise<void> {
  const before = await cluster.fetchBalance(customer);
  const paidBefore = (await listPaidRequests(gateway)).length;
  const body = JSON.stringify({ model: 'private/gpt-oss-120b', messages: [{ role: 'user', content: 'Spend this' }] });
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
  const text = await response.text();
  const deadline = performance.now() + ARRIVES_WITHIN_MS;
  let after = await cluster.fetchBalance(customer);
  while (after.balance === before.balance && performance.now() < deadline) {
    await sleep(POLL_INTERVAL_MS);
    after = await cluster.fetchBalance(customer);
  }
  const forwardedCount = (await listPaidRequests(gateway)).length - paidBefore;
  check(
    response.status === 200 && forwardedCount === 1 && after.balance < before.balance,
    `the user's own client: ${response.status}, ${forwardedCount} at the gateway's paid route, ${before.balance - after.balance} USD spent${response.status === 200 ? '' : `: ${text.slice(0, 300)}`}`,
  );
}

const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-pages-'));
try {
  await installChromium();
  const packages = await install({ npm: DRIVER });
  const cluster = await ProofCluster.startStandalone(path.join(directory, 'data'));
  const gateway = await startRecorder(
    Number(new URL(cluster.gateways[0] as string).port),
    path.join(directory, 'gateway'),
  );
  try {
    const customer = await cluster.createCustomer(CREDIT_USD);
    const scene = { packages, directory, gateway };
    await proveCarelessProxy(scene, customer);
    if (!process.argv.includes('--careless')) await provePrivateProxy(scene, cluster, customer);
    const { code, output } = await cluster.runLedger('verify');
    check(code === 0, output.trim().split('\n').at(-1) ?? '');
  } finally {
    await gateway.close();
    await cluster.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
