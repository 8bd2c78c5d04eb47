/**
 * Generates videos of one colour in H.264, constrained baseline profile. The first frame has one block of samples, from
 * which its other blocks are predicted. All later frames repeat the first one. Source: ITU-T H.264, 7.3 and 9.
 */

import { createSilentTrack } from './audio.ts';
import { packBits, toBits, encodeUnsignedGolomb as ue } from './bits.ts';
import { toColour, toYCbCr } from './images.ts';
import { createBox, createMp4, encodeUint32s, type LengthClaims, type Track } from './mp4.ts';

export interface VideoSpec {
  /** The same seed has the same colour. */
  readonly seed: string;
  readonly seconds: number;
  readonly width: number;
  readonly height: number;
  /** Adds a silent audio track. */
  readonly hasAudio?: boolean;
  /** Lengths that the file claims instead of the actual one. */
  readonly claims?: LengthClaims;
}

const FRAMES_PER_SECOND = 24;
/** Time units per frame. */
const TICKS = 1_000;
const BLOCK = 16;
/** Frame numbers have four bits. */
const FRAME_NUMBERS = 16;
/** Level 5.1, sufficient for 4096 × 2304. */
const LEVEL = 51;

export function createVideo({ seed, seconds, width, height, hasAudio = false, claims }: VideoSpec): Buffer {
  const across = Math.ceil(width / BLOCK);
  const down = Math.ceil(height / BLOCK);
  const frames = Math.max(1, Math.round(seconds * FRAMES_PER_SECOND));
  const key = encodeKeyFrame(seed, across, down);
  const rest = Array.from({ length: frames - 1 }, (_, i) => encodeRepeatFrame((i + 1) % FRAME_NUMBERS, across * down));
  const video: Track = {
    kind: 'video',
    timescale: FRAMES_PER_SECOND * TICKS,
    step: TICKS,
    samples: [key, ...rest].map((unit) => Buffer.concat([encodeUint32s(unit.length), unit])),
    entry: createSampleEntry(width, height, across, down),
    width,
    height,
  };
  return createMp4('mp42', [video, ...(hasAudio ? [createSilentTrack(seconds)] : [])], claims);
}

function createSampleEntry(width: number, height: number, across: number, down: number): Buffer {
  const sps = createSequenceParameterSet(width, height, across, down);
  const pps = encodeNalUnit(0x68, '11' + '00' + '111' + '000' + '111' + '000');
  const head = Buffer.from([1, 66, 0xc0, LEVEL, 0xff, 0xe1, ...encodeUint16(sps.length)]);
  const avcC = createBox('avcC', head, sps, Buffer.from([1, ...encodeUint16(pps.length)]), pps);
  const size = Buffer.from([...encodeUint16(width), ...encodeUint16(height)]);
  const resolution = encodeUint32s(0x480000, 0x480000, 0);
  const rest = Buffer.concat([Buffer.from([0, 1]), Buffer.alloc(32), Buffer.from([0, 24, 0xff, 0xff])]);
  return createBox('avc1', encodeUint32s(0, 1), Buffer.alloc(16), size, resolution, rest, avcC);
}

function createSequenceParameterSet(width: number, height: number, across: number, down: number): Buffer {
  const encodeCrop = (have: number, want: number) => ue(Math.floor((have * BLOCK - want) / 2));
  const counts = `${ue(0) + ue(0) + ue(2) + ue(1)}0`;
  const size = `${ue(across - 1) + ue(down - 1)}11`;
  const crop = `1${ue(0)}${encodeCrop(across, width)}${ue(0)}${encodeCrop(down, height)}`;
  return encodeNalUnit(0x67, `${toBits(66, 8) + toBits(0xc0, 8) + toBits(LEVEL, 8) + counts + size + crop}0`);
}

/** Encodes one block of samples. All other blocks are predicted as the mean of their neighbours, without a residual. */
function encodeKeyFrame(seed: string, across: number, down: number): Buffer {
  const [y, cb, cr] = toYCbCr(toColour(seed));
  const head = `${ue(0)}${ue(7)}${ue(0)}${toBits(0, 4)}${ue(0)}001${ue(25)}`;
  const start = head.padEnd(Math.ceil(head.length / 8) * 8, '0');
  const samples = [y, cb, cr].map((value, i) => toBits(value, 8).repeat(i === 0 ? 256 : 64)).join('');
  const like = `${ue(3)}11`;
  const blockAfterSamples = `${like}000011`;
  const predictedBlock = `${like}1`;
  const firstRow = across > 1 ? blockAfterSamples + predictedBlock.repeat(across - 2) : '';
  const otherRows = down > 1 ? blockAfterSamples + predictedBlock.repeat(across * (down - 1) - 1) : '';
  return encodeNalUnit(0x65, start + samples + firstRow + otherRows);
}

function encodeRepeatFrame(frame: number, blocks: number): Buffer {
  return encodeNalUnit(0x41, `${ue(0)}${ue(5)}${ue(0)}${toBits(frame, 4)}0001${ue(blocks)}`);
}

/** Appends the stop bit and inserts emulation prevention bytes, so that the data contains no start code. */
function encodeNalUnit(head: number, bits: string): Buffer {
  const bytes: number[] = [head];
  let zeros = 0;
  for (const byte of packBits(`${bits}1`)) {
    if (zeros === 2 && byte <= 3) {
      bytes.push(3);
      zeros = 0;
    }
    bytes.push(byte);
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(bytes);
}

function encodeUint16(value: number): readonly [number, number] {
  return [value >> 8, value & 0xff];
}
