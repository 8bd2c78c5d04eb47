export interface DataUrl {
  /** In lower case, without parameters. */
  readonly mediaType: string;
  /** In base64. */
  readonly data: string;
}

/** Parses a `data:` URL in base64; returns undefined for any other value. */
export function parseDataUrl(url: unknown): DataUrl | undefined {
  if (typeof url !== 'string') return undefined;
  const comma = url.indexOf(',');
  const head = /^data:([^;,]+)(?:;[^;,]+)*;base64$/i.exec(url.slice(0, Math.max(comma, 0)));
  return head?.[1] === undefined ? undefined : { mediaType: head[1].toLowerCase(), data: url.slice(comma + 1) };
}
