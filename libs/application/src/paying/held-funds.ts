/** Holds are in the stream of whoever pays: an account, or a challenge that was paid for one request. */
import { ACCOUNT, CHALLENGE, type HoldCommand, type HoldEvent, type Holds } from '#domain';
import type { Cause } from '#kernel';
import type { Streams } from '../streams.ts';

/** The category and the id in the name of a payer's stream. */
export function payerIn(stream: string): { readonly category: string; readonly id: string } {
  const [category = ''] = stream.split('-', 1);
  return { category, id: stream.slice(category.length + 1) };
}

/** Sends what is to become of holds to the stream of their payer, whichever kind it is of. */
export class HeldFunds {
  constructor(private readonly streams: Pick<Streams, 'accounts' | 'challenges'>) {}

  /** @param payer the name of its stream, as a hold has it. @throws Rejection, StoreUnavailable */
  async run(
    payer: string,
    command: HoldCommand,
    cause: Cause,
  ): Promise<{ readonly events: readonly HoldEvent[]; readonly state: Holds }> {
    const { category, id } = payerIn(payer);
    const { accounts, challenges } = this.streams;
    if (category === CHALLENGE) return challenges.run(id, command, cause) as Promise<Ended>;
    if (category === ACCOUNT) return accounts.run(id, command, cause) as Promise<Ended>;
    throw new Error(`${payer} holds no money`);
  }
}

/** Commands about holds are followed by facts about holds, in any stream. */
interface Ended {
  readonly events: readonly HoldEvent[];
  readonly state: Holds;
}
