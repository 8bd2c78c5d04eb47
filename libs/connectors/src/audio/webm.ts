/**
 * The maximum duration of the audio in a WebM file, by its packets. Times in the file are not trusted. Source: RFC 8794
 * and 9559, RFC 6716, "Vorbis I specification" 4.2.2. No library is used: the evaluated one did not terminate for some
 * invalid files. The file is read once, from start to end.
 */
import { MAX_OPUS_MS, MAX_PACKET_MS, measureOpusPacketMs } from './opus.ts';

/** Elements whose children are read; all others are read as leaves. */
const MASTER_ELEMENTS: ReadonlySet<number> = new Set([0x18538067, 0x1654ae6b, 0xae, 0xe1, 0x1f43b675, 0xa0]);
const TRACK = 0xae;
const TRACK_NUMBER = 0xd7;
const CODEC = 0x86;
const CODEC_PRIVATE = 0x63a2;
const SAMPLING_FREQUENCY = 0xb5;
const CHANNELS = 0x9f;
const BIT_DEPTH = 0x6264;
/** Content encodings can strip parts of packets from blocks. */
const ENCODINGS = 0x6d80;
const BLOCKS: ReadonlySet<number> = new Set([0xa3, 0xa1]);
const CLUSTER = Buffer.from('1f43b675', 'hex');
const LACING = 0x06;
const MAX_TRACKS = 128;
const PCM = 'A_PCM/';
const MAX_PCM_RATE = 768_000;

/** Opus at 6 kbit/s, for data that is not in packets and for packets of unknown codecs. */
const MIN_BYTES_PER_SECOND = 750;
/** The header of a block. */
const MAX_PACKET_OVERHEAD_BYTES = 32;
/** Index and tags. */
const MAX_FILE_OVERHEAD_BYTES = 64 * 1024;
const VORBIS_RATE_AT = 12;
const VORBIS_BLOCKS_AT = 28;

interface Track {
  number: number;
  codec: string;
  settings: Buffer | undefined;
  isEncoded: boolean;
  /** In Hz. */
  rate: number;
  channels: number;
  bits: number;
}

/** The defaults of RFC 9559, 5.1.4.1.29; a bit depth has none. */
const NEW_TRACK = { number: 0, codec: '', settings: undefined, isEncoded: false, rate: 8_000, channels: 1, bits: 0 };

interface Packets {
  count: number;
  bytes: number;
  /** Total duration if the packets are Opus. */
  milliseconds: number;
}

export function measureWebmMs(file: Buffer): number {
  const tracks: Track[] = [];
  const packets = new Map<number, Packets>();
  for (const { id, content } of readElements(file)) {
    const track = tracks.at(-1);
    if (id === TRACK) tracks.push({ ...NEW_TRACK });
    else if (BLOCKS.has(id)) addBlock(content, packets);
    else if (!track) continue;
    else if (id === TRACK_NUMBER) track.number = readUnsigned(content);
    else if (id === SAMPLING_FREQUENCY) track.rate = readFloat(content) ?? track.rate;
    else if (id === CHANNELS) track.channels = readUnsigned(content);
    else if (id === BIT_DEPTH) track.bits = readUnsigned(content);
    else if (id === CODEC) track.codec = content.toString('latin1').replace(/\0+$/, '');
    else if (id === CODEC_PRIVATE) track.settings = content;
    else if (id === ENCODINGS) track.isEncoded = true;
    if (tracks.length > MAX_TRACKS || packets.size > MAX_TRACKS) throw new RangeError('too many tracks');
  }
  const audioTracks = tracks.filter(({ codec }) => codec.startsWith('A_'));
  const maxMs = Math.max(0, ...audioTracks.map((track) => calculateMilliseconds(track, packets.get(track.number))));
  const accountedBytes = [...packets.values()].reduce(
    (sum, { bytes, count }) => sum + bytes + count * MAX_PACKET_OVERHEAD_BYTES,
    0,
  );
  // Data that is not in packets may be audio that some decoders find.
  const unaccountedBytes = Math.max(0, file.length - MAX_FILE_OVERHEAD_BYTES - accountedBytes);
  return maxMs === 0 ? 0 : Math.ceil(maxMs + (unaccountedBytes / MIN_BYTES_PER_SECOND) * 1_000);
}

