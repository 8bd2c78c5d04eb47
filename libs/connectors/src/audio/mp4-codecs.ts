/** How long a sample of a track of sound is at most, by its codec. Facts: ISO/IEC 14496-1, -3 and -14, ETSI TS 102 366, RFC 7845. */
import { LONGEST_OPUS_MS } from './opus.ts';

export interface SampleLength {
  readonly milliseconds: number;
  /** A sample has no more bytes than this, unless there are several in it. */
  readonly bytes: number;
  /** Samples lie in the file as they are: no more of them are played than there is room for, whatever tables say. */
  readonly isPlain?: boolean;
}

const AAC_RATES: readonly number[] = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];
const SLOWEST_AAC = 7_350;
const AAC_SAMPLES = 1_024;
const AAC_LOW_DELAY_SAMPLES = 512;
/** xHE-AAC. */
const USAC_SAMPLES = 4_096;
/** 256 kbit/s of two channels come to 372; the standard allows 768. */
const AAC_BYTES_OF_CHANNEL = 400;
/** Object types of AAC and its kin. Others have packets of lengths of their own. */
const AAC_TYPES: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 17, 19, 20, 22, 23, 29, 39, 42]);
const AC3_SAMPLES = 1_536;
const SLOWEST_AC3 = 32_000;
const AC3_BYTES = 64;
const ANY = Number.POSITIVE_INFINITY;
/** Bits of samples that are not packed (QuickTime File Format); 0 where the description says how many. */
const PLAIN_BITS: Readonly<Record<string, number>> = {
  ...{ 'raw ': 0, NONE: 0, twos: 0, sowt: 0, ulaw: 8, alaw: 8 },
  ...{ in24: 24, in32: 32, fl32: 32, fl64: 64 },
};
/** Object types of MPEG audio in `esds`: layers of MPEG-2 and MPEG-1. */
const MPEG_AUDIO: ReadonlySet<number> = new Set([0x69, 0x6b]);
const AAC: ReadonlySet<number> = new Set([0x40, 0x66, 0x67, 0x68]);

/**
 * @param entry the content of a sample description
 * @returns `mpeg` where there are frames of MPEG audio in it; undefined where it is not known
 */
export function sampleLength(type: string, entry: Buffer): SampleLength | 'mpeg' | undefined {
  switch (type) {
    case 'mp4a':
      return mp4aLength(entry);
    case '.mp3':
      return 'mpeg';
    case 'Opus':
      return { milliseconds: LONGEST_OPUS_MS, bytes: ANY };
    case 'ac-3':
    case 'ec-3':
      return { milliseconds: (AC3_SAMPLES / SLOWEST_AC3) * 1_000, bytes: AC3_BYTES };
    case 'alac':
      return alacLength(entry);
    default:
      return plainLength(type, entry);
  }
}

function plainLength(type: string, entry: Buffer): SampleLength | undefined {
  const told = PLAIN_BITS[type];
  if (told === undefined || entry.length < 28) return undefined;
  const [channels, bits] = [entry.readUInt16BE(16), told || entry.readUInt16BE(18)];
  const rate = entry.readUInt32BE(24) / 0x1_00_00;
  if (channels === 0 || bits < 8 || rate < 1) return undefined;
  return { milliseconds: 1_000 / rate, bytes: (channels * Math.min(bits, 64)) / 8, isPlain: true };
}

/** Undefined where its description is not as everybody writes it: another reader may find another one in it. */
function mp4aLength(entry: Buffer): SampleLength | 'mpeg' | undefined {
  const content = decoderConfig(entry);
  if (content === undefined) return undefined;
  const kind = entry[content] ?? 0;
  if (MPEG_AUDIO.has(kind)) return 'mpeg';
  if (!AAC.has(kind)) return undefined;
  const config =
    entry[content + 13] === 0x05
      ? aacConfig(new Bits(entry.subarray(behindSize(entry, content + 14))))
      : { rate: SLOWEST_AAC, samples: AAC_SAMPLES, channels: 1 };
  return (
    config && {
      milliseconds: (config.samples / config.rate) * 1_000,
      bytes: AAC_BYTES_OF_CHANNEL * config.channels,
    }
  );
}

/** Where the content of the decoder's descriptor begins, in the only `esds`, in a descriptor without flags (14496-1, 7.2.6.5). */
function decoderConfig(entry: Buffer): number | undefined {
  const at = entry.indexOf('esds', 0, 'latin1');
  if (at < 0 || entry.indexOf('esds', at + 1, 'latin1') >= 0 || entry[at + 8] !== 0x03) return undefined;
  const stream = behindSize(entry, at + 9);
  return entry[stream + 2] === 0 && entry[stream + 3] === 0x04 ? behindSize(entry, stream + 4) : undefined;
}

/** Undefined where it is no AAC. The rate is that of the core: what is doubled by SBR has twice the samples at twice the rate. */
function aacConfig(bits: Bits) {
  const type = objectType(bits);
  if (!AAC_TYPES.has(type)) return undefined;
  const index = bits.take(4);
  const rate = index === 15 ? bits.take(24) : (AAC_RATES[index] ?? SLOWEST_AAC);
  const channels = bits.take(4);
  const samples = type === 42 ? USAC_SAMPLES : type === 23 || type === 39 ? AAC_LOW_DELAY_SAMPLES : AAC_SAMPLES;
  return { rate: rate || SLOWEST_AAC, samples, channels: Math.max(1, channels === 7 ? 8 : channels) };
}

function objectType(bits: Bits): number {
  const type = bits.take(5);
  return type === 31 ? 32 + bits.take(6) : type;
}

/** What its own box says, or the description before it, whichever is slower. */
function alacLength(entry: Buffer): SampleLength | undefined {
  const at = entry.indexOf('alac', 0, 'latin1');
  if (at < 0 || at + 32 > entry.length || entry.length < 28) return undefined;
  const samples = entry.readUInt32BE(at + 8);
  const rates = [entry.readUInt32BE(at + 28), entry.readUInt32BE(24) / 0x1_00_00].filter((rate) => rate > 0);
  if (samples === 0 || rates.length === 0) return undefined;
  return { milliseconds: (samples / Math.min(...rates)) * 1_000, bytes: ANY };
}

/** Sizes of descriptors have up to four bytes. */
function behindSize(bytes: Buffer, start: number): number {
  let at = start;
  while (((bytes[at] ?? 0) & 0x80) !== 0 && at < start + 3) at += 1;
  return at + 1;
}

class Bits {
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  take(count: number): number {
    let value = 0;
    for (let i = 0; i < count; i++, this.at++)
      value = value * 2 + (((this.bytes[this.at >> 3] ?? 0) >> (7 - (this.at & 7))) & 1);
    return value;
  }
}
