/** Measures MPEG audio (MP3 and the older layers) frame by frame. Sources: ISO/IEC 11172-3 and 13818-3, 2.4. */

export interface MeasuredAudio {
  readonly seconds: number;
  readonly channels: number;
}

/** kbit/s by version and layer. */
const BIT_RATES: Readonly<Record<string, readonly number[]>> = {
  '1-1': [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  '1-2': [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  '1-3': [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  '2-1': [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  '2-2': [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  '2-3': [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const RATES = [44_100, 48_000, 32_000];
/** By the two version bits. MPEG-2 halves the rates, MPEG-2.5 halves them again. */
const DIVISORS: Readonly<Record<number, number>> = { 3: 1, 2: 2, 0: 4 };
/** Marks of a first frame that has a table of contents and no audio. */
const TABLES = ['Xing', 'Info', 'VBRI'];

/** @returns undefined if there is no frame */
export function measureMpeg(bytes: Buffer): MeasuredAudio | undefined {
  let at = 0;
  let seconds = 0;
  let channels = 0;
  while (at + 4 <= bytes.length) {
    const frame = parseFrame(bytes, at);
    if (!frame) {
      at += 1;
      continue;
    }
    channels ||= frame.channels;
    const isTable = seconds === 0 && TABLES.some((name) => bytes.subarray(at, at + 200).includes(name, 0, 'latin1'));
    if (!isTable) seconds += frame.seconds;
    at += frame.size;
  }
  return channels === 0 ? undefined : { seconds, channels };
}

/** Returns the length of an ID3 tag; 0 without a tag. Its size field has four groups of seven bits. */
export function skipTag(bytes: Buffer): number {
  if (bytes.toString('latin1', 0, 3) !== 'ID3' || bytes.length < 10) return 0;
  return 10 + bytes.subarray(6, 10).reduce((size, byte) => size * 128 + (byte & 0x7f), 0);
}

function parseFrame(bytes: Buffer, at: number): (MeasuredAudio & { readonly size: number }) | undefined {
  const head = bytes.readUInt32BE(at);
  const divisor = DIVISORS[(head >>> 19) & 3];
  const layer = 4 - ((head >>> 17) & 3);
  if (head >>> 21 !== 0x7ff || divisor === undefined || layer === 4) return undefined;
  const kilobits = BIT_RATES[`${divisor === 1 ? 1 : 2}-${layer}`]?.[((head >>> 12) & 15) - 1];
  const rate = (RATES[(head >>> 10) & 3] ?? 0) / divisor;
  if (kilobits === undefined || rate === 0) return undefined;
  const padding = (head >>> 9) & 1;
  const samples = layer === 1 ? 384 : layer === 3 && divisor > 1 ? 576 : 1_152;
  const slot = layer === 1 ? 4 : 1;
  const size = (Math.floor((samples * kilobits * 125) / rate / slot) + padding) * slot;
  return { seconds: samples / rate, channels: ((head >>> 6) & 3) === 3 ? 1 : 2, size };
}
