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
 * Approves skipping the event that blocks a read model, and records who approved it, when and why. The rows then lack
 * the event, so `verify` reports it until a rebuild has applied it.
 * @throws StartError if no event at this position exists, or it does not block the read model
 */
export async function skipBlockingEvent(
  { databaseUrl, store }: Pick<Foundation, 'databaseUrl' | 'store'>,
  { readModel: projection, position: positionText, reason }: SkipParams,
  print: (line: string) => void,
): Promise<void> {
  const pool = openPool({ connectionString: databaseUrl, name: 'ledger', max: 1 });
  pool.on('error', () => {}); // an idle connection was lost; the next query opens another one
  try {
    const blockedProjection = (await listBlockedProjections(pool)).find((blocked) => blocked.projection === projection);
    if (!blockedProjection) throw new StartError(`${projection} is not blocked by any event.`);
    if (String(blockedProjection.position) !== positionText)
      throw new StartError(
        `${projection} is blocked by the event at position ${blockedProjection.position}: ${blockedProjection.reason}`,
      );
    const event = await loadEvent(blockedProjection.position, store);
    const by = `${userInfo().username}@${hostname()}`;
    if (!(await skipEvent(pool, { projection, position: blockedProjection.position, by, reason }, event)))
      throw new StartError(`${projection} is no longer blocked by the event at position ${positionText}.`);
    print(`${projection} skips the event at position ${positionText}, a ${event.type} of ${event.stream}`);
    print(`Once the event can be applied, npm run rebuild -- ${projection} applies it`);
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
  throw new StartError(`There is no event at position ${position}.`);
}
