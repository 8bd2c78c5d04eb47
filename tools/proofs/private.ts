/**
 * `npm run prove:private [-- REQUESTS]`: only the client and the enclave know the prompts and completions of a private
 * model. The proof sends at least 1,000 requests with unique phrases, in the protocols of OpenAI and Anthropic. They
 * include tools, errors, enclave faults, disconnecting clients, key changes, and kills of gateways and proxies. Then
 * these phrases are searched for, in many encodings: in network traffic, the gateways' memory and heaps, all logs, the
 * database, and the output of the ledger. As a test of the search, phrases of ordinary requests are found.
 * Every complete response is charged once, apart from a few whose gateway was killed before it charged them. Before any
 * fault the ledger agrees with the providers' bill, and at the end it verifies with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { post } from '../cluster.ts';
import { countCharges } from './clients/charged.ts';
import { compareWithBill, fetchBill } from './private/ledger.ts';
import {
  AMID_KILLS_KINDS,
  AT_ONCE,
  FAULTY_KINDS,
  LEAKING_KINDS,
  type LoadKind,
  type LoadOutcome,
  listFailures,
  REGULAR_KINDS,
  runLoad,
  SLOW_KINDS,
} from './private/load.ts';
import { SeededPhrases } from './private/markers.ts';
import type { PrivateProbeResult } from './private/probes.ts';
import { Scene } from './private/scene.ts';
import {
  type SearchNeedles,
  type SearchResult,
  searchDataFiles,
  searchHeaps,
  searchMemory,
  searchStorage,
} from './private/search.ts';

const REQUESTS = Number(process.argv[2] ?? 1_000);
/** The shares of the kinds of requests. */
const SHARES = { regular: 0.55, faulty: 0.25, betrayed: 0.05, hard: 0.15 };
/** Exceeds the minimum interval (1 s) at which the gateway fetches the evidence of an enclave again. */
const ROTATION_INTERVAL_MS = 1_500;
const SLOW_REQUESTS = 16;
/** The time until each slow stream has sent its first chunk. */
const SLOW_FIRST_MS = 3_000;
const KILL_INTERVAL_MS = 1_200;
const KILLS = 4;
const MODEL = 'gpt-oss-120b';
/** The phrases of a request are in memory while its response is pending. */
const CONTROL_LATENCY_MS = 20_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const startedAt = performance.now();
const print = (line: string) => void process.stdout.write(`${line}\n`);
let failed = 0;
function check(holds: boolean, line: string): void {
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  print(`${holds ? 'passes' : 'FAILS '} ${String(seconds).padStart(4)} s  ${line}`);
  if (!holds) failed++;
}

class Proof {
  private readonly phrases = { prompts: new SeededPhrases(), completions: new SeededPhrases() };
  /** Phrases of requests with a fault that makes the enclave itself send them unencrypted. */
  private readonly leakedPhrases = { prompts: new SeededPhrases(), completions: new SeededPhrases() };
  private readonly controlPhrases = new SeededPhrases();
  private readonly searched: SearchResult[] = [];
  private readonly startedAt = Date.now();
  private readonly served: LoadOutcome[] = [];
  private readonly servedAmidKills: LoadOutcome[] = [];
  private rotations = 0;

  constructor(private readonly scene: Scene) {}

  async run(): Promise<void> {
    await this.sendOpenChats();
    await this.sendPrivateChats();
    await this.sendFaultyChats();
    await this.sendChatsAmidKills();
    await this.search();
    await this.checkLedger();
  }

  private get secrets(): SearchNeedles {
    return { prompts: this.phrases.prompts, completions: this.phrases.completions };
  }

  private get urls() {
    return () => this.scene.proxies.map(({ url }) => url);
  }

