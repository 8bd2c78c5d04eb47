import '#foundation/node-version';
import { Argument } from 'commander';
import { createLog, createReplayReader, issueFencingToken, openFoundation, readSettings } from '#foundation';
import { createProgram, runMain, startProgress } from '#foundation/command-line';
import { PROJECTOR_LEASE, projections, rebuild } from '#projections';

const program = createProgram(
  'npm run rebuild --',
  'Computes read models from all events while the service runs, and then replaces the old tables.',
);
const names = projections.map(({ name }) => name);
program.addArgument(new Argument('<read model or all>', 'The read model.').choices([...names, 'all']));
program.action(rebuildReadModels);

/** Rebuilds one read model, or all. Roles may be running. */
async function rebuildReadModels(requested: string): Promise<void> {
  const chosen = projections.filter(({ name }) => requested === 'all' || requested === name);
  const foundation = await openFoundation(readSettings(process.env), createLog('warn'));
  const { store, databaseUrl } = foundation;
  const issueToken = () => issueFencingToken(databaseUrl, PROJECTOR_LEASE);
  try {
    for (const projection of chosen) {
      const startedAt = performance.now();
      const reader = createReplayReader(`rebuild ${projection.name}`, store.lenient, foundation, startProgress);
      const replayed = await rebuild(projection, { store: reader, databaseUrl, issueFencingToken: issueToken });
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      process.stdout.write(`${projection.name}: ${replayed} events replayed in ${seconds} s\n`);
    }
  } finally {
    await foundation.close();
  }
}

await runMain(program);
