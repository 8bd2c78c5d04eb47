import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import path from 'node:path';
import { startEmbeddedPostgres } from '#foundation';
import { root } from '../../processes.ts';
import { runCommand } from '../clients/run.ts';
import { type UnpackedPackage, unpackDebianPackage } from '../money/debian.ts';
import { allocatePortNumbers } from '../money/ports.ts';
import type { Attack, Finding } from './attack.ts';

const VERSION = '1.18.0-1+deb12u1';
/** A gateway that has not ended within this time has either started or is stuck. */
const REFUSED_WITHIN_MS = 20_000;
/** Without it, a start waits longer for a pooler whose connections are all in use. */
const START_TIMEOUT_MS = '5000';
const LISTENS_WITHIN_MS = 5_000;
const POLL_INTERVAL_MS = 20;
/** PgBouncer refuses to run as root. */
const NOBODY = 65_534;

const POOLER_CASES = [
  { mode: 'session', ignored: 'extra_float_digits,options', connections: 10, lost: 'startup options are ignored' },
  { mode: 'session', ignored: 'extra_float_digits', connections: 10, lost: 'startup options are rejected' },
  { mode: 'transaction', ignored: 'extra_float_digits,options', connections: 10, lost: 'locks do not outlive' },
  { mode: 'transaction', ignored: 'extra_float_digits,options', connections: 1, lost: 'two connections are not' },
  { mode: 'statement', ignored: 'extra_float_digits,options', connections: 10, lost: 'transactions are rejected' },
] as const;

/**
 * Poolers that break sessions. A gateway that used one would be ready but respond with 401 to new keys, or not respond
 * at all, so it must not start.
 */
export const pooler: Attack = {
  name: 'pooler',
  description: 'PgBouncer between a gateway and PostgreSQL, in every mode',
  async run(directory): Promise<Finding> {
    const bouncer = await unpackDebianPackage('pgbouncer', VERSION);
    const postgres = await startEmbeddedPostgres(path.join(directory, 'database'));
    try {
      const outcomes: string[] = [];
      for (const [index, way] of POOLER_CASES.entries()) {
        const wayDirectory = path.join(directory, String(index));
        await mkdir(wayDirectory);
        const { code, output } = await runGatewayWithPooler(bouncer, postgres.url, { ...way, directory: wayDirectory });
        const isRefused = code === 1 && output.includes('leads to a pooler') && output.includes(way.lost);
        outcomes.push(`${way.mode} mode${isRefused ? '' : ` **not rejected** (${output.trim().slice(-300)})`}`);
      }
      return {
        hasPassed: outcomes.every((outcome) => !outcome.includes('*')),
        measurements: `rejected with a clear message: ${outcomes.join(', ')}`,
      };
    } finally {
      await postgres.close();
    }
  },
};

interface PoolerCase {
  readonly mode: string;
  readonly ignored: string;
  readonly connections: number;
  readonly directory: string;
}

/** Starts a gateway that connects to PostgreSQL through a pooler. @returns its exit code and output */
async function runGatewayWithPooler(
  bouncer: UnpackedPackage,
  url: string,
  { mode, ignored, connections, directory }: PoolerCase,
) {
  const { hostname, port: real, username, password, pathname } = new URL(url);
  const { port } = await allocatePortNumbers('port');
  const database = pathname.slice(1);
  await chmod(path.dirname(directory), 0o755);
  await writeFile(path.join(directory, 'users.txt'), `"${username}" "${password}"\n`);
  await writeFile(
    path.join(directory, 'pgbouncer.ini'),
    [
      '[databases]',
      `${database} = host=${hostname} port=${real} dbname=${database}`,
      '[pgbouncer]',
      `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
      `auth_type = scram-sha-256\nauth_file = ${path.join(directory, 'users.txt')}`,
      `pool_mode = ${mode}\ndefault_pool_size = ${connections}\nignore_startup_parameters = ${ignored}`,
    ].join('\n'),
  );
  const program = path.join(bouncer.bin, '../sbin/pgbouncer');
  const child = spawn(program, ['-q', path.join(directory, 'pgbouncer.ini')], {
    ...(process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}),
    env: bouncer.env,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  try {
    await waitUntilListening(port, child);
    const address = Object.assign(new URL(url), { port: String(port) }).href;
    const settings = {
      DATABASE_URL: address,
      DATA_DIR: path.join(directory, 'data'),
      PORT: '0',
      LOG_LEVEL: 'info',
      START_TIMEOUT_MS,
    };
    const env = { ...(process.env as Record<string, string>), ...settings };
    return await runCommand([process.execPath, 'dist/apps/gateway/src/main.js'], {
      cwd: root,
      env,
      timeoutMs: REFUSED_WITHIN_MS,
    });
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill('SIGKILL')) await ended;
  }
}

async function waitUntilListening(port: number, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + LISTENS_WITHIN_MS;
  while (!(await canConnect(port))) {
    if (performance.now() > deadline || child.exitCode !== null) throw new Error('PgBouncer did not start');
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

function canConnect(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    }).on('error', () => resolve(false));
  });
}