  /** Checks the search itself: phrases in an unencrypted chat and in the name of a key must be found. */
  private async sendOpenChats(): Promise<void> {
    const { cluster, customer, wires } = this.scene;
    await cluster.createKey(customer, { name: this.controlPhrases.createPhrase() });
    const content = `Remember ${this.controlPhrases.createPhrase()}. [[sandbox latency=${CONTROL_LATENCY_MS}]]`;
    const leaves = new AbortController();
    const sent = wires.gateways.map(
      ({ url }) =>
        fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${customer.apiKey}` },
          body: JSON.stringify({ model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }] }),
          signal: leaves.signal,
        }).catch(() => undefined), // aborted
    );
    await sleep(500);
    const needles = { control: this.controlPhrases };
    const results = [
      ...(await searchMemory(this.scene, needles, 'during an unencrypted chat')),
      ...(await searchHeaps(this.scene, needles, 'during an unencrypted chat')),
      ...(await searchStorage(this.scene, needles, this.startedAt)),
    ];
    leaves.abort();
    await Promise.all(sent);
    await this.scene.waitUntilSettled();
    const expectedLocations = [
      'memory',
      'heap',
      'traffic from proxies',
      'traffic from gateways to enclaves',
      'every row',
      'files of the data',
    ];
    for (const { location, bytes, finds } of results) {
      const forms = (finds.get('control') ?? []).map(({ form }) => form);
      if (expectedLocations.some((prefix) => location.startsWith(prefix)))
        check(
          forms.length > 0,
          `unencrypted phrases are found in ${location} (${formatMegabytes(bytes)}): ${forms.join(', ')}`,
        );
    }
  }

  /** Sends requests that must all be served, although the key of the enclave changes repeatedly. */
  private async sendPrivateChats(): Promise<void> {
    const before = (await fetchBill(this.scene.cluster.sandbox)).length;
    const loadRun = runLoad(REGULAR_KINDS, createLimit(SHARES.regular), this.phrases, this.urls);
    const rotating = setInterval(() => void this.rotate(), ROTATION_INTERVAL_MS);
    const fast = await loadRun;
    clearInterval(rotating);
    // Slow responses, so that many are in progress at the gateways while their memory is searched.
    let underWay = SLOW_REQUESTS;
    const slow = Array.from({ length: SLOW_REQUESTS }, (_, i) =>
      runLoad([SLOW_KINDS[i % SLOW_KINDS.length] as LoadKind], (sent) => sent < 1, this.phrases, this.urls).finally(
        () => underWay--,
      ),
    );
    await sleep(SLOW_FIRST_MS);
    const searched = await searchMemory(this.scene, this.secrets, 'during responses');
    check(underWay > 0, `${underWay} of ${SLOW_REQUESTS} responses were still in progress after the search of memory`);
    this.searched.push(...searched);
    const outcomes = [...fast, ...(await Promise.all(slow)).flat()];
    this.served.push(...outcomes);
    const failures = listFailures(outcomes);
    const settled = await this.scene.waitUntilSettled();
    const results = outcomes.flatMap((outcome) => outcome.results);
    check(
      failures.length === 0 && settled,
      `${outcomes.length} requests while the key changed ${this.rotations} times: ${results.filter(({ hasExpectedText }) => hasExpectedText).length} of ${results.length} responses are complete with the expected text${formatList(failures)}`,
    );
    const {
      settled: charged,
      lines,
      ledgerUsd,
      billUsd,
      ...rest
    } = await compareWithBill(this.scene.store, this.scene.cluster.sandbox);
    const different = Object.values(rest).flat();
    check(
      different.length === 0 && lines === before + results.length && ledgerUsd === billUsd,
      `${charged} charges for ${lines} lines of the providers' bill: ${ledgerUsd} USD in the ledger, ${billUsd} USD billed${formatList(different)}`,
    );
  }

  private async rotate(): Promise<void> {
    this.rotations++;
    await post(`${this.scene.cluster.sandbox}/enclaves/${MODEL}/rotate`);
  }

  private async sendFaultyChats(): Promise<void> {
    const outcomes = [
      ...(await runLoad(FAULTY_KINDS, createLimit(SHARES.faulty), this.phrases, this.urls)),
      ...(await runLoad(LEAKING_KINDS, createLimit(SHARES.betrayed), this.leakedPhrases, this.urls)),
    ];
    this.served.push(...outcomes);
    const failures = listFailures(outcomes);
    const settled = await this.scene.waitUntilSettled();
    check(
      failures.length === 0 && settled,
      `${outcomes.length} requests with faults, rejections and disconnecting clients end as expected${formatList(failures)}`,
    );
    for (const line of formatOutcomes(outcomes)) print(`         ${line}`);
  }

  private async sendChatsAmidKills(): Promise<void> {
    let isOver = false;
    const isMore = createLimit(SHARES.hard);
    const loadRun = runLoad(AMID_KILLS_KINDS, (sent) => isMore(sent) || !isOver, this.phrases, this.urls);
    for (let i = 0; i < KILLS; i++) {
      await sleep(KILL_INTERVAL_MS);
      await this.scene.killGateway(i % this.scene.wires.gateways.length);
      await sleep(KILL_INTERVAL_MS);
      await this.scene.killProxy(i % this.scene.proxies.length);
    }
    isOver = true;
    const outcomes = await loadRun;
    this.servedAmidKills.push(...outcomes);
    const results = outcomes.flatMap((outcome) => outcome.results);
    const failures = listFailures(outcomes);
    const settled = await this.scene.waitUntilSettled();
    const completeCount = results.filter(({ complete }) => complete).length;
    check(
      failures.length === 0 && settled && completeCount < results.length,
      `${outcomes.length} requests while ${KILLS} gateways and ${KILLS} proxies were killed: ${completeCount} of ${results.length} complete, no interrupted response appears complete, nothing is held${formatList(failures)}`,
    );
  }

