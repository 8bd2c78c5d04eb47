/**
 * `node dist/tools/proofs/fake-eventstoredb.js --port 2113 --journal FILE --pid-file FILE`: runs the fake EventStoreDB
 * as a process that proofs can kill and freeze without a real server. The process listens only on loopback. After a
 * restart it restores from the journal every append that it has acknowledged.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FakeEventStoreDb } from '../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';

const options = { port: { type: 'string' }, journal: { type: 'string' }, 'pid-file': { type: 'string' } } as const;
const { port = '0', journal, 'pid-file': pidFile } = parseArgs({ options }).values;

const double = await FakeEventStoreDb.start({ port: Number(port), ...(journal === undefined ? {} : { journal }) });
if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`);
process.stdout.write(`listening on ${double.connectionString}\n`);
