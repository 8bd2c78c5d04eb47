/**
 * Hides the operator's credentials from customers when a provider repeats what it was sent, such as in the link to the
 * next page.
 */

/** Shorter credentials are not masked, because they would match ordinary text: the sandbox's is a common word. */
const MIN_CHARACTERS = 8;
const MASK = '*';
/** Bytes in one base64 group. */
const GROUP = 3;
/** How the JSON escapes start that can hide characters of a credential. */
const ESCAPES = ['\\u00', '\\/'];

/**
 * Masks a credential that is unencoded, percent-encoded, hexadecimal or part of base64 text. The length of the text
 * changes only if escaped JSON is rewritten.
 */
export class CredentialRedactor {
  private readonly forms: readonly Buffer[];
  private readonly maxLength: number;

  constructor(...credentials: readonly (string | undefined)[]) {
    const present = credentials.filter((credential) => credential !== undefined);
    const longCredentials = present.filter(({ length }) => length >= MIN_CHARACTERS);
    this.forms = longCredentials.flatMap(toForms).map((form) => Buffer.from(form));
    this.maxLength = Math.max(1, ...this.forms.map(({ length }) => length));
  }

  /** Masks the credential in place. @returns whether the bytes contained it */
  mask(bytes: Buffer): boolean {
    let hasMatch = false;
    for (const form of this.forms)
      for (let at = bytes.indexOf(form); at >= 0; at = bytes.indexOf(form, at + form.length)) {
        bytes.fill(MASK, at, at + form.length);
        hasMatch = true;
      }
    return hasMatch;
  }

  /**
   * Masks the credential in JSON, even if its characters are escaped. May change `bytes`.
   * @throws SyntaxError if `bytes` has such escapes and is not valid JSON
   */
  redactJson(bytes: Buffer): Buffer {
    this.mask(bytes);
    if (this.forms.length === 0 || !ESCAPES.some((escapeSequence) => bytes.includes(escapeSequence))) return bytes;
    const unescaped = Buffer.from(JSON.stringify(JSON.parse(bytes.toString())));
    return this.mask(unescaped) ? unescaped : bytes;
  }

  /** Masks the credential in text that may be JSON. */
  redactAny(text: string): string {
    try {
      return this.redactJson(Buffer.from(text)).toString();
    } catch {
      return this.redactText(text); // invalid JSON
    }
  }

  redactText(text: string): string {
    const bytes = Buffer.from(text);
    return this.mask(bytes) ? bytes.toString() : text;
  }

  /**
   * Masks the credential in a stream, at any chunk boundary: the end of each chunk is held back until the next chunk
   * has arrived or the stream has ended.
   */
  async *redactChunks(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    if (this.forms.length === 0) return yield* source;
    let pending = Buffer.alloc(0);
    for await (const chunk of source) {
      const all = Buffer.concat([pending, chunk]);
      this.mask(all);
      const ready = Math.max(0, all.length - this.maxLength + 1);
      if (ready > 0) yield all.subarray(0, ready);
      pending = all.subarray(ready);
    }
    if (pending.length > 0) yield pending;
  }
}

function toForms(credential: string): readonly string[] {
  const encoded = encodeURIComponent(credential);
  const hex = Buffer.from(credential).toString('hex');
  const lowerEscapes = encoded.replace(/%../g, (match) => match.toLowerCase());
  return [...new Set([credential, encoded, lowerEscapes, hex, hex.toUpperCase(), ...toBase64Forms(credential)])];
}

/** Returns, for each alignment, the base64 characters of the credential that do not depend on adjacent bytes. */
function toBase64Forms(credential: string): readonly string[] {
  return Array.from({ length: GROUP }, (_, before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(credential)]);
    const text = bytes.toString('base64').replace(/=+$/, '');
    const mixed = bytes.length % GROUP === 0 ? 0 : 1;
    return text.slice(before === 0 ? 0 : before + 1, text.length - mixed);
  }).flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}
