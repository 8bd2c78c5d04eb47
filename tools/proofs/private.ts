/**
 * `npm run prove:private [-- REQUESTS]`: what is said to a private model is known to its enclave and to who asks, and to nobody
 * between. 1,000 requests of both faces, whole and streamed, with tools, errors, faults of the enclave, clients that leave,
 * keys that change, gateways and proxies that are killed, each with words that nobody said before. Then every one of these
 * words is looked for, in many forms: on the wires, in the gateways' memory and heaps, in all logs, in the database, its
 * files and its rows, and in what the ledger prints. What is said to an ordinary model is found. Every request is charged
 * once, the books are the enclaves' bill, and verify with a drift of 0.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { post } from '../cluster.ts';
import { chargesOf } from './clients/charged.ts';
import { billOf, compared } from './private/ledger.ts';
import {
  AT_ONCE,
  BETRAYING,
  FAULTY,
  HARD,
  type LoadKind,
  type LoadOutcome,
  load,
  PLAIN,
  SLOW,
  wrongIn,
} from './private/load.ts';
import { Planted } from './private/markers.ts';
import type { PrivateProbeResult } from './private/probes.ts';
import { Scene } from './private/scene.ts';
import {
  type Searched,
  type Sought,
  searchDataFiles,
  searchHeaps,
  searchMemory,
  searchStored,
} from './private/search.ts';

const REQUESTS = Number(process.argv[2] ?? 1_000);
/** How they are divided. */
const SHARES = { plain: 0.55, faulty: 0.25, betrayed: 0.05, hard: 0.15 };
/** Evidence that is a second old counts as new. */
const ROTATED_EVERY_MS = 1_500;
const SLOW_ONES = 16;
/** Until each has its first words. */
const SLOW_FIRST_MS = 3_000;
const KILLED_EVERY_MS = 1_200;
const KILLS = 4;
const MODEL = 'gpt-oss-120b';
/** While it is on its way its words are in memory. */
const CONTROL_LATENCY_MS = 20_000;

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const began = performance.now();
const print = (line: string) => void process.stdout.write(`${line}\n`);
let failed = 0;
function check(holds: boolean, line: string): void {
  const seconds = Math.round((performance.now() - began) / 1_000);
  print(`${holds ? 'holds ' : 'FAILS '} ${String(seconds).padStart(4)} s  ${line}`);
  if (!holds) failed++;
}

class Proof {
  private readonly words = { prompts: new Planted(), answers: new Planted() };
  /** Said in requests of which the enclave itself gives away what was said. */
  private readonly betrayed = { prompts: new Planted(), answers: new Planted() };
  private readonly control = new Planted();
  private readonly searched: Searched[] = [];
  private readonly began = Date.now();
  private readonly served: LoadOutcome[] = [];
  private readonly servedAmidKills: LoadOutcome[] = [];
  private rotations = 0;

  constructor(private readonly scene: Scene) {}

  async run(): Promise<void> {
    await this.sayOpenly();
    await this.sayInPrivate();
    await this.sayWhileAllGoesWrong();
    await this.killMeanwhile();
    await this.search();
    await this.judgeBooks();
  }

  private get secrets(): Sought {
    return { prompts: this.words.prompts, answers: this.words.answers };
  }

  private get urls() {
    return () => this.scene.proxies.map(({ url }) => url);
  }

