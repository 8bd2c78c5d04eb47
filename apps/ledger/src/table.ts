/** A column of a table: its heading and its width; a negative width aligns its values to the right. */
export type Column = readonly [heading: string, width: number];

/** Returns a function that formats a row. Columns are separated by two spaces, and long values are not cut. */
export function formatTable(...columns: readonly Column[]): (...values: readonly string[]) => string {
  const pad = (value: string, [, width]: Column) => (width < 0 ? value.padStart(-width) : value.padEnd(width));
  return (...values) =>
    columns
      .map((column, i) => pad(values[i] ?? '', column))
      .join('  ')
      .trimEnd();
}
