import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startEmbeddedPostgres } from '#foundation';
import { buildCommit } from '../../builds.ts';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { root } from '../../processes.ts';
import type { Attack, Finding } from './attack.ts';

/** The commit to roll back to. */
const PREVIOUS_COMMIT = process.env.ROLLBACK_TO ?? 'HEAD~1';
const MODEL = 'openai/gpt-5-mini';
/** The event type that the older build does not know. */
const NEWER_EVENT_TYPE = 'KeyUpdated';
/** The entry of that type in the compiled list of event types. */
const NEWER_EVENT_PATTERN = /\n\s*KeyUpdated: \[\],/;
const ROLES = ['projector', 'sagas', 'gateway'] as const;

/**
 * Switches one store from this build to an older build and back. The older build is first a copy of this build that
 * does not know the type of a stored event, then the previous commit, if that can be built.
 */
export const rollback: Attack = {
  name: 'rollback',
  description:
    'back to a build that does not know an event of one account, back to the previous commit, and forward again',
  async run(directory): Promise<Finding> {
    const olderBuild = await buildWithout(path.join(directory, 'unknowing'));
    const before = path.join(directory, 'before');
    const isBuilt = await buildCommit(PREVIOUS_COMMIT, before).then(
      () => true,
      () => false, // reported below
    );
    const store = path.join(directory, 'store');
    await mkdir(store, { mode: 0o700 });
    const cluster = await ProofCluster.start(store, 1);
    const server = await startEmbeddedPostgres(store);
    try {
      const violations = [
        ...(await checkNewerEvent(cluster, olderBuild)),
        ...(isBuilt ? await checkBackAndForth(cluster, before) : []),
      ];
      const commit = isBuilt
        ? `previous commit: ${PREVIOUS_COMMIT}`
        : 'without the previous commit, which is not in this repository or does not build';
      return {
        hasPassed: violations.length === 0,
        measurements: violations.length === 0 ? `all expectations are met; ${commit}` : violations.join('; '),
      };
    } finally {
      await cluster.stop();
      await server.close();
    }
  },
};

/** What must be true, with the function that checks it. */
type Expected = Readonly<Record<string, () => Promise<boolean>>>;

/**
 * Rolls back to a build that does not know an event of one account, then forward again.
 * @returns the expectations that were not met
 */
async function checkNewerEvent(cluster: ProofCluster, olderBuild: string): Promise<readonly string[]> {
  const [changed, other] = [await cluster.createCustomer(1), await cluster.createCustomer(1)];
  for (const customer of [changed, other]) await sendChat(cluster, customer);
  await cluster.stopRole('projector'); // so that the read models do not include the event before the rollback
  await renameKey(cluster, changed);
  await switchBuild(olderBuild, cluster);
  const gateway = cluster.processes.get('gateway 1');
  const rolledBack = await listUnmetExpectations('rolled back', {
    'a chat of the account gets 503': async () => (await sendChat(cluster, changed)) === 503,
    'the balance of the account gets 503': async () => (await fetchBalance(cluster, changed)).status === 503,
    'another account is served': async () => (await sendChat(cluster, other)) === 200,
    'the balance of the other account is up to date': async () => {
      const { status, headers } = await fetchBalance(cluster, other);
      return status === 200 && !headers.has('x-books-behind');
    },
    'a new account is credited and served': async () =>
      (await sendChat(cluster, await cluster.createCustomer(1))) === 200,
    'the gateway is ready': async () => (await fetch(`${cluster.gateways[0]}/health/ready`)).status === 200,
    'the gateway logs an error': async () => gateway?.outputChunks.join('').includes('cannot be used') === true,
    'verify does not report drift 0, and names the event': async () => {
      const { code, output } = await cluster.runLedger('verify');
      return (
        code === 1 && !output.includes('drift 0\n') && output.includes(`is a ${NEWER_EVENT_TYPE}, which this build`)
      );
    },
  });
  await switchBuild(root, cluster);
  return [
    ...rolledBack,
    ...(await listUnmetExpectations('forward again', {
      'the account is served': async () => (await sendChat(cluster, changed)) === 200,
      'the balance of the account is available': async () => (await fetchBalance(cluster, changed)).status === 200,
      'drift is 0': async () => (await cluster.runLedger('verify')).output.endsWith('drift 0\n'),
    })),
  ];
}

/**
 * Switches between the previous commit and this build, with requests of the same account under each.
 * @returns the expectations that were not met
 */
async function checkBackAndForth(cluster: ProofCluster, before: string): Promise<readonly string[]> {
  const customer = await cluster.createCustomer(1);
  const violations: string[] = [];
  for (const [name, build] of [
    ['the previous commit', before],
    ['this build again', root],
    ['the previous commit again', before],
    ['this build at the end', root],
  ] as const) {
    await switchBuild(build, cluster);
    const expected: Expected = {
      'the account is served': async () => (await sendChat(cluster, customer)) === 200,
      'the balance of the account is available': async () => (await fetchBalance(cluster, customer)).status === 200,
      'drift is 0': async () => (await cluster.runLedger('verify')).output.endsWith('drift 0\n'),
    };
    violations.push(...(await listUnmetExpectations(name, expected)));
  }
  return violations;
}

async function listUnmetExpectations(when: string, expected: Expected): Promise<readonly string[]> {
  const violations: string[] = [];
  for (const [what, isSo] of Object.entries(expected))
    if (!(await isSo())) violations.push(`${when}: not true that ${what}`);
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

/** Appends an event of the newer type to an account. */
async function renameKey(cluster: ProofCluster, customer: Customer): Promise<void> {
  const createdKey = await cluster.createKey(customer, { name: 'second' });
  await fetch(`${cluster.gateways[0]}/keys/${createdKey.id}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', 'x-credit-id': customer.creditId },
    body: JSON.stringify({ name: 'renamed' }),
  });
}

/** Copies this build without the newer event type. @returns the directory of the copy */
async function buildWithout(directory: string): Promise<string> {
  await mkdir(directory);
  for (const name of await readdir(root)) {
    if (name !== 'dist' && !name.startsWith('.')) await symlink(path.join(root, name), path.join(directory, name));
  }
  await cp(path.join(root, 'dist'), path.join(directory, 'dist'), { recursive: true });
  const file = path.join(directory, 'dist/libs/domain/src/upcasters/index.js');
  const code = await readFile(file, 'utf8');
  if (!NEWER_EVENT_PATTERN.test(code)) throw new Error(`the compiled event types do not list ${NEWER_EVENT_TYPE}`);
  await writeFile(file, code.replace(NEWER_EVENT_PATTERN, ''));
  return directory;
}
