/** A column of a table: its heading and its width; a negative width aligns its values to the right. */
export type Column = readonly [heading: string, width: number];

export interface Table {
  /** The row with the headings. */
  readonly heading: string;
  readonly formatRow: (...values: readonly string[]) => string;
}

/** Defines a table for plain text. Columns are separated by two spaces, and long values are not cut. */
export function defineTable(...columns: readonly Column[]): Table {
  const pad = (value: string, [, width]: Column) => (width < 0 ? value.padStart(-width) : value.padEnd(width));
  const formatRow = (...values: readonly string[]) =>
    columns
      .map((column, i) => pad(values[i] ?? '', column))
      .join('  ')
      .trimEnd();
  return { heading: formatRow(...columns.map(([heading]) => heading)), formatRow };
}
