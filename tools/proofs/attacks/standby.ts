import { execFileSync } from 'node:child_process';
import { startEmbeddedPostgres } from '#foundation';
import { type Customer, ProofCluster } from '../../cluster.ts';
import { type StartedProcess, startProgram } from '../../processes.ts';
import { DatabaseLink } from '../database-link.ts';
import { createRoleChecks, isLeader, measureMs, type RoleCheck, waitUntil } from '../role-checks.ts';
import type { Attack, Finding } from './attack.ts';

const TAKEN_OVER_WITHIN_MS = 15_000;
/** Gives a reconnected process time for the work that it was about to do. */
const RECOVERY_DELAY_MS = 2_000;
const FUNDS_USD = 1;
/** A network namespace that acts as a second host (`man ip-netns`), and the link to it. */
const HOST = { namespace: 'countinghouse-host', link: 'chouse0', near: '10.213.77.1', far: '10.213.77.2' };

/** Runs a role whose connection to PostgreSQL can be cut without notice to either side. */
interface RemoteHost {
  start(role: string, databaseUrl: string): Promise<StartedProcess>;
  disconnect(): void;
  reconnect(): void;
  close(): void;
}

/** Leading projectors and sagas lose first their connections, then their host. */
export const standby: Attack = {
  name: 'standby',
  description: 'the leading projector and sagas lose their connections, then their host, without notice',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    const postgres = await startEmbeddedPostgres(directory);
    const distances = [
      ['connection', await createLinkedHost(cluster)] as const,
      ...(await createNamespaceHosts(cluster)),
    ];
    try {
      const customer = await cluster.createCustomer(FUNDS_USD);
      const takeoverTimes: string[] = [];
      let held = true;
      for (const [role, work] of Object.entries(createRoleChecks(cluster))) {
        for (const [what, distance] of distances) {
          const ms = await measureFailover(cluster, customer, { role, work, distance, databaseUrl: postgres.url });
          held &&= ms <= TAKEN_OVER_WITHIN_MS;
          takeoverTimes.push(`${role} without its ${what} ${(ms / 1000).toFixed(1)} s`);
        }
      }
      const { output } = await cluster.runLedger('verify');
      const skipped = distances.length === 1 ? '; network namespaces are unavailable, so no host was lost' : '';
      const drift = output.trim().split('\n').at(-1);
      return {
        hasPassed: held && drift === 'drift 0',
        measurements: `taken over: ${takeoverTimes.join(', ')}; ${drift}${skipped}`,
      };
    } finally {
      for (const [, distance] of distances) distance.close();
      await cluster.stop();
      await postgres.close();
    }
  },
};

interface FailoverParams {
  readonly role: string;
  readonly work: RoleCheck;
  readonly distance: RemoteHost;
  readonly databaseUrl: string;
}

/** @returns milliseconds from the disconnection of the leader until the check of the role succeeds */
async function measureFailover(
  cluster: ProofCluster,
  customer: Customer,
  { role, work, distance, databaseUrl }: FailoverParams,
): Promise<number> {
  const far = await distance.start(role, databaseUrl);
  try {
    await cluster.stopRole(role);
    const { health } = JSON.parse(far.readyLine) as { health: string };
    await waitUntil(() => isLeader(health));
    await cluster.startRole(role); // on standby
    distance.disconnect();
    const downtimeMs = await measureMs(work(customer));
    distance.reconnect();
    await new Promise((resolve) => setTimeout(resolve, RECOVERY_DELAY_MS));
    await work(customer);
    return downtimeMs;
  } finally {
    await far.kill();
  }
}

/** A host whose link to the database can be cut: data then arrives at neither end, and neither end is notified. */
async function createLinkedHost(cluster: ProofCluster): Promise<RemoteHost> {
  const networkLink = new DatabaseLink();
  return {
    start: async (role, databaseUrl) => {
      const url = await networkLink.openProxy(databaseUrl, '127.0.0.1');
      return startRemote([], role, { ...cluster.environment, DATABASE_URL: url, HOST: '127.0.0.1' });
    },
    disconnect: () => networkLink.disconnect(),
    reconnect: () => networkLink.reconnect(),
    close: () => networkLink.close(),
  };
}

/** Creates a separate host whose network can go down. @returns an empty array if its namespace cannot be set up */
async function createNamespaceHosts(cluster: ProofCluster): Promise<readonly (readonly [string, RemoteHost])[]> {
  const { namespace, link, near, far } = HOST;
  const ip = (command: string) => execFileSync('ip', command.split(' '), { stdio: 'pipe' });
  const inside = ['ip', 'netns', 'exec', namespace];
  try {
    ip(`netns add ${namespace}`);
    ip(`link add ${link} type veth peer name ${link}far`);
    ip(`link set ${link}far netns ${namespace}`);
    ip(`addr add ${near}/30 dev ${link}`);
    ip(`link set ${link} up`);
    for (const command of [`addr add ${far}/30 dev ${link}far`, `link set ${link}far up`, 'link set lo up'])
      ip(`-n ${namespace} ${command}`);
  } catch {
    return []; // no right to create network namespaces
  }
  const networkLink = new DatabaseLink();
  const distance = {
    start: async (role: string, databaseUrl: string) => {
      const url = await networkLink.openProxy(databaseUrl, near);
      return startRemote(inside, role, { ...cluster.environment, DATABASE_URL: url, HOST: far });
    },
    disconnect: () => void ip(`link set ${link} down`),
    reconnect: () => void ip(`link set ${link} up`),
    close: () => {
      networkLink.close();
      ip(`netns delete ${namespace}`);
    },
  };
  return [['host', distance]];
}

function startRemote(
  before: readonly string[],
  role: string,
  env: Readonly<Record<string, string>>,
): Promise<StartedProcess> {
  const command = [...before, process.execPath, `dist/apps/${role}/src/main.js`];
  return startProgram(command, { LOG_LEVEL: 'info', ...env, HEALTH_PORT: '0' }, /"msg":"ready"/);
}
