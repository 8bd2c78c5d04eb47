/**
 * Measures the audio in an MP4 file. AAC and MP3 are measured by the number of samples, whose length is fixed; other
 * audio by the time-to-sample table. Sources: ISO/IEC 14496-12, -14, -3.
 */
import type { MeasuredAudio } from './mpeg-frames.ts';

interface Box {
  readonly type: string;
  readonly content: Buffer;
}

const CONTAINERS = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'moof', 'traf', 'mvex']);
const AAC_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];
const AAC_SAMPLES = 1_024;
const MP3_SAMPLES = 1_152;
/** Object types of MPEG audio. Its layer is assumed to be III. */
const MP3_TYPES = [0x69, 0x6b];

/** Measures the longest audio track. @returns undefined if there is none */
export function measureMp4(bytes: Buffer): MeasuredAudio | undefined {
  const audioTracks: MeasuredAudio[] = [];
  const fragments = [...parseBoxes(bytes)]
    .filter(({ type }) => type === 'moof')
    .flatMap(({ content }) => parseFragments(content));
  for (const { content: movie } of [...parseBoxes(bytes)].filter(({ type }) => type === 'moov'))
    for (const { content: track } of [...parseBoxes(movie)].filter(({ type }) => type === 'trak')) {
      const audio = measureTrack(track, fragments);
      if (audio) audioTracks.push(audio);
    }
  return audioTracks.toSorted((one, other) => other.seconds - one.seconds)[0];
}

function* parseBoxes(bytes: Buffer): Generator<Box> {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const short = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    const isLong = short === 1 && at + 16 <= bytes.length;
    const size = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? bytes.length - at : short;
    if (size < 8) return;
    yield { type, content: bytes.subarray(at + (isLong ? 16 : 8), at + size) };
    at += size;
  }
}

/** Returns the content of the first box of a type; also searches within CONTAINERS. */
function findBox(bytes: Buffer, boxType: string): Buffer | undefined {
  for (const { type, content } of parseBoxes(bytes)) {
    if (type === boxType) return content;
    const nested = CONTAINERS.has(type) ? findBox(content, boxType) : undefined;
    if (nested) return nested;
  }
  return undefined;
}

interface Fragment {
  readonly track: number;
  readonly samples: number;
}

function parseFragments(moof: Buffer): readonly Fragment[] {
  return [...parseBoxes(moof)]
    .filter(({ type }) => type === 'traf')
    .map(({ content }) => ({
      track: findBox(content, 'tfhd')?.readUInt32BE(4) ?? 0,
      samples: [...parseBoxes(content)].reduce(
        (sum, { type, content: run }) => sum + (type === 'trun' ? run.readUInt32BE(4) : 0),
        0,
      ),
    }));
}

function measureTrack(track: Buffer, fragments: readonly Fragment[]): MeasuredAudio | undefined {
  const description = findBox(track, 'stsd');
  const head = findBox(track, 'tkhd');
  if (findBox(track, 'hdlr')?.toString('latin1', 8, 12) !== 'soun' || !description || !head) return undefined;
  const id = head.readUInt32BE(head[0] === 1 ? 20 : 12);
  const inFragments = fragments.reduce((sum, fragment) => sum + (fragment.track === id ? fragment.samples : 0), 0);
  const samples = (findBox(track, 'stsz')?.readUInt32BE(8) ?? 0) + inFragments;
  const [entry] = [...parseBoxes(description.subarray(8))];
  if (!entry) return undefined;
  const channels = entry.content.readUInt16BE(16);
  const coded = entry.type === 'mp4a' ? parseCodec(entry.content) : undefined;
  if (coded) return { seconds: (samples * coded.samples) / coded.rate, channels };
  return { seconds: getDurationSeconds(track), channels };
}

/** Returns the audio samples per MP4 sample and per second. @returns undefined unless AAC or MP3 with a known rate */
function parseCodec(entry: Buffer): { readonly samples: number; readonly rate: number } | undefined {
  const at = entry.indexOf('esds', 0, 'latin1');
  const decoder = at < 0 ? -1 : entry.indexOf(0x04, at + 8);
  if (decoder < 0) return undefined;
  const content = skipSize(entry, decoder + 1);
  if (MP3_TYPES.includes(entry[content] ?? 0)) return { samples: MP3_SAMPLES, rate: entry.readUInt32BE(24) / 0x10000 };
  if (entry[content + 13] !== 0x05) return undefined;
  const config = entry.readUInt16BE(skipSize(entry, content + 14));
  const rate = AAC_RATES[(config >> 7) & 15];
  return rate === undefined ? undefined : { samples: AAC_SAMPLES, rate };
}

/** Skips the size of a descriptor, which has up to four bytes. */
function skipSize(bytes: Buffer, start: number): number {
  let at = start;
  while (((bytes[at] ?? 0) & 0x80) !== 0 && at < start + 3) at += 1;
  return at + 1;
}

/** Returns the length by the time-to-sample table; 0 if this table or the media header is missing. */
function getDurationSeconds(track: Buffer): number {
  const mdhd = findBox(track, 'mdhd');
  const stts = findBox(track, 'stts');
  if (!mdhd || !stts) return 0;
  const timescale = mdhd.readUInt32BE(mdhd[0] === 1 ? 20 : 12);
  let units = 0;
  for (let at = 8; at + 8 <= stts.length; at += 8) units += stts.readUInt32BE(at) * stts.readUInt32BE(at + 4);
  return units / timescale;
}
