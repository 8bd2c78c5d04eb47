/** Splits a response into frames, and applies the faults that end it early. */
import { type Frame, getFirstHalf, type StreamParts } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';

export interface Script {
  readonly frames: readonly Frame[];
  /** The last event of the body, whose frame is sent without its last byte. */
  readonly incomplete?: string;
}

/** The body ends within a frame: `cut` breaks the connection, and `cut_frame` ends the body regularly. */
const MID_FRAME_FAULTS: ReadonlySet<Fault | undefined> = new Set(['cut', 'cut_frame']);

export function createCompleteScript(json: string, visible: number, fault: Fault | undefined): Script {
  if (fault === 'malformed') return { frames: [{ event: getFirstHalf(json), tokens: 0 }] };
  const half = Math.floor(visible / 2);
  if (fault === 'no_done') return { frames: [{ event: getFirstHalf(json), tokens: half }] };
  if (MID_FRAME_FAULTS.has(fault)) return { frames: [{ event: '', tokens: half }], incomplete: json };
  return { frames: [{ event: json, tokens: visible }] };
}

export function createStreamScript(events: StreamParts, fault: Fault | undefined): Script {
  const { opening, content, closing, malformed, error } = events;
  if (fault === 'malformed') return { frames: [...toFreeFrames(opening), ...toFreeFrames(malformed)] };
  const half = [...toFreeFrames(opening), ...content.slice(0, content.length / 2).flatMap(splitFrame)];
  const next = content[Math.floor(content.length / 2)]?.event ?? closing;
  if (fault === 'error') return { frames: [...half, ...toFreeFrames(error)] };
  if (fault === 'no_done') return { frames: half };
  if (MID_FRAME_FAULTS.has(fault)) return { frames: half, incomplete: next };
  return { frames: [...toFreeFrames(opening), ...content.flatMap(splitFrame), ...toFreeFrames(closing)] };
}

/** Returns frames that cost nothing. */
function toFreeFrames(events: string): readonly Frame[] {
  return splitFrame({ event: events, tokens: 0 });
}

/** Gives each event its own frame. The tokens are charged with the last one. */
function splitFrame(frame: Frame): readonly Frame[] {
  const { event, tokens } = frame;
  if (event.indexOf('\n\n') === event.length - 2) return [frame];
  const events = event.split(/(?<=\n\n)/);
  return events.map((sseEvent, at) => ({ event: sseEvent, tokens: at === events.length - 1 ? tokens : 0 }));
}
