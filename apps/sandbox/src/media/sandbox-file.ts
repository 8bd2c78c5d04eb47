/** Generated files of media providers: how they are sent, and their faults. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Fault } from '../provider/directive.ts';
import { type Call, HttpError } from '../router.ts';

export interface SandboxFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** The metadata service of cloud hosts, which returns secrets to requests from the host. */
const METADATA_SERVICE_URL = 'http://169.254.169.254/latest/meta-data/';
const CHUNK = Buffer.alloc(1024 * 1024);
/** Number of chunks that `too_large` adds to a file: 1 GiB. */
const TOO_LARGE_CHUNKS = 1_024;
/** Bytes that `too_large` adds to a file within a response. The response is held in memory. */
const TOO_LARGE_INLINE_BYTES = 64 * 1024 * 1024;

/** Files that a browser or an operating system could execute. */
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

/** Faults of the transfer; the file itself is valid. */
const TRANSFER_FAULTS: ReadonlySet<Fault | undefined> = new Set(['too_large', 'broken', 'stalled']);

/**
 * Sends a file as the response, with the fault.
 * @throws HttpError 404 for `expired`, 302 for `astray`
 */
export async function sendFile(call: Call, file: SandboxFile, fault: Fault | undefined): Promise<void> {
  if (fault === 'expired') throw new HttpError(404, 'Not Found');
  if (fault === 'astray') throw new HttpError(302, '', { location: METADATA_SERVICE_URL });
  const { type, bytes } = applyFileFault(file, TRANSFER_FAULTS.has(fault) ? undefined : fault);
  if (fault === 'broken' || fault === 'stalled') {
    call.response.writeHead(200, { 'content-type': type, 'content-length': bytes.length });
    call.response.write(bytes.subarray(0, bytes.length / 2), () => {
      if (fault === 'broken') call.request.socket.destroy(); // `stalled` leaves the connection open
    });
  } else if (fault === 'too_large') {
    call.response.writeHead(200, { 'content-type': type });
    // The client may disconnect before the end.
    await pipeline(Readable.from(generateOversizedFile(bytes)), call.response).catch(() => {});
  } else call.sendBytes(200, type, bytes);
}

/** Returns the file with a fault of its type or bytes; any other fault changes nothing. */
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

/** Drops the response of a request that is processed and billed. */
export function dropResponse({ request }: Call): void {
  request.socket.destroy();
}

/** Whether a response is billed: with `policy` and `malformed` it is not. */
export function isBilled(fault: Fault | undefined): boolean {
  return fault !== 'policy' && fault !== 'malformed';
}

/** Sends a JSON response, which the fault may lose, interrupt or invalidate. */
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
