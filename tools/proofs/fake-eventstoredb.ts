/**
 * `node dist/tools/proofs/fake-eventstoredb.js --port 2113 --journal FILE --pid-file FILE`: the double of EventStoreDB as a
 * process of its own, which can be killed and frozen where no server is at hand. It listens on this machine alone, and
 * has what it answered for in the journal when it is started again.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { FakeEventStoreDb } from '../../libs/testing/src/fake-eventstoredb/fake-eventstoredb.ts';

const options = { port: { type: 'string' }, journal: { type: 'string' }, 'pid-file': { type: 'string' } } as const;
const { port = '0', journal, 'pid-file': pidFile } = parseArgs({ options }).values;

const double = await FakeEventStoreDb.start({ port: Number(port), ...(journal === undefined ? {} : { journal }) });
if (pidFile !== undefined) writeFileSync(pidFile, `${process.pid}\n`);
process.stdout.write(`listening on ${double.connectionString}\n`);
