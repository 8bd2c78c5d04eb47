/** Our credential must not come back to a customer, also where a vendor repeats what it was sent, such as in the link to a next page. */

/** Shorter ones are no secrets, and would be found everywhere: the sandbox's is a word. */
const MIN_CHARACTERS = 8;
const MASK = '*';
/** Bytes of one group of Base64, and its characters. */
const GROUP = 3;
/** Characters that JSON may write as something else. */
const ESCAPES = ['\\u00', '\\/'];

/** Masks a credential wherever it stands: as it is, percent-encoded, in hexadecimal, or within Base64. No length changes. */
export class CredentialRedactor {
  private readonly forms: readonly Buffer[];
  private readonly maxLength: number;

  constructor(credential: string) {
    this.forms = credential.length < MIN_CHARACTERS ? [] : toForms(credential).map((form) => Buffer.from(form));
    this.maxLength = Math.max(1, ...this.forms.map(({ length }) => length));
  }

  /** In these bytes themselves. @returns whether there was something to mask */
  mask(bytes: Buffer): boolean {
    let hasMatch = false;
    for (const form of this.forms)
      for (let at = bytes.indexOf(form); at >= 0; at = bytes.indexOf(form, at + form.length)) {
        bytes.fill(MASK, at, at + form.length);
        hasMatch = true;
      }
    return hasMatch;
  }

  /** The same in JSON, whose writer may have escaped any character. */
  redactJson(bytes: Buffer): Buffer {
    this.mask(bytes);
    if (this.forms.length === 0 || !ESCAPES.some((escapeSequence) => bytes.includes(escapeSequence))) return bytes;
    const unescaped = Buffer.from(JSON.stringify(JSON.parse(bytes.toString())));
    return this.mask(unescaped) ? unescaped : bytes;
  }

  /** The same in a text that may be JSON. */
  redactAny(text: string): string {
    try {
      return this.redactJson(Buffer.from(text)).toString();
    } catch {
      return this.redactText(text);
    }
  }

  redactText(text: string): string {
    const bytes = Buffer.from(text);
    return this.mask(bytes) ? bytes.toString() : text;
  }

  /** The same in what comes in pieces, wherever they end: some of each waits for the next. */
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

/** What does not depend on what stands before and behind it. */
function toBase64Forms(credential: string): readonly string[] {
  return Array.from({ length: GROUP }, (_, before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(credential)]);
    const text = bytes.toString('base64').replace(/=+$/, '');
    const mixed = bytes.length % GROUP === 0 ? 0 : 1;
    return text.slice(before === 0 ? 0 : before + 1, text.length - mixed);
  }).flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}
