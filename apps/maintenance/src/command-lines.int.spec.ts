/** Tests how the built programs of operators read their arguments. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { sampleCases } from '#testing';

const APPS = path.resolve(import.meta.dirname, '../../../dist/apps');
const PROGRAMS = {
  backup: 'maintenance/src/backup.js',
  migrate: 'maintenance/src/migrate.js',
  grant: 'maintenance/src/grant.js',
  rebuild: 'projector/src/rebuild.js',
  catalogue: 'catalogue/src/main.js',
  ledger: 'ledger/src/main.js',
} as const;
type ProgramName = keyof typeof PROGRAMS;
/** Would be created by a program that starts the embedded PostgreSQL. */
const DATA_DIR = path.join(import.meta.dirname, 'no-data');
/** With the cache of npm's scripts. */
const ENV = { DATA_DIR, NODE_COMPILE_CACHE: path.join(APPS, '../.cache') };

afterEach(() => expect(existsSync(DATA_DIR)).toBe(false));

function run(name: ProgramName, ...args: string[]) {
  return new Promise<{ code: number; out: string; err: string }>((resolve) => {
    execFile(process.execPath, [path.join(APPS, PROGRAMS[name]), ...args], { env: ENV }, (error, out, err) =>
      resolve({ code: Number(error?.code ?? 0), out, err }),
    );
  });
}

test.each(Object.keys(PROGRAMS) as ProgramName[])('%s prints its help without a database', async (name) => {
  const { code, out, err } = await run(name, '--help');

  expect([code, err]).toEqual([0, '']);
  expect(out).toContain(`Usage: npm run ${name} -- `);
  expect(out).toContain('\n  --help\n      Prints this help.\n');
});

const INVALID_ARGUMENTS: readonly [ProgramName, string[], string][] = [
  ['backup', ['crate', 'directory'], "Unknown command 'crate' (Did you mean create?)."],
  ['backup', ['create'], "Missing required argument 'directory'."],
  ['backup', ['check', 'one', 'two'], "Too many arguments for 'check'. Expected 1 argument but got 2: one, two."],
  ['backup', ['rehearse', '--fast'], "Unknown option '--fast'."],
  ['migrate', ['--plam'], "Unknown option '--plam' (Did you mean --plan?)."],
  ['migrate', ['plan'], 'Too many arguments. Expected 0 arguments but got 1: plan.'],
  ['grant', ['--owner'], "Option '--owner <role>' argument missing."],
  ['grant', ['--owner', '--check'], "Option '--owner <role>' argument missing; write --owner=--check if it begins"],
  ['rebuild', [], "Missing required argument 'read model or all'."],
  ['rebuild', ['balance'], "Command-argument value 'balance' is invalid for argument 'read model or all'."],
  ['rebuild', ['balances', 'keys'], 'Too many arguments. Expected 1 argument but got 2: balances, keys.'],
  ['catalogue', ['import', '--from', 'groq', '--entries', 'file'], '--entries requires --from openrouter.'],
];

/** Number of cases whose program is started in `npm test`. */
const SAMPLED_CASES = 4;

test.each([...sampleCases(INVALID_ARGUMENTS, SAMPLED_CASES)])(
  '%s %j fails with a sentence and the usage, and changes nothing',
  async (name, args, sentence) => {
    const { code, out, err } = await run(name, ...args);

    expect([code, out]).toEqual([1, '']);
    expect(err.startsWith(sentence)).toBe(true);
    expect(err).toContain(`\nUsage: npm run ${name} -- `);
  },
);

test('backup without a command fails with its help', async () => {
  const { code, out, err } = await run('backup');

  expect([code, out]).toEqual([1, '']);
  expect(err).toContain('\n  fetch <directory> [backup]\n');
});
