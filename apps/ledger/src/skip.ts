import { hostname, userInfo } from 'node:os';
import { type Foundation, StartError } from '#foundation';
import { openPool } from '#postgres';
import { listBlockedProjections, skipEvent } from '#projections';

interface SkipParams {
  readonly readModel: string;
  readonly position: string;
  readonly reason: string;
}

/**
 * Lets a read model go on behind the fact that it stands before, and notes who said so, when and why. Rows are then not
 * what the facts say, so `verify` names the fact until a rebuild has applied it.
 * @throws StartError when the read model does not stand before that fact
 */
export async function skipBlockingEvent(
  { databaseUrl, store }: Foundation,
  { readModel: projection, position: positionText, reason }: SkipParams,
  print: (line: string) => void,
): Promise<void> {
  const pool = openPool({ connectionString: databaseUrl, name: 'ledger', max: 1 });
  pool.on('error', () => {}); // the query in progress fails with it
  try {
    const blockedProjection = (await listBlockedProjections(pool)).find((blocked) => blocked.projection === projection);
    if (!blockedProjection) throw new StartError(`${projection} does not stand before any fact.`);
    if (String(blockedProjection.position) !== positionText)
      throw new StartError(
        `${projection} stands before the fact at position ${blockedProjection.position}: ${blockedProjection.reason}`,
      );
    const event = await loadEvent(blockedProjection.position, store);
    const by = `${userInfo().username}@${hostname()}`;
    await skipEvent(pool, { projection, position: blockedProjection.position, by, reason }, event);
    print(`${projection} skips the fact at position ${positionText}, a ${event.type} of ${event.stream}`);
    print(`Once it can be applied, npm run rebuild -- ${projection} applies it`);
  } finally {
    await pool.end();
  }
}

async function loadEvent(position: bigint, { rawReader }: Foundation['store']) {
  for await (const { events } of rawReader.readAll(position - 1n)) {
    const [event] = events;
    if (event?.position === position) return event;
    if (event) break;
  }
  throw new StartError(`There is no fact at position ${position}.`);
}
