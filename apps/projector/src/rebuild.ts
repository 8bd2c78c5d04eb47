import { createLog, issueFencingToken, openFoundation, readSettings, StartError } from '#foundation';
import { projections, rebuild } from '#projections';
import { PROJECTOR } from './projector.ts';

/** `npm run rebuild -- <name|all>`: drops read models and replays them, beside the running service. */
async function main(wanted: string | undefined): Promise<void> {
  const names = projections.map(({ name }) => name);
  const chosen = projections.filter(({ name }) => wanted === 'all' || wanted === name);
  if (chosen.length === 0) throw new StartError(`Name a read model: ${names.join(', ')} or all.`);
  const foundation = await openFoundation(readSettings(process.env), createLog('warn'));
  const {
    store: { lenient: store },
    databaseUrl,
  } = foundation;
  const draw = () => issueFencingToken(databaseUrl, PROJECTOR);
  try {
    for (const projection of chosen) {
      const started = performance.now();
      const replayed = await rebuild(projection, { store, databaseUrl, issueFencingToken: draw });
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      process.stdout.write(`${projection.name}: ${replayed} facts replayed in ${seconds} s\n`);
    }
  } finally {
    await foundation.close();
  }
}

await main(process.argv[2]).catch((error) => {
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
});
