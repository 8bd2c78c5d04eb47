/** Texts, files and lists that take a gateway long to handle, for the bodies of worst-bodies.ts. */

export const MIB = 1024 * 1024;
/** Just below the limit of a JSON body, 25 MiB. */
export const LARGE = 24 * MIB;
/** The limit of an uploaded file. */
const FILE_BYTES = 25 * MIB;

export const list = <T>(length: number, create: (i: number) => T): readonly T[] =>
  Array.from({ length }, (_, i) => create(i));

export const fields = (length: number, prefix: string, value: unknown = 1) =>
  Object.fromEntries(list(length, (i) => [`${prefix}${i}`, value]));

/** Returns words of about this length in total. */
export const repeatText = (length: number) => 'lorem ipsum dolor '.repeat(length / 18);

/** The longest text of words. */
export const LONG_TEXT = repeatText(LARGE);

/** Text of random ideographs, the slowest for a tokenizer. */
export const ideographs = (length: number) =>
  list(length, () => String.fromCharCode(0x4e00 + Math.random() * 20_000)).join('');

/** Text that gzip compresses to a fiftieth: the limit is a hundredth. */
export const compressible = (length: number) =>
  list(Math.floor(length / 450), () => `${Math.random().toString(36).slice(2, 8)} ${repeatText(440)}`).join('');

/** JSON with so many objects that parsing it takes a hundred times as long as reading it. */
export const objects = (length: number) => `[${'{},'.repeat(Math.floor(length / 3) - 1)}{}]`;

export const dataUrl = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString('base64')}`;

/** A PNG with a valid header. @param size in bytes */
export function png(size = FILE_BYTES): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.set(Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ', 'base64'));
  const header = 33;
  bytes.writeUInt32BE(size - header - 24, header);
  bytes.write('IDAT', header + 4, 'latin1');
  bytes.write('\0\0\0\0IEND', size - 12, 'latin1');
  return bytes;
}

/** An MP3 with the shortest frames: 8 kbit/s at 8 kHz. @param size in bytes */
export function mp3(size = FILE_BYTES): Buffer {
  const frame = Buffer.alloc(72);
  frame.set([0xff, 0xe3, 0x18, 0xc4]);
  return Buffer.alloc(size - (size % frame.length), frame);
}

/** One part of a form: a file if it has a name. */
export interface Part {
  readonly field: string;
  readonly filename?: string;
  readonly content: string | Buffer;
}

const BOUNDARY = '----------------------------worst';
export const FORM = `multipart/form-data; boundary=${BOUNDARY}`;

export function form(parts: readonly Part[]): Buffer {
  const chunks = parts.flatMap(({ field, filename, content }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"`;
    return [`--${BOUNDARY}\r\ncontent-disposition: form-data; name="${field}"${file}\r\n\r\n`, content, '\r\n'];
  });
  return Buffer.concat([...chunks, `--${BOUNDARY}--\r\n`].map((chunk) => Buffer.from(chunk)));
}
