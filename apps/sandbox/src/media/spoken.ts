/** Sound as it is spoken: sent in pieces, before all of it is there. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Call } from '../router.ts';
import type { AppliedDirective } from './instructions.ts';
import { loseAnswer, type SandboxFile, sendFile, spoilt } from './sandbox-file.ts';

const PIECES = 8;

/** Sends it in `chunks` pieces, `chunk_delay` apart. The whole text is billed, however much of it is heard. */
export async function sendSpoken(
  call: Call,
  sound: SandboxFile,
  headers: Readonly<Record<string, string | number>>,
  { directive, fault }: AppliedDirective,
): Promise<void> {
  if (fault === 'lost') return loseAnswer(call);
  if (fault === 'too_large') return sendFile(call, sound, fault);
  const { type, bytes } = spoilt(sound, fault === 'broken' ? undefined : fault);
  const breaksOff = fault === 'cut' || fault === 'broken' || fault === 'stalled';
  const size = Math.max(1, Math.ceil(bytes.length / (directive.chunks ?? PIECES)));
  const end = breaksOff ? Math.floor(bytes.length / 2) : bytes.length;
  call.response.writeHead(200, { 'content-type': type, ...headers });
  for (let at = 0; at < end && !call.response.destroyed; at += size) {
    if (at > 0 && directive.chunkDelay > 0) await delay(directive.chunkDelay, undefined, { ref: false });
    const isLast = at + size >= end;
    const piece = bytes.subarray(at, Math.min(at + size, end));
    call.response.write(piece, () => {
      if (isLast && breaksOff && fault !== 'stalled') call.request.socket.destroy();
    });
  }
  if (!breaksOff) call.response.end();
}
