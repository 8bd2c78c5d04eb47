import { createStreams, type Streams } from '#application';
import type { Foundation } from '#foundation';
import { formatUsd, money, NO_SNAPSHOTS, type PicoUsd } from '#kernel';
import { openPool } from '#postgres';
import { type ChallengeView, READ_MODEL_CONNECTION_OPTIONS, readChallenges } from '#projections';

type Print = (line: string) => void;

/** Maximum number of streams that are read at once. */
export const MAX_CONCURRENT_READS = 32;

interface PaidChallenge extends ChallengeView {
  readonly model: string;
  readonly reference: string;
  readonly usableUntil: string;
}

/**
 * Lists the pay-per-request payments of which an amount is owed or held. Those that can still be used or are in use
 * come first. Also lists the payments whose unused amount became income.
 */
export async function printChallenges(
  { databaseUrl, settings, store, runtime }: Pick<Foundation, 'databaseUrl' | 'settings' | 'store' | 'runtime'>,
  print: Print,
  now = new Date().toISOString(),
): Promise<void> {
  const pool = openPool({
    connectionString: databaseUrl,
    name: 'ledger',
    max: 1,
    options: READ_MODEL_CONNECTION_OPTIONS,
  });
  try {
    const streams = createStreams(store, NO_SNAPSHOTS, runtime);
    const challenges = await addAllTerms(await readChallenges(pool), streams);
    const owed = challenges.filter(({ available, held }) => available !== 0n || held !== 0n);
    const isUsable = ({ usableUntil, state }: PaidChallenge) => usableUntil >= now || state === 'running';
    const [usable, unclaimed] = [owed.filter(isUsable), owed.filter((challenge) => !isUsable(challenge))];
    print(`${owed.length} payments are unused or partly used: ${formatOwedTotals(owed)}`);
    print(`${usable.length} can still be used or are in use: ${formatOwedTotals(usable)}`);
    for (const challenge of usable) print(formatOwedLine(challenge));
    print(
      `${unclaimed.length} can no longer be used: ${formatOwedTotals(unclaimed)}${describeForfeitRule(settings.unclaimedAfterDays)}`,
    );
    for (const challenge of unclaimed) print(formatOwedLine(challenge));
    const forfeited = challenges.filter((challenge) => challenge.forfeited !== 0n);
    print(
      `${forfeited.length} became income, ${formatTotal(forfeited.map((challenge) => challenge.forfeited))} USD (revenue:unclaimed)`,
    );
    for (const challenge of forfeited) print(formatForfeitedLine(challenge));
  } finally {
    await pool.end();
  }
}

type ChallengeStreams = { readonly challenges: Pick<Streams['challenges'], 'read'> };

/** Adds what only the streams of the challenges state. Returns them in the same order. */
export async function addAllTerms(
  challenges: readonly ChallengeView[],
  streams: ChallengeStreams,
): Promise<readonly PaidChallenge[]> {
  const paid: PaidChallenge[] = [];
  for (let i = 0; i < challenges.length; i += MAX_CONCURRENT_READS) {
    const batch = challenges.slice(i, i + MAX_CONCURRENT_READS);
    paid.push(...(await Promise.all(batch.map((challenge) => addTerms(challenge, streams)))));
  }
  return paid;
}

async function addTerms(challenge: ChallengeView, { challenges }: ChallengeStreams): Promise<PaidChallenge> {
  const { challengeId } = challenge;
  const { issued } = await challenges.read(challengeId);
  if (!issued) throw new Error(`challenge ${challengeId} is paid, but was never issued`);
  const { query, reference, usableUntil } = issued;
  return { ...challenge, model: query.model, reference, usableUntil };
}

function describeForfeitRule(days: number | undefined): string {
  if (days === undefined) return '; unused amounts stay owed, because UNCLAIMED_AFTER_DAYS is not set';
  return `; unused amounts become income ${days} days after their last possible use (UNCLAIMED_AFTER_DAYS)`;
}

/** Formats two totals. For all challenges, the trial balance has them as `challenge:available` and `challenge:held`. */
function formatOwedTotals(challenges: readonly ChallengeView[]): string {
  const [available, held] = [
    formatTotal(challenges.map((challenge) => challenge.available)),
    formatTotal(challenges.map((challenge) => challenge.held)),
  ];
  return `${available} USD are owed, ${held} USD are held`;
}

function formatTotal(amounts: readonly PicoUsd[]): string {
  return formatUsd(money.sum(amounts));
}

function formatOwedLine({ paidAt, challengeId, state, model, available, held, ...rest }: PaidChallenge): string {
  const heldText = held === 0n ? '' : `, ${formatUsd(held)} USD held`;
  const paymentSource = `${rest.method} at ${rest.backend} as ${rest.reference}`;
  return `${paidAt}  ${challengeId}  ${state}, ${model}: ${formatUsd(available)} USD owed${heldText}, until ${rest.usableUntil}, ${paymentSource}`;
}

function formatForfeitedLine({ forfeitedAt = '', challengeId, model, forfeited, ...rest }: PaidChallenge): string {
  return `${forfeitedAt}  ${challengeId}  ${model}: ${formatUsd(forfeited)} USD, paid by ${rest.method} at ${rest.backend} as ${rest.reference}`;
}