  private async search(): Promise<void> {
    this.searched.push(
      ...(await searchMemory(this.scene, this.secrets, 'at the end')),
      ...(await searchHeaps(this.scene, this.secrets, 'at the end')),
      ...(await searchStorage(this.scene, this.all, this.startedAt)),
    );
    const phraseCounts = [this.phrases, this.leakedPhrases].flatMap(({ prompts, completions }) => [
      prompts.phraseCount,
      completions.phraseCount,
    ]);
    print(
      `       ${phraseCounts.reduce((sum, count) => sum + count, 0)} phrases, each in ${this.controlPhrases.formCount} forms:`,
    );
    this.report(this.searched);
  }

  /** Searches the data directory after all processes have ended. */
  async searchRemainingFiles(): Promise<void> {
    this.report([await searchDataFiles(this.scene, this.all, 'after all processes have ended')]);
  }

  private get all(): SearchNeedles {
    const { prompts, completions } = this.leakedPhrases;
    return { ...this.secrets, 'leaked prompts': prompts, 'leaked completions': completions };
  }

  private report(searched: readonly SearchResult[]): void {
    for (const { location, bytes, finds } of searched) {
      // Phrases that the enclave leaks are expected in its own traffic.
      const isUnexpected = (name: string) =>
        !(name.startsWith('leaked') && location === 'traffic from enclaves to gateways');
      const leaks = [...finds]
        .filter(([name, formFinds]) => formFinds.length > 0 && isUnexpected(name))
        .map(
          ([name, formFinds]) =>
            `${name} as ${formFinds.map(({ form, context }) => `${form} (${context})`).join(', ')}`,
        );
      check(
        leaks.length === 0,
        `no unexpected phrase is in ${location}, ${formatMegabytes(bytes)}${formatList(leaks)}`,
      );
    }
  }

  private async checkLedger(): Promise<void> {
    const { cluster, customer, store } = this.scene;
    const { twice, ledgerUsd, billUsd } = await compareWithBill(store, cluster.sandbox);
    const counts = await countCharges(cluster, customer);
    const isChargedOnce = ({ requestId = '' }: PrivateProbeResult) => counts.get(requestId) === 1;
    const selectComplete = (outcomes: readonly LoadOutcome[]) =>
      outcomes.flatMap(({ results }) => results).filter(({ complete, requestId }) => complete && requestId);
    const [undisturbed, killed] = [selectComplete(this.served), selectComplete(this.servedAmidKills)];
    const not = undisturbed.filter((result) => !isChargedOnce(result)).map(({ requestId }) => `${requestId}`);
    const often = [...counts].filter(([, times]) => times > 1);
    // Responses whose last chunk a gateway had forwarded before it was killed, and had not charged yet.
    const lost = killed.filter((result) => !isChargedOnce(result)).length;
    check(
      twice.length + often.length + not.length === 0 && lost <= KILLS * AT_ONCE && undisturbed.length > 0,
      `${undisturbed.length} complete responses are charged once each, and ${killed.length - lost} of ${killed.length} during kills; no request and no call of an enclave is charged twice${formatList(not)}`,
    );
    print(
      `               ${ledgerUsd} USD in the ledger, including costs that the operator absorbs, ${billUsd} USD billed`,
    );
    const { code, output } = await cluster.runLedger('verify');
    check(code === 0, output.trim().split('\n').at(-1) ?? '');
  }
}

function createLimit(share: number): (sent: number) => boolean {
  return (sent) => sent < REQUESTS * share;
}

function formatMegabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

const MAX_LISTED = 8;
function formatList(lines: readonly string[]): string {
  if (lines.length === 0) return '';
  const listedLines = lines.slice(0, MAX_LISTED).map((line) => `\n         ${line}`);
  return `; ${lines.length} exceptions:${listedLines.join('')}`;
}

/** Returns how requests of each kind ended, with their numbers. */
function formatOutcomes(outcomes: readonly LoadOutcome[]): readonly string[] {
  const describeOutcome = ({
    kind,
    results,
  }: {
    readonly kind: LoadKind;
    readonly results: LoadOutcome['results'];
  }) => {
    const last = results.at(-1);
    const ended = last?.complete ? 'complete' : last?.status === 200 ? 'interrupted' : `${last?.status || 'failed'}`;
    return `${kind.name.split(', ').slice(2).join(', ')}: ${ended}`;
  };
  return [...Map.groupBy(outcomes, describeOutcome)].map(([line, group]) => `${line} (${group.length})`).sort();
}

const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-private-'));
try {
  const scene = await Scene.open(directory);
  const proof = new Proof(scene);
  try {
    await proof.run();
  } finally {
    await scene.close();
  }
  await proof.searchRemainingFiles();
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
