import type { Foundation } from '#foundation';
import { formatUsd, money, type PicoUsd } from '#kernel';
import { openPool } from '#postgres';
import { type ChallengeView, READ_MODEL_CONNECTION_OPTIONS, readChallenges } from '#projections';

type Print = (line: string) => void;

/**
 * Lists payments for one request that the house owes something of: those that can be used still, and those that nobody has
 * claimed; and those of which something has become income.
 */
export async function printChallenges(
  { databaseUrl, settings }: Pick<Foundation, 'databaseUrl' | 'settings'>,
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
    const all = await readChallenges(pool);
    const owed = all.filter(({ available, held }) => available !== 0n || held !== 0n);
    const isUsable = ({ usableUntil, state }: ChallengeView) => usableUntil >= now || state === 'running';
    const [usable, unclaimed] = [owed.filter(isUsable), owed.filter((each) => !isUsable(each))];
    print(`${owed.length} payments are unused or partly used: ${sumsOf(owed)}`);
    print(`${usable.length} can be used still: ${sumsOf(usable)}`);
    for (const each of usable) print(owedLine(each));
    print(`${unclaimed.length} can no longer be used: ${sumsOf(unclaimed)}${ruleOf(settings.unclaimedAfterDays)}`);
    for (const each of unclaimed) print(owedLine(each));
    const forfeited = all.filter((each) => each.forfeited !== 0n);
    print(`${forfeited.length} became income, ${usd(forfeited.map((each) => each.forfeited))} USD (revenue:unclaimed)`);
    for (const each of forfeited) print(forfeitedLine(each));
  } finally {
    await pool.end();
  }
}

function ruleOf(days: number | undefined): string {
  if (days === undefined) return '; it stays owed, since UNCLAIMED_AFTER_DAYS is not set';
  return `; it becomes income ${days} days later (UNCLAIMED_AFTER_DAYS)`;
}

/** As the trial balance has them: `challenge:available` and `challenge:held`. */
function sumsOf(all: readonly ChallengeView[]): string {
  const [available, held] = [usd(all.map((each) => each.available)), usd(all.map((each) => each.held))];
  return `${available} USD are owed, ${held} USD are held`;
}

function usd(amounts: readonly PicoUsd[]): string {
  return formatUsd(money.sum(amounts));
}

function owedLine({ paidAt = '', challengeId, state, model, available, held, ...rest }: ChallengeView): string {
  const running = held === 0n ? '' : `, ${formatUsd(held)} USD held`;
  const place = `${rest.method} at ${rest.backend} as ${rest.reference}`;
  return `${paidAt}  ${challengeId}  ${state}, ${model}: ${formatUsd(available)} USD owed${running}, until ${rest.usableUntil}, ${place}`;
}

function forfeitedLine({ forfeitedAt = '', challengeId, model, forfeited, ...rest }: ChallengeView): string {
  return `${forfeitedAt}  ${challengeId}  ${model}: ${formatUsd(forfeited)} USD, paid by ${rest.method} at ${rest.backend} as ${rest.reference}`;
}
