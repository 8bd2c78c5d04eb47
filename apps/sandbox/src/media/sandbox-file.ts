/** Files that vendors have made: how they reach who asked for them, and what can be wrong with them. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Fault } from '../provider/directive.ts';
import { type Call, HttpError } from '../router.ts';

export interface SandboxFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Of a machine in a cloud, for whoever asks from within. */
const METADATA_SERVICE_URL = 'http://169.254.169.254/latest/meta-data/';
const CHUNK = Buffer.alloc(1024 * 1024);
/** Of a file that is too large: more than anybody wants. */
const TOO_LARGE_CHUNKS = 1_024;
/** In an answer, all of which is in memory. */
const TOO_LARGE_INLINE_BYTES = 64 * 1024 * 1024;

/** What no player and no viewer is to be given. */
const UNSAFE_FILES: Readonly<Record<string, SandboxFile>> = {
  html: {
    type: 'text/html; charset=utf-8',
    bytes: Buffer.from('<!DOCTYPE html><html><body><script>alert(document.cookie)</script></body></html>'),
  },
  svg: {
    type: 'image/svg+xml',
    bytes: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><script>alert(1)</script></svg>'),
  },
  exe: {
    type: 'application/x-msdownload',
    bytes: Buffer.concat([Buffer.from('MZ\x90\0\x03\0\0\0', 'latin1'), CHUNK.subarray(0, 504)]),
  },
};

/** The file itself is as it should be. */
const TRANSFER_FAULTS: ReadonlySet<Fault | undefined> = new Set(['too_large', 'broken', 'stalled']);

/** Hands a file out at its address. */
export async function sendFile(call: Call, file: SandboxFile, fault: Fault | undefined): Promise<void> {
  if (fault === 'expired') throw new HttpError(404, 'Not Found');
  if (fault === 'astray') throw new HttpError(302, '', { location: METADATA_SERVICE_URL });
  const { type, bytes } = applyFileFault(file, TRANSFER_FAULTS.has(fault) ? undefined : fault);
  if (fault === 'broken' || fault === 'stalled') {
    call.response.writeHead(200, { 'content-type': type, 'content-length': bytes.length });
    call.response.write(bytes.subarray(0, bytes.length / 2), () => {
      if (fault === 'broken') call.request.socket.destroy(); // else nothing more comes, and nobody says why
    });
  } else if (fault === 'too_large') {
    call.response.writeHead(200, { 'content-type': type });
    await pipeline(Readable.from(generateOversizedFile(bytes)), call.response).catch(() => {}); // who has had enough hangs up
  } else call.sendBytes(200, type, bytes);
}

/** A file that is part of an answer. */
export function applyFileFault(file: SandboxFile, fault: Fault | undefined): SandboxFile {
  const [, disguised, name = ''] = /^(disguised_)?(html|svg|exe)$/.exec(fault ?? '') ?? [];
  const unsafeFile = UNSAFE_FILES[name];
  if (unsafeFile) return disguised ? { ...file, bytes: unsafeFile.bytes } : unsafeFile;
  const { bytes } = file;
  if (fault === 'truncated' || fault === 'broken') return { ...file, bytes: bytes.subarray(0, bytes.length / 2) };
  if (fault === 'too_large') return { ...file, bytes: Buffer.concat([bytes, Buffer.alloc(TOO_LARGE_INLINE_BYTES)]) };
  return file;
}

function* generateOversizedFile(start: Buffer): Generator<Buffer> {
  yield start;
  for (let i = 0; i < TOO_LARGE_CHUNKS; i += 1) yield CHUNK;
}

/** Takes an answer away: what it was for is done, and billed. */
export function dropResponse({ request }: Call): void {
  request.socket.destroy();
}

/** Whether an answer is on the bill: not one that was refused for free, or never made. */
export function isBilled(fault: Fault | undefined): boolean {
  return fault !== 'policy' && fault !== 'malformed';
}

/** Sends an answer with what was made, unless it is to be lost, to break off, or to be no JSON. */
export function sendResponse(
  call: Call,
  body: object,
  fault: Fault | undefined,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (fault === 'lost') return void dropResponse(call);
  const json = JSON.stringify(body);
  const half = json.slice(0, json.length / 2);
  if (fault === 'malformed') return void call.sendJsonText(200, half, headers);
  if (fault !== 'cut') return void call.sendJsonText(200, json, headers);
  const length = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) };
  call.response.writeHead(200, { ...length, ...headers });
  call.response.write(half, () => call.request.socket.destroy());
}
