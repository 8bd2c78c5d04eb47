import { verify } from '#audit';
import { createLog, issueFencingToken, openFoundation, type Settings } from '#foundation';
import { PROJECTOR_LEASE, projections, rebuild } from '#projections';

/**
 * Builds the read models of a restored installation from its events, and then verifies both. If this process dies
 * before the end, the next projector builds the read models, and `npm run ledger -- verify` verifies them.
 * @param print receives the lines of `verify`; the last one is `drift` with the number of differences
 * @returns whether there is no difference
 * @throws StartError if the databases or the event store cannot be used
 */
export async function finishRestore(settings: Settings, print: (line: string) => void): Promise<boolean> {
  const foundation = await openFoundation(settings, createLog('warn'));
  try {
    const {
      store: { lenient: store },
      databaseUrl,
    } = foundation;
    const issueToken = () => issueFencingToken(databaseUrl, PROJECTOR_LEASE);
    for (const projection of projections)
      await rebuild(projection, { store, databaseUrl, issueFencingToken: issueToken });
    return await verify(foundation, print);
  } finally {
    await foundation.close();
  }
}