function addBlock(block: Buffer, packets: Map<number, Packets>): void {
  const head = readVint(block, 0);
  if (head === undefined || block.length < head.length + 4) return;
  const trackPackets = packets.get(head.value) ?? { count: 0, bytes: 0, milliseconds: 0 };
  packets.set(head.value, trackPackets);
  const isLaced = ((block[head.length + 2] as number) & LACING) !== 0;
  const content = block.subarray(head.length + 3);
  const count = isLaced ? (content[0] as number) + 1 : 1;
  trackPackets.count += count;
  trackPackets.bytes += content.length;
  trackPackets.milliseconds += isLaced ? count * MAX_OPUS_MS : measureOpusPacketMs(content);
}

/**
 * Each Vorbis packet may be a long block, half of which is new audio. A PCM packet has any number of samples, so its
 * bytes count. For unknown codecs, and without valid settings, the longer of two durations applies: the packets at the
 * maximum duration, or the bytes at the minimum rate.
 */
function calculateMilliseconds(track: Track, packets: Packets | undefined): number {
  if (!packets) return 0;
  const { codec, settings, isEncoded } = track;
  if (codec === 'A_OPUS') return isEncoded ? packets.count * MAX_OPUS_MS : packets.milliseconds;
  const pcmRate = codec.startsWith(PCM) && !isEncoded ? calculatePcmRate(track) : undefined;
  if (pcmRate !== undefined) return (packets.bytes / pcmRate) * 1_000;
  const start = codec === 'A_VORBIS' ? (settings?.indexOf('\x01vorbis', 0, 'latin1') ?? -1) : -1;
  if (settings === undefined || start < 0 || settings.length < start + VORBIS_BLOCKS_AT + 1)
    return Math.max(packets.count * MAX_PACKET_MS, (packets.bytes / MIN_BYTES_PER_SECOND) * 1_000);
  const longBlock = 2 ** ((settings[start + VORBIS_BLOCKS_AT] as number) >> 4);
  return ((packets.count * longBlock) / 2 / Math.max(1, settings.readUInt32LE(start + VORBIS_RATE_AT))) * 1_000;
}

/** Returns the bytes per second of PCM; undefined if decoders may reject or replace the values of the track. */
function calculatePcmRate({ rate, channels, bits }: Track): number | undefined {
  const isPlausible = rate >= 1 && rate <= MAX_PCM_RATE && channels >= 1 && channels <= 64 && bits >= 8 && bits <= 64;
  return isPlausible ? rate * channels * Math.floor(bits / 8) : undefined;
}

interface Element {
  readonly id: number;
  /** Empty for a master element, whose children follow. */
  readonly content: Buffer;
}

/**
 * Yields the elements in order. After invalid data, or a leaf of unknown size, reading continues at the next cluster.
 */
function* readElements(file: Buffer): Generator<Element> {
  for (let at = 0; at >= 0 && at < file.length; ) {
    const idLength = readVintLength(file, at);
    const size = idLength > 4 ? undefined : readVint(file, at + idLength);
    const id = size && file.readUIntBE(at, idLength);
    const start = at + idLength + (size?.length ?? 0);
    if (id !== undefined && MASTER_ELEMENTS.has(id)) {
      yield { id, content: EMPTY_BUFFER };
      at = start;
    } else if (id !== undefined && size && !size.isUnknown) {
      yield { id, content: file.subarray(start, start + size.value) };
      at = start + size.value;
    } else {
      at = file.indexOf(CLUSTER, at + 1);
    }
  }
}

const EMPTY_BUFFER = Buffer.alloc(0);

function readUnsigned(content: Buffer): number {
  return content.reduce((value, byte) => value * 256 + byte, 0);
}

/** @returns undefined unless there are four or eight bytes */
function readFloat(content: Buffer): number | undefined {
  if (content.length === 4) return content.readFloatBE();
  return content.length === 8 ? content.readDoubleBE() : undefined;
}

/** Returns the length of a variable-length integer in bytes. @returns 9, which is invalid, if its first byte is 0 */
function readVintLength(bytes: Buffer, at: number): number {
  return Math.clz32(bytes[at] ?? 0) - 23;
}

function readVint(bytes: Buffer, at: number) {
  const length = readVintLength(bytes, at);
  if (length > 8 || at + length > bytes.length) return undefined;
  let value = (bytes[at] as number) & (0xff >> length);
  let isUnknown = value === 0xff >> length;
  for (let i = 1; i < length; i++) {
    value = value * 256 + (bytes[at + i] as number);
    isUnknown &&= bytes[at + i] === 0xff;
  }
  return { length, value, isUnknown };
}
