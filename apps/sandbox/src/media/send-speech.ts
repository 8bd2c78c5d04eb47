/** Sends generated speech in chunks, like a provider that streams while it generates. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '../router.ts';
import type { AppliedDirective } from './directive-runner.ts';
import { applyFileFault, dropResponse, type SandboxFile, sendFile } from './sandbox-file.ts';

const DEFAULT_CHUNKS = 8;

/**
 * Sends the audio in at most `chunks` chunks with `chunk_delay` between them. The caller bills the full text, however
 * much of the audio is delivered.
 */
export async function sendSpeech(
  call: Call,
  audio: SandboxFile,
  headers: Readonly<Record<string, string | number>>,
  { directive, fault }: AppliedDirective,
): Promise<void> {
  if (fault === 'lost') return dropResponse(call);
  if (fault === 'too_large') return sendFile(call, audio, fault);
  const { type, bytes } = applyFileFault(audio, fault === 'broken' ? undefined : fault);
  const isInterrupted = fault === 'cut' || fault === 'broken' || fault === 'stalled';
  const size = Math.max(1, Math.ceil(bytes.length / (directive.chunks ?? DEFAULT_CHUNKS)));
  const end = isInterrupted ? Math.floor(bytes.length / 2) : bytes.length;
  call.response.writeHead(200, { 'content-type': type, ...headers });
  for (let at = 0; at < end && !call.response.destroyed; at += size) {
    if (at > 0 && directive.chunkDelay > 0) await delay(directive.chunkDelay, undefined, { ref: false });
    const isLast = at + size >= end;
    const chunk = bytes.subarray(at, Math.min(at + size, end));
    call.response.write(chunk, () => {
      if (isLast && isInterrupted && fault !== 'stalled') call.request.socket.destroy();
    });
  }
  if (!isInterrupted) call.response.end();
}
