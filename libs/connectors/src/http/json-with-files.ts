/** JSON bodies with files in base64. Files are read in chunks while the body is sent. */
import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { WorkParts } from '#application';

const BASE64_BYTES = 3;
const BASE64_CHARACTERS = 4;

/** A JSON string that consists of `prefix` and a file in base64. */
export class Base64File {
  constructor(
    readonly file: Blob,
    readonly prefix = '',
  ) {}
}

export interface JsonBody {
  readonly body: string | Readable;
  /** Length of the body in bytes. */
  readonly length: number;
}

/** @param value an object for `JSON.stringify`, with any number of `Base64File` in it */
export function createJsonBody(value: object): JsonBody {
  const files: Blob[] = [];
  const mark = randomUUID();
  const text = JSON.stringify(value, (_, entry: unknown) => {
    if (!(entry instanceof Base64File)) return entry;
    files.push(entry.file);
    return entry.prefix + mark;
  });
  if (files.length === 0) return { body: text, length: Buffer.byteLength(text) };
  const texts = text.split(mark);
  const filesLength = files.reduce((sum, { size }) => sum + Math.ceil(size / BASE64_BYTES) * BASE64_CHARACTERS, 0);
  const length = texts.reduce((sum, segment) => sum + Buffer.byteLength(segment), filesLength);
  return { body: Readable.from(streamBody(texts, files), { objectMode: false }), length };
}

async function* streamBody(texts: readonly string[], files: readonly Blob[]): AsyncGenerator<string> {
  for (const [i, text] of texts.entries()) {
    yield text;
    const file = files[i];
    if (file) yield* encodeBase64(file);
  }
}

/** Yields chunks that end with a complete base64 group, so that together they are valid base64. */
async function* encodeBase64(file: Blob): AsyncGenerator<string> {
  let remainder = Buffer.alloc(0);
  const parts = new WorkParts();
  for await (const chunk of file.stream()) {
    const bytes = Buffer.concat([remainder, chunk]);
    const alignedLength = bytes.length - (bytes.length % BASE64_BYTES);
    yield bytes.toString('base64', 0, alignedLength);
    remainder = bytes.subarray(alignedLength);
    await parts.rest();
  }
  yield remainder.toString('base64');
}