  /** What is no secret must be found: where it is said in the clear, and where a key's name is kept. */
  private async sayOpenly(): Promise<void> {
    const { cluster, customer, wires } = this.scene;
    await cluster.newKey(customer, { name: this.control.word() });
    const content = `Remember ${this.control.word()}. [[sandbox latency=${CONTROL_LATENCY_MS}]]`;
    const leaves = new AbortController();
    const sent = wires.gateways.map(({ url }) =>
      fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${customer.apiKey}` },
        body: JSON.stringify({ model: 'openai/gpt-5-mini', messages: [{ role: 'user', content }] }),
        signal: leaves.signal,
      }).catch(() => undefined),
    );
    await sleep(500);
    const sought = { control: this.control };
    const found = [
      ...(await searchMemory(this.scene, sought, 'with an open chat')),
      ...(await searchHeaps(this.scene, sought, 'with an open chat')),
      ...(await searchStored(this.scene, sought, this.began)),
    ];
    leaves.abort();
    await Promise.all(sent);
    await this.scene.settled();
    const may = [
      'memory',
      'heap',
      'wire from proxies',
      'wire from gateways to enclaves',
      'every row',
      'files of the data',
    ];
    for (const { place, bytes, finds } of found) {
      const forms = (finds.get('control') ?? []).map(({ form }) => form);
      if (may.some((each) => place.startsWith(each)))
        check(forms.length > 0, `what is no secret is found in ${place} (${megabytes(bytes)}): ${forms.join(', ')}`);
    }
  }

  /** All of it is served, though the enclave's key changes again and again. */
  private async sayInPrivate(): Promise<void> {
    const before = (await billOf(this.scene.cluster.sandbox)).length;
    const under = load(PLAIN, upTo(SHARES.plain), this.words, this.urls);
    const rotating = setInterval(() => void this.rotate(), ROTATED_EVERY_MS);
    const fast = await under;
    clearInterval(rotating);
    // So that much is in the middle of the gateways while their memory is looked at.
    let underWay = SLOW_ONES;
    const slow = Array.from({ length: SLOW_ONES }, (_, i) =>
      load([SLOW[i % SLOW.length] as LoadKind], (sent) => sent < 1, this.words, this.urls).finally(() => underWay--),
    );
    await sleep(SLOW_FIRST_MS);
    const searched = await searchMemory(this.scene, this.secrets, 'amid answers');
    check(underWay > 0, `${underWay} of ${SLOW_ONES} answers were on their way while memory was searched`);
    this.searched.push(...searched);
    const outcomes = [...fast, ...(await Promise.all(slow)).flat()];
    this.served.push(...outcomes);
    const wrong = wrongIn(outcomes);
    const settled = await this.scene.settled();
    const answers = outcomes.flatMap((outcome) => outcome.answers);
    check(
      wrong.length === 0 && settled,
      `${outcomes.length} requests while the key changed ${this.rotations} times: ${answers.filter(({ understood }) => understood).length} answers of ${answers.length} are whole and as they were said${list(wrong)}`,
    );
    const {
      settled: charged,
      lines,
      booksUsd,
      billUsd,
      ...rest
    } = await compared(this.scene.store, this.scene.cluster.sandbox);
    const different = Object.values(rest).flat();
    check(
      different.length === 0 && lines === before + answers.length && booksUsd === billUsd,
      `${charged} charges for ${lines} lines of the enclave's bill: ${booksUsd} USD in the books, ${billUsd} USD billed${list(different)}`,
    );
  }

  private async rotate(): Promise<void> {
    this.rotations++;
    await post(`${this.scene.cluster.sandbox}/enclaves/${MODEL}/rotate`);
  }

  private async sayWhileAllGoesWrong(): Promise<void> {
    const outcomes = [
      ...(await load(FAULTY, upTo(SHARES.faulty), this.words, this.urls)),
      ...(await load(BETRAYING, upTo(SHARES.betrayed), this.betrayed, this.urls)),
    ];
    this.served.push(...outcomes);
    const wrong = wrongIn(outcomes);
    const settled = await this.scene.settled();
    check(
      wrong.length === 0 && settled,
      `${outcomes.length} requests with faults, refusals and clients that leave: each ends as it must${list(wrong)}`,
    );
    for (const line of statuses(outcomes)) print(`         ${line}`);
  }

  private async killMeanwhile(): Promise<void> {
    let isOver = false;
    const isMore = upTo(SHARES.hard);
    const under = load(HARD, (sent) => isMore(sent) || !isOver, this.words, this.urls);
    for (let i = 0; i < KILLS; i++) {
      await sleep(KILLED_EVERY_MS);
      await this.scene.killGateway(i % this.scene.wires.gateways.length);
      await sleep(KILLED_EVERY_MS);
      await this.scene.killProxy(i % this.scene.proxies.length);
    }
    isOver = true;
    const outcomes = await under;
    this.servedAmidKills.push(...outcomes);
    const answers = outcomes.flatMap((outcome) => outcome.answers);
    const wrong = wrongIn(outcomes);
    const settled = await this.scene.settled();
    const whole = answers.filter(({ complete }) => complete).length;
    check(
      wrong.length === 0 && settled && whole < answers.length,
      `${outcomes.length} requests while ${KILLS} gateways and ${KILLS} proxies were killed: ${whole} of ${answers.length} answered, none seems whole that is not, nothing is held${list(wrong)}`,
    );
  }

