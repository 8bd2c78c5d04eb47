/** The contract gate: collects the deviations of all exchanges between connectors and the sandbox. */
import type { RequestListener } from 'node:http';
import type { ContractDeviation } from './contract.ts';
import { checkExchange, type ProviderExchange, recordExchange } from './exchange.ts';
import { LISTED_DEVIATIONS, type ListedDeviation } from './listed-deviations.ts';

/** Deviations in the message of an error. */
const MAX_REPORTED = 50;

export class ContractGate {
  /** Deviations that are not listed, by their description. */
  readonly deviations = new Map<string, ContractDeviation>();
  /** The listed deviations that have occurred. */
  readonly occurred = new Set<ListedDeviation>();

  /** Paths of exchanges for which there is no contract. */
  readonly uncompared = new Set<string>();

  private ignoresRequests = false;
  private ignoresValues = false;

  /** For tests that send invalid values on purpose: from now on only unknown fields are deviations. */
  allowInvalidValues(): void {
    this.ignoresValues = true;
  }

  /** For tests whose customers send any fields, to lookups that pass on what they do not know. */
  allowInvalidRequests(): void {
    this.ignoresRequests = true;
  }

  /** Records the requests to the sandbox. */
  readonly onRequest: RequestListener = (request, response) =>
    recordExchange(request, response, (exchange) => this.check(exchange));

  check(exchange: ProviderExchange): void {
    const deviations = checkExchange(exchange);
    if (!deviations) this.uncompared.add(exchange.path);
    for (const deviation of deviations ?? []) {
      if (this.ignoresRequests && /(Query|Request)$/.test(deviation.message)) continue;
      const entry = LISTED_DEVIATIONS.find((candidate) => matches(deviation, candidate));
      if (entry) this.occurred.add(entry);
      else if (!this.ignoresValues || deviation.problem === 'unknown field')
        this.deviations.set(describe(deviation), deviation);
    }
  }

  /** @throws Error that names the deviations */
  assertNone(): void {
    if (this.deviations.size === 0) return;
    const lines = [...this.deviations.values()].map((deviation) => `${describe(deviation)}: ${deviation.value}`);
    const advice = 'See "When the contract gate fails" in docs/changing.md';
    throw new Error(
      [`Deviations from the contracts of providers. ${advice}`, ...lines.slice(0, MAX_REPORTED)].join('\n'),
    );
  }
}

function matches(deviation: ContractDeviation, { message, path, problem }: ListedDeviation): boolean {
  return message === deviation.message && path === deviation.path && problem === deviation.problem;
}

function describe({ message, path, problem }: ContractDeviation): string {
  return `${message}: ${problem} ${path}`;
}
