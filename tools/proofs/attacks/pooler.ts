import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { startEmbeddedPostgres } from '#foundation';
import { root } from '../../processes.ts';
import { run } from '../clients/run.ts';
import { type Unpacked, unpack } from '../money/debian.ts';
import { freePorts } from '../money/ports.ts';
import type { Attack, Finding } from './attack.ts';

const VERSION = '1.18.0-1+deb12u1';
/** A gateway that does not end by then has started, or hangs. */
const REFUSED_WITHIN_MS = 20_000;
const LISTENS_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 20;
/** PgBouncer does not run as root. */
const NOBODY = 65_534;

const WAYS = [
  { mode: 'session', ignored: 'extra_float_digits,options', connections: 10, lost: 'start-up options are dropped' },
  { mode: 'session', ignored: 'extra_float_digits', connections: 10, lost: 'start-up options are refused' },
  { mode: 'transaction', ignored: 'extra_float_digits,options', connections: 10, lost: 'locks do not outlive' },
  { mode: 'transaction', ignored: 'extra_float_digits,options', connections: 1, lost: 'two are not answered at once' },
  { mode: 'statement', ignored: 'extra_float_digits,options', connections: 10, lost: 'transactions are refused' },
] as const;

/** Poolers that look like PostgreSQL and are not: a gateway behind one would say ready and answer 401 to new keys, or hang. */
export const pooler: Attack = {
  name: 'pooler',
  what: 'PgBouncer between a gateway and PostgreSQL, in every mode',
  async run(directory): Promise<Finding> {
    const bouncer = await unpack('pgbouncer', VERSION);
    const postgres = await startEmbeddedPostgres(path.join(directory, 'database'));
    try {
      const refused: string[] = [];
      for (const [nr, way] of WAYS.entries()) {
        const place = path.join(directory, String(nr));
        await mkdir(place);
        const { code, output } = await behind(bouncer, postgres.url, { ...way, place });
        const isRefused = code === 1 && output.includes('leads to a pooler') && output.includes(way.lost);
        refused.push(`${way.mode} mode${isRefused ? '' : ` **not refused** (${output.trim().slice(-300)})`}`);
      }
      return {
        held: refused.every((each) => !each.includes('*')),
        measured: `refused with a sentence: ${refused.join(', ')}`,
      };
    } finally {
      await postgres.close();
    }
  },
};

interface Way {
  readonly mode: string;
  readonly ignored: string;
  readonly connections: number;
  readonly place: string;
}

/** What a gateway says that has PostgreSQL behind a pooler. */
async function behind(bouncer: Unpacked, url: string, { mode, ignored, connections, place }: Way) {
  const { hostname, port: real, username, password, pathname } = new URL(url);
  const { port } = await freePorts('port');
  const database = pathname.slice(1);
  await chmod(path.dirname(place), 0o755);
  await writeFile(path.join(place, 'users.txt'), `"${username}" "${password}"\n`);
  await writeFile(
    path.join(place, 'pgbouncer.ini'),
    [
      '[databases]',
      `${database} = host=${hostname} port=${real} dbname=${database}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
      `auth_type = scram-sha-256\nauth_file = ${path.join(place, 'users.txt')}`,
      `pool_mode = ${mode}\ndefault_pool_size = ${connections}\nignore_startup_parameters = ${ignored}`,
    ].join('\n'),
  );
  const program = path.join(bouncer.bin, '../sbin/pgbouncer');
  const child = spawn(program, ['-q', path.join(place, 'pgbouncer.ini')], {
    ...(process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}),
    env: bouncer.env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await listens(port, child);
    const address = Object.assign(new URL(url), { port: String(port) }).href;
    const settings = { DATABASE_URL: address, DATA_DIR: path.join(place, 'data'), PORT: '0', LOG_LEVEL: 'info' };
    const env = { ...(process.env as Record<string, string>), ...settings };
    return await run([process.execPath, 'dist/apps/gateway/src/main.js'], {
      cwd: root,
      env,
      withinMs: REFUSED_WITHIN_MS,
    });
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill('SIGKILL')) await ended;
  }
}

async function listens(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + LISTENS_WITHIN_MS;
  while (!(await answers(port))) {
    if (performance.now() > deadline || child.exitCode !== null) throw new Error('PgBouncer does not start');
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });
}
