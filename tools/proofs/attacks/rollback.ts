import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { root } from '../../processes.ts';
import type { Attack, Finding } from './attack.ts';

/** The commit that is rolled back to: the one before, unless the environment names another. */
const PREVIOUS_COMMIT = process.env.ROLLBACK_TO ?? 'HEAD~1';
const MODEL = 'openai/gpt-5-mini';
/** A type of fact that the program before does not know. */
const NEWER_EVENT_TYPE = 'KeyUpdated';
/** Its place in the table of types, as it is built. */
const NEWER_EVENT_PATTERN = /\n\s*KeyUpdated: \[\],/;
const ROLES = ['projector', 'sagas', 'gateway'] as const;
const run = promisify(execFile);

/**
 * A program, the one before it and the program again on one store: once one that is built without a type of fact that was
 * written meanwhile, and once the commit before, as it is.
 */
export const rollback: Attack = {
  name: 'rollback',
  description: 'back to a program that does not know a fact of one account, to the commit before, and forth again',
  async run(directory): Promise<Finding> {
    const olderBuild = await buildWithout(path.join(directory, 'unknowing'));
    const before = await buildCommit(PREVIOUS_COMMIT, path.join(directory, 'before'));
    const store = path.join(directory, 'store');
    await mkdir(store, { mode: 0o700 });
    const cluster = await ProofCluster.start(store, 1);
    const server = await startEmbeddedPostgres(store);
    try {
      const violations = [
        ...(await checkNewerEvent(cluster, olderBuild)),
        ...(before ? await checkBackAndForth(cluster, before) : []),
      ];
      const commit = before
        ? `commit before: ${PREVIOUS_COMMIT}`
        : 'without the commit before: it is not here, or does not build';
      return {
        hasPassed: violations.length === 0,
        measurements: violations.length === 0 ? `all as promised; ${commit}` : violations.join('; '),
      };
    } finally {
      await cluster.stop();
      await server.close();
    }
  },
};

/** What is asked, and whether it came out as it must. */
type Expected = Readonly<Record<string, () => Promise<boolean>>>;

/** The program before does not know a fact of one account. @returns what was not as promised */
async function checkNewerEvent(cluster: ProofCluster, olderBuild: string): Promise<readonly string[]> {
  const [changed, other] = [await cluster.createCustomer(1), await cluster.createCustomer(1)];
  for (const customer of [changed, other]) await sendChat(cluster, customer);
  await cluster.stopRole('projector'); // the fact comes behind what the read models show
  await renameKey(cluster, changed);
  await switchBuild(olderBuild, cluster);
  const gateway = cluster.processes.get('gateway 1');
  const rolledBack = await listUnmetExpectations('rolled back', {
    'a chat of the account is 503': async () => (await sendChat(cluster, changed)) === 503,
    'its balance is 503': async () => (await fetchBalance(cluster, changed)).status === 503,
    'another account is served': async () => (await sendChat(cluster, other)) === 200,
    'its balance is shown up to date': async () => {
      const { status, headers } = await fetchBalance(cluster, other);
      return status === 200 && !headers.has('x-books-behind');
    },
    'a new account is credited and served': async () =>
      (await sendChat(cluster, await cluster.createCustomer(1))) === 200,
    'the gateway is ready': async () => (await fetch(`${cluster.gateways[0]}/health/ready`)).status === 200,
    'there is an alarm': async () => gateway?.outputChunks.join('').includes('cannot be used') === true,
    'verify does not say drift 0, and names the fact': async () => {
      const { code, output } = await cluster.runLedger('verify');
      return (
        code === 1 && !output.includes('drift 0\n') && output.includes(`is a ${NEWER_EVENT_TYPE} that this program`)
      );
    },
  });
  await switchBuild(root, cluster);
  return [
    ...rolledBack,
    ...(await listUnmetExpectations('forth again', {
      'the account is served': async () => (await sendChat(cluster, changed)) === 200,
      'its balance is shown': async () => (await fetchBalance(cluster, changed)).status === 200,
      'drift is 0': async () => (await cluster.runLedger('verify')).output.endsWith('drift 0\n'),
    })),
  ];
}

