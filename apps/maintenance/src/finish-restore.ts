import { verify } from '#audit';
import {
  createLog,
  createReplayReader,
  issueFencingToken,
  openFoundation,
  type Settings,
  type StartProgress,
} from '#foundation';
import { PROJECTOR_LEASE, projections, rebuild } from '#projections';

/**
 * Builds the read models of a restored installation from its events, and then verifies both. If this process dies
 * before the end, the next projector builds the read models, and `npm run ledger -- verify` verifies them.
 * @param print receives the lines of `verify`; the last one is `drift` with the number of differences
 * @returns whether there is no difference
 * @throws StartError if the databases or the event store cannot be used
 */
export async function finishRestore(
  settings: Settings,
  print: (line: string) => void,
  startProgress?: StartProgress,
): Promise<boolean> {
  const foundation = await openFoundation(settings, createLog('warn'));
  try {
    const { store, databaseUrl } = foundation;
    const issueToken = () => issueFencingToken(databaseUrl, PROJECTOR_LEASE);
    for (const projection of projections) {
      const reader = createReplayReader(`rebuild ${projection.name}`, store.lenient, foundation, startProgress);
      await rebuild(projection, { store: reader, databaseUrl, issueFencingToken: issueToken });
    }
    return await verify(foundation, print, startProgress);
  } finally {
    await foundation.close();
  }
}
