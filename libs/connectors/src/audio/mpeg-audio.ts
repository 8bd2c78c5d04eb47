/** The maximum duration of MPEG audio: layers I, II and III (MP3). Source: ISO/IEC 11172-3 and 13818-3, 2.4. */

/** kbit/s by layer and by the index in the frame header. */
const MPEG_1_BITRATES: Readonly<Record<number, readonly number[]>> = {
  1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
};
const LOW: readonly number[] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const MPEG_2_BITRATES: Readonly<Record<number, readonly number[]>> = {
  1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  2: LOW,
  3: LOW,
};
const RATES: readonly number[] = [44_100, 48_000, 32_000];
/** By the two version bits: MPEG-2.5, reserved, MPEG-2, MPEG-1. */
const RATE_DIVISORS: readonly number[] = [4, 0, 2, 1];

/**
 * A power of two above the longest frame with a specified length: 2,881 bytes, in layer II at 160 kbit/s and 8 kHz with
 * padding.
 */
const MAX_FRAME_BYTES = 4 * 1_024;
/** How far decoders search for the next frame after invalid data. */
const MAX_GAP_BYTES = 8 * 1_024;
/** 8 kbit/s, for data outside frames, which may be audio in another codec. */
const MIN_BYTES_PER_SECOND = 1_000;
/** Tags and other metadata. */
const MAX_OVERHEAD_BYTES = 16 * 1024;
const TAG_HEADER_BYTES = 10;
/** ID3v1, at the end. */
const TRAILING_TAG_BYTES = 128;
/** The number of consecutive frames after which all decoders take a file for MPEG audio. */
const LEADING_FRAMES = 8;
const MICROSECONDS = 1_000_000;

/** The properties of a frame that follow from the second and third byte of its header. */
interface FrameHeader {
  /** Microseconds. */
  readonly duration: number;
  /** Bytes; 0 if the header does not specify the length ("free format"). */
  readonly length: number;
  /** Version, layer and sample rate: the same in all frames of a stream. */
  readonly stream: number;
}

const FRAME_HEADERS: readonly (FrameHeader | undefined)[] = Array.from({ length: 0x1_00_00 }, (_, bits) =>
  parseFrameHeader(bits >> 8, bits & 0xff),
);

function parseFrameHeader(second: number, third: number): FrameHeader | undefined {
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const index = third >> 4;
  const rateIndex = (third >> 2) & 3;
  const divisor = RATE_DIVISORS[version] as number;
  if ((second & 0xe0) !== 0xe0 || divisor === 0 || layer === 4 || index === 15 || rateIndex === 3) return undefined;
  const rate = (RATES[rateIndex] as number) / divisor;
  const kilobits = (version === 3 ? MPEG_1_BITRATES : MPEG_2_BITRATES)[layer]?.[index] as number;
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152;
  const slot = layer === 1 ? 4 : 1;
  const padding = (third >> 1) & 1;
  const length = kilobits === 0 ? 0 : (Math.floor((samples * kilobits * 125) / rate / slot) + padding) * slot;
  return {
    duration: Math.ceil((samples * MICROSECONDS) / rate),
    length,
    stream: (version << 4) | (layer << 2) | rateIndex,
  };
}

/**
 * Returns the maximum duration in milliseconds: the sum of three parts, or 0 if the first two contain no frame.
 * - The consecutive frames from the first one on, which every decoder plays.
 * - Before and after them, the longest selection of frames that do not overlap. The next frame header of the same
 *   stream, or the end of the data, must come at most `MAX_GAP_BYTES` after the end of each of these frames.
 * - All other data except leading tags and `MAX_OVERHEAD_BYTES`, by its size, because it may be audio in another codec.
 */
export function measureMpegMs(bytes: Uint8Array): number {
  const tags = skipTags(bytes);
  const run = findConsecutiveFrames(bytes, tags);
  const readings = [findMaxReading(bytes.subarray(0, run.from)), findMaxReading(bytes.subarray(run.to))];
  const duration = readings.reduce((sum, reading) => sum + reading.duration, run.duration);
  const covered = readings.reduce((sum, reading) => sum + reading.covered, run.to - run.from);
  const uncoveredBytes = Math.max(0, bytes.length - tags - covered - MAX_OVERHEAD_BYTES);
  return duration === 0 ? 0 : Math.ceil(duration / 1_000 + (uncoveredBytes / MIN_BYTES_PER_SECOND) * 1_000);
}

/**
 * Returns the range of consecutive frames of one stream after the tags and zeros. The range is empty if there are fewer
 * than `LEADING_FRAMES` frames, and more data than a trailing tag follows.
 */
