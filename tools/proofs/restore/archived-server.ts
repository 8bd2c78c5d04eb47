/** A PostgreSQL server on loopback with a write-ahead log archive, and copies of it from which others are restored. */
import { existsSync } from 'node:fs';
import { chown, mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import {
  findUnprivilegedUser,
  type OsUser,
  spawnAsUser,
} from '../../../libs/foundation/src/embedded-postgres/binaries.ts';
import { runCommand } from '../clients/run.ts';
import { allocatePortNumbers } from '../money/ports.ts';
import { waitUntil } from '../role-checks.ts';

const COMMAND_TIMEOUT_MS = 120_000;
/** The role of an installation: it owns its databases, and has no other rights. */
const OWNER = 'house';

/** A server and the files next to its data directory. */
interface ServerFiles {
  readonly bin: string;
  readonly data: string;
  readonly archive: string;
  readonly user: OsUser;
}

export class ArchivedServer {
  private constructor(
    private readonly files: ServerFiles,
    private readonly port: number,
    private readonly child: ReturnType<typeof spawnAsUser>,
  ) {}

  /** Creates an empty server in a directory, which all users of the host must be able to enter. */
  static async create(bin: string, directory: string): Promise<ArchivedServer> {
    const user = findUnprivilegedUser();
    const [data, archive] = [path.join(directory, 'data'), path.join(directory, 'archive')];
    for (const folder of [data, archive]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (user.uid !== undefined && user.gid !== undefined) await chown(folder, user.uid, user.gid);
    }
    const files = { bin, data, archive, user };
    await runAsUser(files, [path.join(bin, 'initdb'), '-D', data, '-U', 'postgres', '--auth=trust', '-E', 'UTF8']);
    const server = await ArchivedServer.start(files, []);
    await server.query('postgres', `create role ${OWNER} login`);
    return server;
  }

  private static async start(files: ServerFiles, options: readonly string[]): Promise<ArchivedServer> {
    const { port } = await allocatePortNumbers('port');
    const settings = [
      `port=${port}`,
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'fsync=off',
      'track_commit_timestamp=on',
      'archive_mode=on',
      `archive_command=cp "%p" "${files.archive}/%f"`,
      ...options,
    ];
    const command = [path.join(files.bin, 'postgres'), '-D', files.data, ...settings.flatMap((text) => ['-c', text])];
    const child = spawnAsUser(files.data, files.user, command, ['ignore', 'ignore', 'ignore']);
    const server = new ArchivedServer(files, port, child);
    await waitUntil(async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended with code ${child.exitCode}`);
      return server.query('postgres', 'select pg_is_in_recovery() as recovering').then(
        ([row]) => row?.recovering === false,
        () => false, // not ready for connections yet
      );
    });
    return server;
  }

  /** Creates a database of the installation's role. @returns its URL for that role */
  async createDatabase(name: string): Promise<string> {
    await this.query('postgres', `create database ${name} owner ${OWNER}`);
    return this.getUrl(name);
  }

  /** Returns the URL of a database for a user, by default the role of the installation. */
  getUrl(database: string, user = OWNER): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  /** Runs a statement as superuser. */
  async query(database: string, sql: string): Promise<readonly Record<string, unknown>[]> {
    return this.withClient(database, async (client) => (await client.query(sql)).rows);
  }

  /** Copies the data directory while the server runs: with `pg_basebackup` if the package has it, or file by file. */
  async copyFiles(target: string): Promise<'pg_basebackup' | 'pg_backup_start'> {
    const { bin, data, user } = this.files;
    const program = path.join(bin, 'pg_basebackup');
    if (existsSync(program)) {
      const address = ['-h', '127.0.0.1', '-p', String(this.port), '-U', 'postgres'];
      await mkdir(target, { mode: 0o700 });
      if (user.uid !== undefined && user.gid !== undefined) await chown(target, user.uid, user.gid);
      await runAsUser(this.files, [program, ...address, '-D', target, '-X', 'none', '-c', 'fast']);
      return 'pg_basebackup';
    }
    await this.withClient('postgres', async (client) => {
      await client.query("select pg_backup_start('proof', true)");
      const options = { cwd: path.dirname(data), env: { LC_ALL: 'C' }, timeoutMs: COMMAND_TIMEOUT_MS };
      const { code, output } = await runCommand(['/bin/cp', '-a', data, target], options);
      // The server may remove files in the meantime.
      const problems = output.split('\n').filter((line) => line !== '' && !line.endsWith('No such file or directory'));
      if (code === null || problems.length > 0) throw new Error(`cp: ${problems.join('; ')}`);
      const { rows } = await client.query<{ label: string }>(
        'select labelfile as label from pg_backup_stop(wait_for_archive => true)',
      );
      await rm(path.join(target, 'postmaster.pid'), { force: true });
      await rm(path.join(target, 'pg_wal'), { recursive: true });
      await mkdir(path.join(target, 'pg_wal'), { mode: 0o700 });
      await writeFile(path.join(target, 'backup_label'), rows[0]?.label ?? '');
      for (const name of ['pg_wal', 'backup_label'])
        if (user.uid !== undefined && user.gid !== undefined) await chown(path.join(target, name), user.uid, user.gid);
    });
    return 'pg_backup_start';
  }

  /**
   * Starts another server from a copy of the files and the archive, with everything that was committed until a time.
   * @param time in PostgreSQL's format, with its time zone
   */
  async startRestored(copy: string, time: string): Promise<ArchivedServer> {
    const { user, archive } = this.files;
    const signal = path.join(copy, 'recovery.signal');
    await writeFile(signal, '');
    if (user.uid !== undefined && user.gid !== undefined) await chown(signal, user.uid, user.gid);
    return ArchivedServer.start({ ...this.files, data: copy }, [
      'archive_mode=off',
      `restore_command=cp "${archive}/%f" "%p"`,
      `recovery_target_time=${time}`,
      'recovery_target_action=promote',
    ]);
  }

  /** Archives the write-ahead log to its end, and stops the server. */
  async stop(): Promise<void> {
    await this.query('postgres', 'select pg_switch_wal()');
    const ended = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.child.kill('SIGINT'); // a fast shutdown, which ends with the archive complete
    await ended;
  }

  /** Ends the server at once, whatever it does. */
  end(): void {
    this.child.kill('SIGQUIT');
  }

  private async withClient<T>(database: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new pg.Client({ host: '127.0.0.1', port: this.port, user: 'postgres', database });
    await client.connect();
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }
}

async function runAsUser({ data, user }: ServerFiles, command: readonly string[]): Promise<void> {
  const child = spawnAsUser(data, user, command, ['ignore', 'ignore', 'pipe']);
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += chunk;
  });
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve));
  if (code !== 0) throw new Error(`${command[0]}: ${errors.trim()}`);
}
