/** Text that is already HTML and is not escaped by `html`. */
export class Html {
  constructor(readonly text: string) {}
}

/** Builds HTML. Values are escaped, except for Html; arrays are joined; undefined is omitted. */
export function html(parts: TemplateStringsArray, ...values: readonly unknown[]): Html {
  return new Html(parts.map((part, i) => part + (i < values.length ? renderValue(values[i]) : '')).join(''));
}

function renderValue(value: unknown): string {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(renderValue).join('');
  return value === undefined ? '' : escapeHtml(String(value));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(value: string): string {
  return value.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