function findConsecutiveFrames(bytes: Uint8Array, tags: number): { from: number; to: number; duration: number } {
  const from = skipZeros(bytes, tags);
  const stream = getFrameHeader(bytes, from)?.stream;
  let to = from;
  let duration = 0;
  for (let frames = 0; ; frames++) {
    const kind = getFrameHeader(bytes, to);
    const isNext = kind !== undefined && kind.stream === stream && kind.length > 0 && to + kind.length <= bytes.length;
    if (isNext) {
      to += kind.length;
      duration += kind.duration;
    } else if (frames < LEADING_FRAMES && to + TRAILING_TAG_BYTES < bytes.length) {
      return { from: 0, to: 0, duration: 0 }; // too few for a decoder to start
    } else {
      return { from, to, duration };
    }
  }
}

function getFrameHeader(bytes: Uint8Array, at: number): FrameHeader | undefined {
  return bytes[at] === 0xff ? FRAME_HEADERS[((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0)] : undefined;
}

interface Reading {
  /** Microseconds. */
  readonly duration: number;
  /** The maximum number of bytes that frames can cover; not necessarily the frames of `duration`. */
  readonly covered: number;
}

/**
 * Finds the selection of frames without overlaps that has the maximum duration, from the end to the start. The maximum
 * from a byte on is the larger of two values: the maximum from the next byte on, or the duration of a frame that starts
 * here plus the maximum from the end of that frame on. The buffers hold only the maxima within one frame length.
 */
function findMaxReading(bytes: Uint8Array): Reading {
  const mask = MAX_FRAME_BYTES - 1;
  const durations = new Float64Array(MAX_FRAME_BYTES);
  const coverages = new Float64Array(MAX_FRAME_BYTES);
  const last = new Float64Array(64).fill(bytes.length);
  const lastFree = new Float64Array(64).fill(bytes.length);
  let duration = 0;
  let covered = 0;
  for (let at = bytes.length - 1; at >= 0; at--) {
    const kind = getFrameHeader(bytes, at);
    if (kind) {
      const { stream } = kind;
      const nominalLength = kind.length > 0 ? kind.length : (lastFree[stream] as number) - at;
      const length = Math.min(nominalLength, bytes.length - at);
      const hasNext = (last[stream] as number) - (at + length) <= MAX_GAP_BYTES;
      if (hasNext && length < MAX_FRAME_BYTES && length > 0) {
        const end = (at + length) & mask;
        const isLast = at + length === bytes.length;
        duration = Math.max(duration, kind.duration + (isLast ? 0 : (durations[end] as number)));
        covered = Math.max(covered, length + (isLast ? 0 : (coverages[end] as number)));
      }
      last[stream] = at;
      if (kind.length === 0) lastFree[stream] = at;
    }
    durations[at & mask] = duration;
    coverages[at & mask] = covered;
  }
  return { duration, covered };
}

/**
 * Whether consecutive frames of one stream follow the tags and zeros: at least `LEADING_FRAMES`, or all data except a
 * trailing tag. Tags alone do not suffice, because decoders also play other formats that follow tags.
 */
export function isMpegAudio(bytes: Uint8Array): boolean {
  let at = skipZeros(bytes, skipTags(bytes));
  const stream = getFrameHeader(bytes, at)?.stream;
  for (let frames = 0; frames < LEADING_FRAMES; frames++) {
    const kind = getFrameHeader(bytes, at);
    if (!kind || kind.stream !== stream) return false;
    at += kind.length || findFreeFormatLength(bytes, at, kind);
    if (at + TRAILING_TAG_BYTES >= bytes.length) return true;
  }
  return true;
}

/** Returns the distance to the next header with the same first three bytes, but at most `MAX_FRAME_BYTES`. */
function findFreeFormatLength(bytes: Uint8Array, at: number, kind: FrameHeader): number {
  let next = at + 1;
  while (next < at + MAX_FRAME_BYTES && getFrameHeader(bytes, next) !== kind) next += 1;
  return next - at;
}

/**
 * Returns the offset after all leading ID3v2 tags. Their sizes have seven bits in each of four bytes (ID3v2.4.0, 3.1).
 */
function skipTags(bytes: Uint8Array): number {
  let at = 0;
  while (
    bytes[at] === 0x49 &&
    bytes[at + 1] === 0x44 &&
    bytes[at + 2] === 0x33 &&
    at + TAG_HEADER_BYTES <= bytes.length
  ) {
    const hasFoot = ((bytes[at + 5] as number) & 0x10) !== 0;
    const size = bytes.subarray(at + 6, at + TAG_HEADER_BYTES).reduce((sum, byte) => sum * 128 + (byte & 0x7f), 0);
    at += TAG_HEADER_BYTES + size + (hasFoot ? TAG_HEADER_BYTES : 0);
  }
  return at;
}

function skipZeros(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === 0) at += 1;
  return at;
}
