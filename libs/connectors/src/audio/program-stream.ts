/** The maximum duration of the audio in an MPEG program stream. Source: ISO/IEC 11172-1 and 13818-1. */
import { measureMpegMs } from './mpeg-audio.ts';

const START_CODE = Buffer.from([0, 0, 1]);
const FIRST_AUDIO = 0xc0;
const LAST_AUDIO = 0xdf;
/** The stream in which DVDs have audio of codecs whose packets are not parsed here. */
const PRIVATE_STREAM = 0xbd;
/** AC-3 at 32 kbit/s. */
const MIN_BYTES_PER_SECOND = 4_000;

/** Returns the maximum duration of the longest audio stream in milliseconds. */
export function measureProgramStreamMs(bytes: Buffer): number {
  const sizes = new Map<number, number>();
  for (const { id, start, end } of readPackets(bytes)) sizes.set(id, (sizes.get(id) ?? 0) + end - start);
  const privateStreamMs = ((sizes.get(PRIVATE_STREAM) ?? 0) / MIN_BYTES_PER_SECOND) * 1_000;
  const streams = new Map([...sizes].map(([id, size]) => [id, { buffer: Buffer.allocUnsafe(size), at: 0 }]));
  for (const { id, start, end } of readPackets(bytes)) {
    const stream = streams.get(id);
    if (stream) stream.at += bytes.copy(stream.buffer, stream.at, start, end);
  }
  streams.delete(PRIVATE_STREAM);
  return Math.ceil(Math.max(privateStreamMs, ...[...streams.values()].map(({ buffer }) => measureMpegMs(buffer))));
}

interface Packet {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

/** Yields the packets of the audio streams and of the private stream, at any position in the file. */
function* readPackets(bytes: Buffer): Generator<Packet> {
  for (let at = bytes.indexOf(START_CODE); at >= 0 && at + 6 <= bytes.length; ) {
    const id = bytes[at + 3] as number;
    const isAudio = id >= FIRST_AUDIO && id <= LAST_AUDIO;
    const length = isAudio || id === PRIVATE_STREAM ? bytes.readUInt16BE(at + 4) : -2;
    const end = Math.min(at + 6 + length, bytes.length);
    const start = isAudio ? Math.min(findPayloadStart(bytes, at + 6), end) : at + 6;
    if (length >= 0) yield { id, start, end };
    at = bytes.indexOf(START_CODE, Math.max(end, at + 4));
  }
}

function findPayloadStart(bytes: Buffer, start: number): number {
  if (((bytes[start] ?? 0) & 0xc0) === 0x80) return start + 3 + (bytes[start + 2] ?? 0); // MPEG-2
  let at = start;
  while (bytes[at] === 0xff) at += 1;
  if (((bytes[at] ?? 0) & 0xc0) === 0x40) at += 2;
  const times = (bytes[at] ?? 0) & 0xf0;
  return at + (times === 0x20 ? 5 : times === 0x30 ? 10 : 1);
}