  private async search(): Promise<void> {
    this.searched.push(
      ...(await searchMemory(this.scene, this.secrets, 'at the end')),
      ...(await searchHeaps(this.scene, this.secrets, 'at the end')),
      ...(await searchStored(this.scene, this.all, this.began)),
    );
    const said = [this.words, this.betrayed].flatMap(({ prompts, answers }) => [prompts.said, answers.said]);
    print(`       ${said.reduce((sum, each) => sum + each, 0)} words, each in ${this.control.formCount} forms:`);
    this.report(this.searched);
  }

  /** After everything has ended. */
  async searchWhatIsLeft(): Promise<void> {
    this.report([await searchDataFiles(this.scene, this.all, 'when all has ended')]);
  }

  private get all(): Sought {
    const { prompts, answers } = this.betrayed;
    return { ...this.secrets, 'betrayed prompts': prompts, 'betrayed answers': answers };
  }

  private report(searched: readonly Searched[]): void {
    for (const { place, bytes, finds } of searched) {
      // What the enclave gives away is on its own wire.
      const isNews = (name: string) => !(name.startsWith('betrayed') && place === 'wire from enclaves to gateways');
      const found = [...finds]
        .filter(([name, each]) => each.length > 0 && isNews(name))
        .map(([name, each]) => `${name} as ${each.map(({ form, context }) => `${form} (${context})`).join(', ')}`);
      check(found.length === 0, `nothing in ${place}, ${megabytes(bytes)}${list(found)}`);
    }
  }

  private async judgeBooks(): Promise<void> {
    const { cluster, customer, store } = this.scene;
    const { twice, booksUsd, billUsd } = await compared(store, cluster.sandbox);
    const counts = await chargesOf(cluster, customer);
    const charged = ({ requestId = '' }: PrivateProbeResult) => counts.get(requestId) === 1;
    const whole = (outcomes: readonly LoadOutcome[]) =>
      outcomes.flatMap(({ answers }) => answers).filter(({ complete, requestId }) => complete && requestId);
    const [quiet, killed] = [whole(this.served), whole(this.servedAmidKills)];
    const not = quiet.filter((answer) => !charged(answer)).map(({ requestId }) => `${requestId}`);
    const often = [...counts].filter(([, times]) => times > 1);
    // Those of which a gateway had passed on the last word, and had not ended yet.
    const lost = killed.filter((answer) => !charged(answer)).length;
    check(
      twice.length + often.length + not.length === 0 && lost <= KILLS * AT_ONCE && quiet.length > 0,
      `${quiet.length} whole answers are charged once each, and ${killed.length - lost} of ${killed.length} amid kills; no request and no call of an enclave is charged twice${list(not)}`,
    );
    print(
      `               ${booksUsd} USD in the books, ${billUsd} USD billed, with what faults and kills cost the house`,
    );
    const { code, output } = await cluster.ledger('verify');
    check(code === 0, output.trim().split('\n').at(-1) ?? '');
  }
}

function upTo(share: number): (sent: number) => boolean {
  return (sent) => sent < REQUESTS * share;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

const MOST_LISTED = 8;
function list(lines: readonly string[]): string {
  if (lines.length === 0) return '';
  const shown = lines.slice(0, MOST_LISTED).map((line) => `\n         ${line}`);
  return `; ${lines.length} are not so:${shown.join('')}`;
}

/** How requests of each kind ended. */
function statuses(outcomes: readonly LoadOutcome[]): readonly string[] {
  const how = ({ kind, answers }: { readonly kind: LoadKind; readonly answers: LoadOutcome['answers'] }) => {
    const last = answers.at(-1);
    const ended = last?.complete ? 'whole' : last?.status === 200 ? 'broken off' : `${last?.status || 'no answer'}`;
    return `${kind.name.split(', ').slice(2).join(', ')}: ${ended}`;
  };
  return [...Map.groupBy(outcomes, how)].map(([line, each]) => `${line} (${each.length})`).sort();
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
  await proof.searchWhatIsLeft();
} finally {
  await rm(directory, { recursive: true, force: true });
}
process.exitCode = failed > 0 ? 1 : 0;
