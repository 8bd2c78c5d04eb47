/**
 * `npm run check:length`: fails if a source file is longer than the limit; split such a file into a folder. There are
 * no exceptions. Only `*.ts` and `*.mjs` files are counted, so generated files and data (`*.json`) are not.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const MAX_LINES = 350;
const MAX_SPEC_LINES = 650;

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.mjs'], {
  encoding: 'utf8',
}).split('\n');
const tooLong = files
  .filter((file) => existsSync(file))
  .map((file) => ({
    file,
    lines: readFileSync(file, 'utf8').split('\n').length - 1,
    most: /\.(spec|e2e)\.ts$/.test(file) ? MAX_SPEC_LINES : MAX_LINES,
  }))
  .filter(({ lines, most }) => lines > most);

for (const { file, lines, most } of tooLong) process.stderr.write(`${file} has ${lines} lines; at most ${most}.\n`);
process.exitCode = tooLong.length > 0 ? 1 : 0;
