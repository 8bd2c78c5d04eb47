/** Selects the last events of a completion whose hold is used up. */
import type { CountText } from '../../tokens/token-counter.ts';
import { formatSseEvent, parseSseEvents } from '../../wire/sse.ts';

/**
 * Returns as many of the first events as a hold covers.
 * @param remaining tokens that the hold still covers after all of these events; negative if it does not cover them
 * @param countText counts tokens like `remaining`
 */
export async function selectCoveredEvents(
  events: Uint8Array,
  remaining: number,
  countText: CountText,
): Promise<Uint8Array> {
  const all = await Promise.all(
    parseSseEvents(events).map(async (data) => ({ data, tokens: await countText(getGeneratedText(data)) })),
  );
  let rest = remaining + all.reduce((sum, { tokens }) => sum + tokens, 0);
  const covered = all.filter(({ tokens }) => {
    rest -= tokens;
    return rest >= 0;
  });
  return Buffer.from(covered.map(({ data }) => formatSseEvent(data)).join(''));
}

/** Returns all strings in the deltas of a chat chunk, or the delta of an event of the Responses API. */
function getGeneratedText(data: string): string {
  const event = JSON.parse(data) as {
    readonly choices?: readonly { readonly delta?: object }[];
    readonly delta?: unknown;
  };
  if (typeof event.delta === 'string') return event.delta;
  return (event.choices ?? []).flatMap(({ delta = {} }) => collectStrings(delta)).join('');
}

function collectStrings(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(collectStrings) : [];
}
