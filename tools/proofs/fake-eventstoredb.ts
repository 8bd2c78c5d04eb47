/**
 * `node dist/tools/proofs/fake-eventstoredb.js --port 2113 --journal FILE --pid-file FILE`: runs the fake EventStoreDB
 * as a process that proofs can kill and freeze without a real server. The process listens only on loopback. After a
 * restart it restores from the journal every append that it has acknowledged.
 */
import { writeFileSync } from 'node:fs';
import { createProgram, runProgram } from '#foundation/command-line';
import { FakeEventStoreDb } from '../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';

const program = createProgram('node dist/tools/proofs/fake-eventstoredb.js', 'Runs the fake EventStoreDB.');
program.option('--port <number>', 'The port; by default any that is free.', '0');
program.option('--journal <file>', 'Stores the events, and restores them after a restart.');
program.option('--pid-file <file>', 'Gets the id of the process.');
program.action(async ({ port, journal, pidFile }) => {
  const double = await FakeEventStoreDb.start({ port: Number(port), ...(journal === undefined ? {} : { journal }) });
  if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`);
  process.stdout.write(`listening on ${double.connectionString}\n`);
});
await runProgram(program, process.argv.slice(2));