/** The commit before takes over and hands back, with requests of the same account under each. @returns what was not as promised */
async function checkBackAndForth(cluster: ProofCluster, before: string): Promise<readonly string[]> {
  const customer = await cluster.createCustomer(1);
  const violations: string[] = [];
  for (const [name, build] of [
    ['the commit before', before],
    ['this one again', root],
    ['the commit before again', before],
    ['this one at the end', root],
  ] as const) {
    await switchBuild(build, cluster);
    const expected: Expected = {
      'the account is served': async () => (await sendChat(cluster, customer)) === 200,
      'its balance is shown': async () => (await fetchBalance(cluster, customer)).status === 200,
      'drift is 0': async () => (await cluster.runLedger('verify')).output.endsWith('drift 0\n'),
    };
    violations.push(...(await listUnmetExpectations(name, expected)));
  }
  return violations;
}

async function listUnmetExpectations(when: string, expected: Expected): Promise<readonly string[]> {
  const violations: string[] = [];
  for (const [what, isSo] of Object.entries(expected))
    if (!(await isSo())) violations.push(`${when}: not so that ${what}`);
  return violations;
}

async function switchBuild(build: string, cluster: ProofCluster): Promise<void> {
  for (const role of ROLES.toReversed()) await cluster.stopRole(role === 'gateway' ? 'gateway 1' : role);
  cluster.useBuild(build);
  for (const role of ROLES) await cluster.startRole(role, role === 'gateway' ? 'gateway 1' : role);
}

async function sendChat({ gateways: [api] }: ProofCluster, { apiKey }: Customer): Promise<number> {
  const response = await fetch(`${api}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  await response.arrayBuffer();
  return response.status;
}

async function fetchBalance({ gateways: [api] }: ProofCluster, { apiKey }: Customer): Promise<Response> {
  return fetch(`${api}/credits/balance`, { method: 'POST', headers: { authorization: `Bearer ${apiKey}` } });
}

/** Leaves a fact of the newer type. */
async function renameKey(cluster: ProofCluster, customer: Customer): Promise<void> {
  const createdKey = await cluster.createKey(customer, { name: 'second' });
  await fetch(`${cluster.gateways[0]}/keys/${createdKey.id}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-credit-id': customer.creditId },
    body: JSON.stringify({ name: 'renamed' }),
  });
}

/** This build, but that it does not know a type of fact. */
async function buildWithout(directory: string): Promise<string> {
  await mkdir(directory);
  for (const name of await readdir(root)) {
    if (name !== 'dist' && !name.startsWith('.')) await symlink(path.join(root, name), path.join(directory, name));
  }
  await cp(path.join(root, 'dist'), path.join(directory, 'dist'), { recursive: true });
  const file = path.join(directory, 'dist/libs/domain/src/upcasters/index.js');
  const code = await readFile(file, 'utf8');
  if (!NEWER_EVENT_PATTERN.test(code)) throw new Error(`the build does not list ${NEWER_EVENT_TYPE} as it did`);
  await writeFile(file, code.replace(NEWER_EVENT_PATTERN, ''));
  return directory;
}

/** Another commit, built with the packages of this one; undefined where that cannot be done. */
async function buildCommit(commit: string, directory: string): Promise<string | undefined> {
  await mkdir(directory);
  try {
    const archive = path.join(directory, 'source.tar');
    await run('git', ['archive', '--output', archive, commit], { cwd: root });
    await run('tar', ['-xf', archive], { cwd: directory });
    await symlink(path.join(root, 'node_modules'), path.join(directory, 'node_modules'));
    await run(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], { cwd: directory });
    return directory;
  } catch {
    return undefined;
  }
}
