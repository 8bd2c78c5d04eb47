/**
 * The maximum duration of the audio in an MP4 file: for most codecs the number of samples in its tables and fragments,
 * multiplied by the maximum duration of a sample. Times in the file are not trusted. Source: ISO/IEC 14496-3, -12 and
 * -14. No library is used: the time of the one that was evaluated grows with the square of the samples in a chunk. It
 * needs 2.8 s for one chunk of 17 minutes.
 */
import { parseSampleLength } from './mp4-codecs.ts';
import { Fragments } from './mp4-fragments.ts';
import { measureMpegMs } from './mpeg-audio.ts';
import { MAX_PACKET_MS } from './opus.ts';

const CONTAINERS: ReadonlySet<string> = new Set(['moov', 'trak', 'mdia', 'minf', 'stbl', 'mvex', 'moof', 'traf']);
const MAX_DEPTH = 8;
const MAX_TRACKS = 128;
/** 8 kbit/s, for unknown codecs and for files with much data outside the samples. */
const MIN_BYTES_PER_SECOND = 1_000;
/** If samples are a smaller share of the file, the tables may lack some of the audio. */
const MIN_COVERED_SHARE = 0.5;
/** Tables and tags, which can be most of a short file. */
const MAX_OVERHEAD_BYTES = 64 * 1024;
const SAMPLE_DESCRIPTIONS_AT = 8;

interface Track {
  id: number;
  isAudio: boolean;
  isVideo: boolean;
  entries: Buffer | undefined;
  samples: number;
  bytes: number;
}

export function measureMp4Ms(file: Buffer): number {
  const layout: Mp4Layout = { tracks: [], fragments: new Fragments() };
  readLayout(file, layout, 0);
  const coveredBytes = layout.tracks.reduce((sum, { bytes }) => sum + bytes, layout.fragments.bytes);
  const lengths = layout.tracks
    .filter(hasAudio)
    .flatMap((track) => calculateDurations(track, layout.fragments, file.length));
  const numericLengths = lengths.filter((length) => length !== 'mpeg');
  const maxMs = Math.ceil(Math.max(0, ...numericLengths, lengths.includes('mpeg') ? measureMpegMs(file) : 0));
  const isCovered = coveredBytes >= file.length * MIN_COVERED_SHARE - MAX_OVERHEAD_BYTES;
  return maxMs === 0 || isCovered ? maxMs : Math.max(maxMs, Math.ceil((file.length / MIN_BYTES_PER_SECOND) * 1_000));
}

const NO_TRACK = { isAudio: false, isVideo: false, entries: undefined, samples: 0, bytes: 0 };

interface Mp4Layout {
  readonly tracks: Track[];
  readonly fragments: Fragments;
}

/** Decoders recognise an audio track by its handler, or by its codec if the handler is neither audio nor video. */
function hasAudio({ isAudio, isVideo, entries }: Track): boolean {
  return (
    isAudio || (!isVideo && entries !== undefined && listSampleLengths(entries).some((length) => length !== undefined))
  );
}

function listSampleLengths(entries: Buffer) {
  return [...readBoxes(entries)].map(({ type, start, end }) => parseSampleLength(type, entries.subarray(start, end)));
}

/** Returns the durations according to the sample descriptions of the track, because a decoder may use any of these. */
function calculateDurations(
  { id, entries, samples, bytes }: Track,
  fragments: Fragments,
  fileSize: number,
): readonly (number | 'mpeg')[] {
  const added = fragments.getSamples(id);
  const total = samples + added.samples;
  const size = bytes + added.bytes;
  if (total === 0 || !entries) return [];
  return [...new Set(listSampleLengths(entries))].map((length) => {
    if (length === 'mpeg') return length;
    if (!length) return Math.max(total * MAX_PACKET_MS, (size / MIN_BYTES_PER_SECOND) * 1_000);
    if (length.isPcm) return (fileSize / length.bytes) * length.milliseconds;
    // Samples that are larger than `length.bytes` on average may contain several samples each.
    return Math.max(total, Math.ceil(size / length.bytes)) * length.milliseconds;
  });
}

function readLayout(bytes: Buffer, layout: Mp4Layout, depth: number): void {
  if (depth > MAX_DEPTH) return;
  for (const { type, start, end } of readBoxes(bytes)) {
    const content = bytes.subarray(start, end);
    if (type === 'trak') layout.tracks.push({ id: 0, ...NO_TRACK });
    if (layout.tracks.length > MAX_TRACKS) throw new RangeError('too many tracks');
    const track = layout.tracks.at(-1);
    if (CONTAINERS.has(type)) readLayout(content, layout, depth + 1);
    else if (!layout.fragments.readBox(type, content) && track) readTrackBox(type, content, track);
  }
}

function readTrackBox(type: string, content: Buffer, track: Track): void {
  const readUint32 = (at: number) => (at + 4 <= content.length ? content.readUInt32BE(at) : 0);
  if (type === 'tkhd') track.id = readUint32(content[0] === 1 ? 20 : 12);
  else if (type === 'hdlr') readHandler(track, content.toString('latin1', 8, 12));
  else if (type === 'stsd') track.entries = content.subarray(SAMPLE_DESCRIPTIONS_AT);
  else if (type === 'stsz') addSizes(track, content);
  else if (type === 'stz2') track.samples += readUint32(8);
}

function readHandler(track: Track, handler: string): void {
  track.isAudio ||= handler === 'soun';
  track.isVideo ||= handler === 'vide';
}

/** The box has either one size for all samples, or one per sample. */
function addSizes(track: Track, content: Buffer): void {
  if (content.length < 12) return;
  const size = content.readUInt32BE(4);
  const samples = content.readUInt32BE(8);
  track.samples += samples;
  if (size > 0) track.bytes += size * samples;
  else for (let at = 12; at + 4 <= content.length; at += 4) track.bytes += content.readUInt32BE(at);
}

interface Box {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

function* readBoxes(bytes: Buffer): Generator<Box> {
  for (let at = 0; at + 8 <= bytes.length; ) {
    const short = bytes.readUInt32BE(at);
    const isLong = short === 1 && at + 16 <= bytes.length;
    const size = isLong ? Number(bytes.readBigUInt64BE(at + 8)) : short === 0 ? bytes.length - at : short;
    if (size < 8) return;
    const end = Math.min(at + size, bytes.length);
    yield { type: bytes.toString('latin1', at + 4, at + 8), start: at + (isLong ? 16 : 8), end };
    at += size;
  }
}
