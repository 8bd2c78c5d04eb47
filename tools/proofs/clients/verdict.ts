/** Evaluates the run of a client: what it did, and why it failed. */
import { formatUsd } from '#kernel';
import type { ChargeSummary } from './charged.ts';
import { TOOL_RESULT } from './client.ts';
import { type InterruptedStreams, isInterrupted, listInterruptionFaults } from './interrupted-streams.ts';
import { isComplete, isPaid, listToolResults, type RecordedExchange } from './recording-wire.ts';
import type { ClientRunOutcome } from './run.ts';

/** Maximum length of an output or response in a fault, in characters. */
const MAX_OUTPUT_LENGTH = 400;
/** The status with which the gateway rejects a WebSocket. Clients then continue with HTTP requests. */
const NO_WEBSOCKET = 426;

export interface ClientRun {
  readonly outcome: ClientRunOutcome;
  readonly exchanges: readonly RecordedExchange[];
  readonly charged: ChargeSummary;
  readonly interruptedStreams: InterruptedStreams;
}

/**
 * Formats the number of paid requests by path, with the numbers of those that were streamed or had tool results, and
 * the amount that was charged.
 */
export function formatSummary({ exchanges, charged, interruptedStreams }: ClientRun): string {
  const completeExchanges = exchanges.filter((exchange) => isPaid(exchange) && !isInterrupted(exchange));
  const paths = Map.groupBy(completeExchanges, ({ path }) => path.replace(/\?.*$/, '').replace(/^\/v1\//, ''));
  const done = [...paths].map(([path, all]) => {
    const streamed = all.filter(({ streamed }) => streamed).length;
    const afterTools = all.filter((exchange) => listToolResults(exchange).length > 0).length;
    const details = [`${streamed} streamed`, `${afterTools} after a tool`].filter((detail) => !detail.startsWith('0 '));
    return `${all.length} × ${path}${details.length > 0 ? ` (${details.join(', ')})` : ''}`;
  });
  const { length: interrupted } = interruptedStreams.exchanges;
  if (interrupted > 0) done.push(`${interrupted} interrupted streams`);
  return `${done.join(', ')}; charged ${formatUsd(charged.balanceUsd)} USD`;
}

/** @returns the faults of a run; empty if it has passed */
export function listFaults({ outcome, exchanges, charged, interruptedStreams }: ClientRun): readonly string[] {
  const { code, output } = outcome;
  const completeExchanges = exchanges.filter((exchange) => !isInterrupted(exchange));
  const excerpt = output.trim().slice(-MAX_OUTPUT_LENGTH).replaceAll(/\s+/g, ' ');
  const rejected = completeExchanges.filter(({ status }) => status >= 400 && status !== NO_WEBSOCKET);
  const served = completeExchanges.filter((exchange) => isPaid(exchange) && exchange.status < 300);
  const tooled = served.filter((exchange) => listToolResults(exchange).some((result) => result.includes(TOOL_RESULT)));
  return [
    ...(code === null ? [`timed out, or killed: ${excerpt}`] : code > 0 ? [`exit code ${code}: ${excerpt}`] : []),
    ...rejected.map(
      ({ method, path, status, response }) =>
        `${method} ${path} was rejected: ${status} ${response.slice(0, MAX_OUTPUT_LENGTH)}`,
    ),
    ...(served.some(isComplete) ? [] : ['no stream was complete']),
    ...(tooled.length > 0 ? [] : ['no tool result was sent to the model']),
    ...listMoneyFaults(charged, served.length),
    ...listInterruptionFaults(interruptedStreams),
  ];
}

function listMoneyFaults(
  { balanceUsd, historyUsd, heldUsd, served }: ChargeSummary,
  expectedServed: number,
): readonly string[] {
  const amounts = `${formatUsd(balanceUsd)} USD, the history has charges of ${formatUsd(historyUsd)} USD`;
  return [
    ...(balanceUsd === historyUsd && balanceUsd > 0n ? [] : [`the balance fell by ${amounts}`]),
    ...(heldUsd === 0 ? [] : [`${heldUsd} USD are still held`]),
    ...(served === expectedServed ? [] : [`${expectedServed} requests were served, the history has ${served}`]),
  ];
}
