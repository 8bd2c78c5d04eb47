import '#foundation/node-version';
import { createLog, formatFailure, issueFencingToken, openFoundation, readSettings, StartError } from '#foundation';
import { PROJECTOR_LEASE, projections, rebuild } from '#projections';

/** `npm run rebuild -- <name|all>`: rebuilds read models from all events. Roles may be running. */
async function main(requested: string | undefined): Promise<void> {
  const names = projections.map(({ name }) => name);
  const chosen = projections.filter(({ name }) => requested === 'all' || requested === name);
  if (chosen.length === 0) throw new StartError(`Name a read model: ${names.join(', ')} or all.`);
  const foundation = await openFoundation(readSettings(process.env), createLog('warn'));
  const {
    store: { lenient: store },
    databaseUrl,
  } = foundation;
  const issueToken = () => issueFencingToken(databaseUrl, PROJECTOR_LEASE);
  try {
    for (const projection of chosen) {
      const startedAt = performance.now();
      const replayed = await rebuild(projection, { store, databaseUrl, issueFencingToken: issueToken });
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      process.stdout.write(`${projection.name}: ${replayed} events replayed in ${seconds} s\n`);
    }
  } finally {
    await foundation.close();
  }
}

await main(process.argv[2]).catch((error) => {
  process.stderr.write(`${formatFailure(error)}\n`);
  process.exitCode = 1;
});
