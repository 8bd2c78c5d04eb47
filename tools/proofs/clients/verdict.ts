/** What a client's run comes to: what it did, and why it failed. */
import { formatUsd } from '#kernel';
import type { ChargeSummary } from './charged.ts';
import { TOOL_RESULT } from './client.ts';
import { isComplete, isPaid, listToolResults, type RecordedExchange } from './recording-wire.ts';
import type { ClientRunOutcome } from './run.ts';

/** How much of what went wrong is printed. */
const MAX_OUTPUT_LENGTH = 400;
/** Who asks for a WebSocket is told to go on without one. */
const NO_WEBSOCKET = 426;

export interface ClientRun {
  readonly outcome: ClientRunOutcome;
  readonly exchanges: readonly RecordedExchange[];
  readonly charged: ChargeSummary;
}

/** Requests that cost something, by path: how many, and how many of them were streamed or brought what a tool returned. */
export function formatSummary({ exchanges, charged }: ClientRun): string {
  const paths = Map.groupBy(exchanges.filter(isPaid), ({ path }) => path.replace(/\?.*$/, '').replace(/^\/v1\//, ''));
  const done = [...paths].map(([path, all]) => {
    const streamed = all.filter(({ streamed }) => streamed).length;
    const afterTools = all.filter((exchange) => listToolResults(exchange).length > 0).length;
    const details = [`${streamed} streamed`, `${afterTools} after a tool`].filter((detail) => !detail.startsWith('0 '));
    return `${all.length} × ${path}${details.length > 0 ? ` (${details.join(', ')})` : ''}`;
  });
  return `${done.join(', ')}; charged ${formatUsd(charged.balanceUsd)} USD`;
}

/** @returns nothing when all is well */
export function listFaults({ outcome, exchanges, charged }: ClientRun): readonly string[] {
  const { code, output } = outcome;
  const excerpt = output.trim().slice(-MAX_OUTPUT_LENGTH).replaceAll(/\s+/g, ' ');
  const rejected = exchanges.filter(({ status }) => status >= 400 && status !== NO_WEBSOCKET);
  const served = exchanges.filter((exchange) => isPaid(exchange) && exchange.status < 300);
  const tooled = served.filter((exchange) => listToolResults(exchange).some((result) => result.includes(TOOL_RESULT)));
  return [
    ...(code === null ? [`not done in time: ${excerpt}`] : code > 0 ? [`exit code ${code}: ${excerpt}`] : []),
    ...rejected.map(
      ({ method, path, status, response }) =>
        `${method} ${path} was refused: ${status} ${response.slice(0, MAX_OUTPUT_LENGTH)}`,
    ),
    ...(served.some(isComplete) ? [] : ['no stream came to its end']),
    ...(tooled.length > 0 ? [] : ['no tool returned what it returns']),
    ...listMoneyFaults(charged, served.length),
  ];
}

function listMoneyFaults(
  { balanceUsd, historyUsd, heldUsd, served }: ChargeSummary,
  expectedServed: number,
): readonly string[] {
  const amounts = `${formatUsd(balanceUsd)} USD less, the history says ${formatUsd(historyUsd)} USD`;
  return [
    ...(balanceUsd === historyUsd && balanceUsd > 0n ? [] : [`the balance is ${amounts}`]),
    ...(heldUsd === 0 ? [] : [`${heldUsd} USD are still held`]),
    ...(served === expectedServed ? [] : [`${expectedServed} requests were answered, the history has ${served}`]),
  ];
}
