import { hostname, userInfo } from 'node:os';
import { type Foundation, StartError } from '#foundation';
import { openPool } from '#postgres';
import { listBlockedProjections, skipEvent } from '#projections';

interface Wish {
  readonly readModel: string;
  readonly position: string;
  readonly why: string;
}

/**
 * Lets a read model go on behind the fact that it stands before, and notes who said so, when and why. Rows are then not
 * what the facts say, so `verify` names the fact until a rebuild has applied it.
 * @throws StartError when the read model does not stand before that fact
 */
export async function skip(
  { databaseUrl, store }: Foundation,
  { readModel: projection, position: where, why }: Wish,
  print: (line: string) => void,
): Promise<void> {
  const pool = openPool({ connectionString: databaseUrl, name: 'ledger', max: 1 });
  pool.on('error', () => {}); // the query in progress fails with it
  try {
    const stop = (await listBlockedProjections(pool)).find((each) => each.projection === projection);
    if (!stop) throw new StartError(`${projection} does not stand before any fact.`);
    if (String(stop.position) !== where)
      throw new StartError(`${projection} stands before the fact at position ${stop.position}: ${stop.reason}`);
    const fact = await factAt(stop.position, store);
    const by = `${userInfo().username}@${hostname()}`;
    await skipEvent(pool, { projection, position: stop.position, by, reason: why }, fact);
    print(`${projection} skips the fact at position ${where}, a ${fact.type} of ${fact.stream}`);
    print(`Once it can be applied, npm run rebuild -- ${projection} applies it`);
  } finally {
    await pool.end();
  }
}

async function factAt(position: bigint, { rawReader: stored }: Foundation['store']) {
  for await (const { events } of stored.readAll(position - 1n)) {
    const [fact] = events;
    if (fact?.position === position) return fact;
    if (fact) break;
  }
  throw new StartError(`There is no fact at position ${position}.`);
}
