/** JSON in which files stand as base64. They are read while it is sent, and never lie in memory as a whole. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';

const BASE64_BYTES = 3;
const BASE64_CHARACTERS = 4;

/** A text that consists of a file in base64, perhaps with something before it. */
export class Base64 {
  constructor(
    readonly file: Blob,
    readonly before = '',
  ) {}
}

export interface JsonBody {
  readonly body: string | Readable;
  /** Of the body, in bytes. */
  readonly length: number;
}

/** @param value what `JSON.stringify` takes, and any number of `Base64` in it */
export function jsonBody(value: object): JsonBody {
  const files: Blob[] = [];
  const mark = randomUUID();
  const text = JSON.stringify(value, (_, each: unknown) => {
    if (!(each instanceof Base64)) return each;
    files.push(each.file);
    return each.before + mark;
  });
  if (files.length === 0) return { body: text, length: Buffer.byteLength(text) };
  const texts = text.split(mark);
  const ofFiles = files.reduce((sum, { size }) => sum + Math.ceil(size / BASE64_BYTES) * BASE64_CHARACTERS, 0);
  const length = texts.reduce((sum, each) => sum + Buffer.byteLength(each), ofFiles);
  return { body: Readable.from(written(texts, files), { objectMode: false }), length };
}

async function* written(texts: readonly string[], files: readonly Blob[]): AsyncGenerator<string> {
  for (const [i, text] of texts.entries()) {
    yield text;
    const file = files[i];
    if (file) yield* base64Of(file);
  }
}

/** Pieces end where a group of characters does. */
async function* base64Of(file: Blob): AsyncGenerator<string> {
  let left = Buffer.alloc(0);
  for await (const piece of file.stream()) {
    const bytes = Buffer.concat([left, piece]);
    const whole = bytes.length - (bytes.length % BASE64_BYTES);
    yield bytes.toString('base64', 0, whole);
    left = bytes.subarray(whole);
  }
  yield left.toString('base64');
}
