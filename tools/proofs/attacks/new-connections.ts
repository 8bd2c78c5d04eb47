import { startEmbeddedPostgres } from '#foundation';
import { withClient } from '#postgres';
import { ProofCluster } from '../../cluster.ts';
import { measureMs, waitUntil } from '../role-checks.ts';
import type { Attack, Finding } from './attack.ts';

/** Maximum time until a process whose database rejects new connections is not ready. */
const NOT_READY_WITHIN_MS = 5_000;
const ROUNDS = 5;

/** The database rejects new connections, while open ones continue to work. */
export const newConnections: Attack = {
  name: 'new-connections',
  description: 'the database rejects new connections, and later accepts them again',
  async run(directory): Promise<Finding> {
    const cluster = await ProofCluster.start(directory, 1);
    const postgres = await startEmbeddedPostgres(directory);
    try {
      return await measureReadiness(cluster, postgres.url);
    } finally {
      await cluster.stop();
      await postgres.close();
    }
  },
};

async function measureReadiness(cluster: ProofCluster, databaseUrl: string): Promise<Finding> {
  const database = new URL(databaseUrl).pathname.slice(1);
  const admin = Object.assign(new URL(databaseUrl), { username: 'postgres', pathname: '/postgres' });
  const allowConnections = (allowed: boolean) =>
    withClient({ connectionString: admin.href, name: 'attack' }, (client) =>
      client.query(`alter database ${database} with allow_connections ${allowed}`),
    );
  const isReady = async () => (await fetch(`${cluster.gateways[0]}/health/ready`)).ok;
  const [rejected, accepted]: [number[], number[]] = [[], []];
  for (let i = 0; i < ROUNDS; i++) {
    await waitUntil(isReady);
    await allowConnections(false);
    rejected.push(await measureMs(waitUntil(async () => !(await isReady()))));
    await allowConnections(true);
    accepted.push(await measureMs(waitUntil(isReady)));
  }
  const formatMaximum = (times: readonly number[]) => `${(Math.max(...times) / 1_000).toFixed(1)} s`;
  return {
    hasPassed: rejected.every((ms) => ms <= NOT_READY_WITHIN_MS),
    measurements: `${ROUNDS} times: not ready after at most ${formatMaximum(rejected)}, ready again after at most ${formatMaximum(accepted)}`,
  };
}
