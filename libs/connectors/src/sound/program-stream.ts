/** What an MPEG program stream has for the ear. Facts: ISO/IEC 11172-1 and 13818-1. */
import { mpegMilliseconds } from './mpeg-audio.ts';

const FIRST_SOUND = 0xc0;
const LAST_SOUND = 0xdf;
/** Where DVDs have their sound, in codecs that are not counted. */
const PRIVATE = 0xbd;
/** Bytes of a second, of AC-3 at 32 kbit/s. */
const LOWEST_RATE = 4_000;

export function programStreamMilliseconds(bytes: Buffer): number {
  const streams = new Map<number, Buffer[]>();
  let hidden = 0;
  for (let at = bytes.indexOf(START); at >= 0 && at + 6 <= bytes.length; ) {
    const id = bytes[at + 3] as number;
    const isSound = id >= FIRST_SOUND && id <= LAST_SOUND;
    const end = isSound || id === PRIVATE ? at + 6 + bytes.readUInt16BE(at + 4) : at + 4;
    if (id === PRIVATE) hidden += end - at;
    if (isSound) {
      const pieces = streams.get(id) ?? [];
      pieces.push(bytes.subarray(payloadFrom(bytes, at + 6), end));
      streams.set(id, pieces);
    }
    at = bytes.indexOf(START, end);
  }
  const counted = [...streams.values()].map((pieces) => mpegMilliseconds(Buffer.concat(pieces)));
  return Math.max(0, ...counted, Math.ceil((hidden / LOWEST_RATE) * 1_000));
}

const START = Buffer.from([0, 0, 1]);

function payloadFrom(bytes: Buffer, start: number): number {
  if (((bytes[start] ?? 0) & 0xc0) === 0x80) return start + 3 + (bytes[start + 2] ?? 0); // MPEG-2
  let at = start;
  while (bytes[at] === 0xff) at += 1;
  if (((bytes[at] ?? 0) & 0xc0) === 0x40) at += 2;
  const times = (bytes[at] ?? 0) & 0xf0;
  return at + (times === 0x20 ? 5 : times === 0x30 ? 10 : 1);
}
