/** Calculates the maximum tokens of audio within a message. */

/** No provider counts more than one token per four base64 characters of audio with at least the minimum bit rate. */
const BASE64_CHARACTERS_PER_TOKEN = 4;
/** With fewer bytes per second, audio has more tokens than its size suggests. */
const MIN_BYTES_PER_SECOND = 1_000;
/** Number of bytes that are decoded to detect the format. */
const HEAD_BYTES = 64;
const WAV_PCM = 1;
const ID3_BYTES = 10;

/**
 * Returns the maximum tokens of audio, by its size if every second has a minimum number of bytes. This is checked for
 * uncompressed samples in WAV, and holds for MP3, whose frames have at least 8 kbit/s.
 * @param data in base64
 * @returns infinity for any other audio: FLAC, for example, stores hours of a constant signal in a few bytes
 */
export function countMaxAudioTokens(data: unknown): number {
  if (typeof data !== 'string') return Number.POSITIVE_INFINITY;
  return isSizeProportional(data) ? data.length / BASE64_CHARACTERS_PER_TOKEN : Number.POSITIVE_INFINITY;
}

function isSizeProportional(data: string): boolean {
  const head = decodeBytesAt(data, 0);
  if (head.toString('latin1', 0, 4) === 'RIFF') return isPcmWav(head);
  const isTagged = head.toString('latin1', 0, 3) === 'ID3' && head.length >= ID3_BYTES;
  return isMp3(isTagged ? decodeBytesAt(data, ID3_BYTES + readTagLength(head)) : head);
}

/** http://soundfile.sapp.org/doc/WaveFormat/ */
function isPcmWav(head: Buffer): boolean {
  if (head.length < 44 || head.toString('latin1', 8, 16) !== 'WAVEfmt ') return false;
  const [sampleRate, bytesPerFrame] = [head.readUInt32LE(24), head.readUInt16LE(32)];
  return head.readUInt16LE(20) === WAV_PCM && sampleRate * bytesPerFrame >= MIN_BYTES_PER_SECOND;
}

/**
 * An MP3 frame starts with eleven set bits, and its layer is not 0:
 * http://www.mp3-tech.org/programmer/frame_header.html
 */
function isMp3(head: Buffer): boolean {
  const [first = 0, second = 0] = head;
  return first === 0xff && (second & 0xe0) === 0xe0 && (second & 0x06) !== 0;
}

/** The length has seven bits per byte: https://id3.org/id3v2.4.0-structure */
function readTagLength(head: Buffer): number {
  return [6, 7, 8, 9].reduce((length, at) => length * 128 + ((head[at] ?? 0) & 0x7f), 0);
}

function decodeBytesAt(data: string, from: number): Buffer {
  const start = Math.floor(from / 3) * 4;
  const bytes = Buffer.from(data.slice(start, start + HEAD_BYTES * 2), 'base64');
  return bytes.subarray(from % 3, HEAD_BYTES + (from % 3));
}
