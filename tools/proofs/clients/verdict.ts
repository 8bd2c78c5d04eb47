/** What a client's run comes to: what it did, and why it failed. */
import { formatUsd } from '#kernel';
import type { Charged } from './charged.ts';
import { TOOL_SAYS } from './client.ts';
import { isComplete, isPaid, type RecordedExchange, toolResults } from './recording-wire.ts';
import type { ClientRunOutcome } from './run.ts';

/** How much of what went wrong is printed. */
const MOST_SAID = 400;
/** Who asks for a WebSocket is told to go on without one. */
const NO_WEBSOCKET = 426;

export interface Run {
  readonly outcome: ClientRunOutcome;
  readonly exchanges: readonly RecordedExchange[];
  readonly charged: Charged;
}

/** Requests that cost something, by path: how many, and how many of them were streamed or brought what a tool returned. */
export function summaryOf({ exchanges, charged }: Run): string {
  const paths = Map.groupBy(exchanges.filter(isPaid), ({ path }) => path.replace(/\?.*$/, '').replace(/^\/v1\//, ''));
  const done = [...paths].map(([path, all]) => {
    const streamed = all.filter(({ streamed }) => streamed).length;
    const afterTools = all.filter((each) => toolResults(each).length > 0).length;
    const details = [`${streamed} streamed`, `${afterTools} after a tool`].filter((each) => !each.startsWith('0 '));
    return `${all.length} × ${path}${details.length > 0 ? ` (${details.join(', ')})` : ''}`;
  });
  return `${done.join(', ')}; charged ${formatUsd(charged.fromBalance)} USD`;
}

/** @returns nothing when all is well */
export function faultsOf({ outcome, exchanges, charged }: Run): readonly string[] {
  const { code, output } = outcome;
  const said = output.trim().slice(-MOST_SAID).replaceAll(/\s+/g, ' ');
  const refused = exchanges.filter(({ status }) => status >= 400 && status !== NO_WEBSOCKET);
  const served = exchanges.filter((each) => isPaid(each) && each.status < 300);
  const tooled = served.filter((each) => toolResults(each).some((result) => result.includes(TOOL_SAYS)));
  return [
    ...(code === null ? [`not done in time: ${said}`] : code > 0 ? [`exit code ${code}: ${said}`] : []),
    ...refused.map(
      ({ method, path, status, answer }) => `${method} ${path} was refused: ${status} ${answer.slice(0, MOST_SAID)}`,
    ),
    ...(served.some(isComplete) ? [] : ['no stream came to its end']),
    ...(tooled.length > 0 ? [] : ['no tool returned what it returns']),
    ...moneyFaults(charged, served.length),
  ];
}

function moneyFaults({ fromBalance, inHistory, heldUsd, served }: Charged, answered: number): readonly string[] {
  const amounts = `${formatUsd(fromBalance)} USD less, the history says ${formatUsd(inHistory)} USD`;
  return [
    ...(fromBalance === inHistory && fromBalance > 0n ? [] : [`the balance is ${amounts}`]),
    ...(heldUsd === 0 ? [] : [`${heldUsd} USD are still held`]),
    ...(served === answered ? [] : [`${answered} requests were answered, the history has ${served}`]),
  ];
}
