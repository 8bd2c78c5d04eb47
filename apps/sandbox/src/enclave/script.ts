/** What an answer has to be sent, frame by frame, with what goes wrong on request. */
import { type Events, type Frame, firstHalf } from '../provider/delivery.ts';
import type { Fault } from '../provider/directive.ts';

export interface Script {
  readonly frames: readonly Frame[];
  /** What follows without its last byte, and is the end. */
  readonly incomplete?: string;
}

/** The body ends within a frame: with the connection, or as if it were whole. */
const WITHIN_A_FRAME: ReadonlySet<Fault | undefined> = new Set(['cut', 'cut_frame']);

export function scriptOfWhole(json: string, visible: number, fault: Fault | undefined): Script {
  if (fault === 'malformed') return { frames: [{ event: firstHalf(json), tokens: 0 }] };
  const half = Math.floor(visible / 2);
  if (fault === 'no_done') return { frames: [{ event: firstHalf(json), tokens: half }] };
  if (WITHIN_A_FRAME.has(fault)) return { frames: [{ event: '', tokens: half }], incomplete: json };
  return { frames: [{ event: json, tokens: visible }] };
}

export function scriptOfStream(events: Events, fault: Fault | undefined): Script {
  const { opening, content, closing, broken, error } = events;
  if (fault === 'malformed') return { frames: [...untold(opening), ...untold(broken)] };
  const half = [...untold(opening), ...content.slice(0, content.length / 2).flatMap(split)];
  const next = content[Math.floor(content.length / 2)]?.event ?? closing;
  if (fault === 'error') return { frames: [...half, ...untold(error)] };
  if (fault === 'no_done') return { frames: half };
  if (WITHIN_A_FRAME.has(fault)) return { frames: half, incomplete: next };
  return { frames: [...untold(opening), ...content.flatMap(split), ...untold(closing)] };
}

/** Events that cost nothing. */
function untold(events: string): readonly Frame[] {
  return split({ event: events, tokens: 0 });
}

/** Each event has a frame of its own; what is charged is so with the last. */
function split(frame: Frame): readonly Frame[] {
  const { event, tokens } = frame;
  if (event.indexOf('\n\n') === event.length - 2) return [frame];
  const events = event.split(/(?<=\n\n)/);
  return events.map((each, at) => ({ event: each, tokens: at === events.length - 1 ? tokens : 0 }));
}
