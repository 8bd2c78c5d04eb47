/**
 * `npm run check:words`: names, comments, messages, names of tests and pages contain none of the private words in the
 * first column of glossary.tsv, apart from those in exceptions.tsv. No metric may exceed baseline.json; a lower metric
 * is written into it with `--write`.
 *
 *   --list       prints every hit
 *   --word NAME  prints every hit of one name or entry
 *   --json       prints every hit as JSON
 *   --write      lowers baseline.json to the current counts
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { compareCounts, lowerBaseline } from './baseline.mjs';
import { countHits, findHits, METRICS } from './count.mjs';
import { applyExceptions, readExceptions } from './exceptions.mjs';
import { readGlossary } from './glossary.mjs';

const FIRST_HITS = 20;
const BASELINE = new URL('baseline.json', import.meta.url);

function main([option, value]) {
  const glossary = readGlossary(readTable('glossary.tsv'));
  const { hits, unused } = applyExceptions(
    findHits(readFiles(), glossary),
    readExceptions(readTable('exceptions.tsv')),
  );
  if (option === '--json') return printJson(hits);
  if (option === '--list') return printHits(hits);
  if (option === '--word') return printHits(hits.filter(({ name, entry }) => name === value || entry === value));

  const counts = countHits(hits);
  const baseline = existsSync(BASELINE) ? JSON.parse(readFileSync(BASELINE, 'utf8')) : {};
  if (option === '--write') {
    const { next, raised } = lowerBaseline(baseline, counts);
    writeFileSync(BASELINE, `${JSON.stringify(next, undefined, 2)}\n`);
    reportProblems(raised.map((metric) => `${METRICS[metric]}: ${counts[metric]} is not written over ${next[metric]}`));
    return;
  }
  const { higher, lower } = compareCounts(baseline, counts);
  for (const metric of higher) reportIncrease(metric, counts, baseline, hits);
  reportProblems([
    ...lower.map((metric) => `${METRICS[metric]}: ${counts[metric]} instead of ${baseline[metric]}`),
    ...(lower.length > 0 ? ['Run `npm run check:words -- --write` to lower the baseline.'] : []),
    ...unused.map(({ name, path, kind }) => `exceptions.tsv: ${name} exempts no ${kind} in ${path}; remove it.`),
  ]);
}

function readTable(name) {
  return readFileSync(new URL(name, import.meta.url), 'utf8');
}

function readFiles() {
  const patterns = ['*.ts', '*.mts', '*.mjs', '*.md'];
  return execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...patterns], {
    encoding: 'utf8',
  })
    .split('\0')
    .filter((file) => file !== '' && existsSync(file))
    .map((file) => ({ file, text: readFileSync(file, 'utf8') }));
}

function print(line) {
  process.stdout.write(`${line}\n`);
}

function printJson(hits) {
  const rows = hits.map(({ metric, ...location }) =>
    Object.fromEntries([['figure', metric], ...Object.entries(location)]),
  );
  print(JSON.stringify(rows, undefined, 1));
}

function formatHit({ file, line, column, nodeKind, name, entry, term }) {
  return `${file}:${line}:${column} ${nodeKind} ${name}${entry === name ? '' : ` (${entry})`} -> ${term}`;
}

function printHits(hits) {
  for (const [metric, title] of Object.entries(METRICS)) {
    const selected = hits.filter((hit) => hit.metric === metric);
    if (selected.length === 0) continue;
    print(`${title}: ${countHits(selected)[metric]}`);
    for (const hit of selected) print(`  ${formatHit(hit)}`);
  }
}

function reportIncrease(metric, counts, baseline, hits) {
  const selected = hits.filter((hit) => hit.metric === metric);
  reportProblems([
    `${METRICS[metric]}: ${counts[metric]}, at most ${baseline[metric]}. The first of them:`,
    ...selected.slice(0, FIRST_HITS).map((hit) => `  ${formatHit(hit)}`),
    'All of them: npm run --silent check:words -- --list',
  ]);
}

function reportProblems(lines) {
  for (const line of lines) process.stderr.write(`${line}\n`);
  if (lines.length > 0) process.exitCode = 1;
}

main(process.argv.slice(2));
