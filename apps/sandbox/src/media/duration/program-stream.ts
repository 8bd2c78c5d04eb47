/** Extracts the audio of an MPEG program stream. Sources: ISO/IEC 11172-1 and 13818-1. */

/** Returns the joined payloads of the first audio stream. */
export function extractAudioStream(bytes: Buffer): Buffer {
  const chunks: Buffer[] = [];
  let stream: number | undefined;
  for (let at = 0; at + 6 <= bytes.length; ) {
    if (bytes.readUIntBE(at, 3) !== 1) {
      at += 1;
      continue;
    }
    const id = bytes[at + 3] ?? 0;
    if (id < 0xbb) {
      at += 4; // a pack header, or data within a video frame
      continue;
    }
    const end = at + 6 + bytes.readUInt16BE(at + 4);
    if (id >= 0xc0 && id <= 0xdf) {
      stream ??= id;
      if (id === stream) chunks.push(bytes.subarray(findPayloadStart(bytes, at + 6), end));
    }
    at = end;
  }
  return Buffer.concat(chunks);
}

function findPayloadStart(bytes: Buffer, start: number): number {
  if (((bytes[start] ?? 0) & 0xc0) === 0x80) return start + 3 + (bytes[start + 2] ?? 0); // MPEG-2
  let at = start;
  while (bytes[at] === 0xff) at += 1;
  if (((bytes[at] ?? 0) & 0xc0) === 0x40) at += 2;
  const times = (bytes[at] ?? 0) & 0xf0;
  return at + (times === 0x20 ? 5 : times === 0x30 ? 10 : 1);
}
