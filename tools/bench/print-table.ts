/** Output of the benchmarks: tables go to stdout, progress to stderr. */
export const print = (line = '') => void process.stdout.write(`${line}\n`);
export const printProgress = (line: string) => void process.stderr.write(`  ${line}\n`);

export function printTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): void {
  print(`| ${head.join(' | ')} |`);
  print(`|${head.map((_, i) => (i === 0 ? '---' : '---:')).join('|')}|`);
  for (const row of rows) print(`| ${row.join(' | ')} |`);
  print();
}

export const formatInteger = (value: number) => Math.round(value).toLocaleString('en');
export const formatRatio = (value: number) => `${value.toFixed(2)} ×`;
export const formatMs = (value: number) => value.toFixed(2);
