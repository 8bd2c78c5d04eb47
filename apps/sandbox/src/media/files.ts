/** Files that are what they say they are, and as small as can be: a picture, a silent recording, an empty film. */
import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';

const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const PIXELS = 8;
const RGB = 2;

/** A square of one colour, always the same for the same words. */
export function picture(words: string): Buffer {
  const colour = createHash('sha256').update(words).digest().subarray(0, 3);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(PIXELS, 0);
  header.writeUInt32BE(PIXELS, 4);
  header.set([8, RGB], 8);
  const row = Buffer.concat([Buffer.from([0]), ...Array.from({ length: PIXELS }, () => colour)]);
  const rows = deflateSync(Buffer.concat(Array.from({ length: PIXELS }, () => row)));
  const parts = [chunk('IHDR', header), chunk('IDAT', rows), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([PNG_SIGNATURE, ...parts]);
}

function chunk(type: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}

/** PNG, JPEG or WebP. */
export function isPicture(bytes: Buffer): boolean {
  const start = bytes.subarray(0, 12);
  return (
    start.subarray(0, 8).equals(PNG_SIGNATURE) ||
    start.subarray(0, 3).equals(Buffer.from('ffd8ff', 'hex')) ||
    (start.toString('latin1', 0, 4) === 'RIFF' && start.toString('latin1', 8, 12) === 'WEBP')
  );
}

/** MPEG-1 layer III, 44.1 kHz, 128 kbit/s, one channel. */
const FRAME_HEADER = Buffer.from('fffb90c0', 'hex');
const FRAME_BYTES = 417;
const FRAME_SECONDS = 1_152 / 44_100;
const CHARACTERS_PER_SECOND = 15;
const MOST_FRAMES = 200;

/** Silence as an MP3, about as long as it takes to say so many characters; 5 seconds at most. */
export function speech(characters: number): Buffer {
  const frames = Math.ceil(characters / CHARACTERS_PER_SECOND / FRAME_SECONDS);
  const frame = Buffer.alloc(FRAME_BYTES);
  FRAME_HEADER.copy(frame);
  return Buffer.concat(Array.from({ length: Math.min(Math.max(frames, 1), MOST_FRAMES) }, () => frame));
}

/** For formats that are not parsed here it is estimated from the size. */
const BYTES_PER_SECOND = 16_000;

/** How long a recording is; undefined when it is none that is known. */
export function millisecondsOf(recording: Buffer): number | undefined {
  const ascii = (from: number, to: number) => recording.toString('latin1', from, to);
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WAVE') return millisecondsOfWave(recording);
  if (recording.subarray(0, 4).equals(FRAME_HEADER))
    return Math.round((recording.length / FRAME_BYTES) * FRAME_SECONDS * 1_000);
  const isMp3 = ascii(0, 3) === 'ID3' || (recording[0] === 0xff && ((recording[1] ?? 0) & 0xe0) === 0xe0);
  const isKnown = isMp3 || ascii(4, 8) === 'ftyp' || ascii(0, 4) === 'OggS' || ascii(0, 4) === '\x1aE\xdf\xa3';
  return isKnown ? Math.round((recording.length / BYTES_PER_SECOND) * 1_000) : undefined;
}

/** The data's size by the bytes of a second, which the chunk "fmt " has. */
function millisecondsOfWave(recording: Buffer): number | undefined {
  let bytesPerSecond = 0;
  for (let at = 12; at + 8 <= recording.length; ) {
    const name = recording.toString('latin1', at, at + 4);
    const size = recording.readUInt32LE(at + 4);
    if (name === 'fmt ' && at + 20 <= recording.length) bytesPerSecond = recording.readUInt32LE(at + 16);
    if (name === 'data' && bytesPerSecond > 0)
      return Math.round((Math.min(size, recording.length - at - 8) / bytesPerSecond) * 1_000);
    at += 8 + size + (size % 2);
  }
  return undefined;
}

const MILLISECONDS = 1_000;

/** An MP4 without a track that lasts so long. */
export function film(seconds: number): Buffer {
  const header = Buffer.alloc(100);
  header.writeUInt32BE(MILLISECONDS, 12);
  header.writeUInt32BE(seconds * MILLISECONDS, 16);
  header.writeUInt32BE(0x00010000, 20); // the usual rate, of 1
  header.writeUInt32BE(1, 96); // the next track's number
  for (const [at, value] of [
    [36, 0x00010000],
    [52, 0x00010000],
    [68, 0x40000000],
  ] as const)
    header.writeUInt32BE(value, at); // the unit matrix
  const brands = Buffer.from('isom\0\0\x02\0isommp41', 'latin1');
  return Buffer.concat([box('ftyp', brands), box('moov', box('mvhd', header))]);
}

function box(type: string, content: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(content.length + 8, 0);
  head.write(type, 4, 'latin1');
  return Buffer.concat([head, content]);
}
