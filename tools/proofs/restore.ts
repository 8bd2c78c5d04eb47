/**
 * `npm run prove:restore`: on PostgreSQL 15, 16 and 17, the owner of an installation's databases restores a backup into
 * an empty database, without the rights of a superuser. Then `grant` separates the rights of owner and service, and the
 * roles run with those of the service. The files of the server and its archive are restored to a second in time while
 * chats are served. With the simulated EventStoreDB, the file of its events and a backup of PostgreSQL are restored
 * together. Each restored installation verifies with a drift of 0 and serves requests.
 */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ArchivedServer } from './restore/archived-server.ts';
import { countFailures } from './restore/checks.ts';
import { proveEventStoreCopy } from './restore/event-store-copy.ts';
import { proveOwnerRestore } from './restore/owner-restore.ts';
import { provePointInTime } from './restore/point-in-time.ts';
import { findPostgresVersions } from './restore/postgres-versions.ts';

const directory = await mkdtemp(path.join(tmpdir(), 'countinghouse-restore-'));
await chmod(directory, 0o755); // PostgreSQL runs as another user if this process is root
try {
  for (const { name, bin } of await findPostgresVersions()) {
    const folder = path.join(directory, name.replaceAll(/\W+/g, '-'));
    await mkdir(folder);
    const server = await ArchivedServer.create(bin, folder);
    try {
      await proveOwnerRestore(name, server, folder);
      await provePointInTime(name, server, folder);
    } finally {
      server.end();
    }
  }
  await proveEventStoreCopy(path.join(directory, 'eventstoredb'));
} finally {
  await rm(directory, { recursive: true });
}
if (countFailures() > 0) process.exitCode = 1;
